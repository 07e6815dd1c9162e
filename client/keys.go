package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
)

// KeyStore remembers which key belongs to which intent. It is what makes a
// retry after a crash the same request, so an implementation has stored the key
// durably when it returns, whoever made it, and two calls at once, also of two
// processes, get the same key. With a database it is one table with the intent
// as primary key.
type KeyStore interface {
	// Claim returns the key of the intent. If there is none yet, fresh becomes it.
	Claim(ctx context.Context, intent, fresh string) (key string, err error)
	// Replace makes fresh the key of the intent if its key is still old, and does
	// nothing otherwise.
	Replace(ctx context.Context, intent, old, fresh string) error
}

// ErrKeyKept says that a key was not replaced: an order may have been made with
// it, and a new key could make a second one.
var ErrKeyKept = errors.New("client: the key stays: a new one could make a second order")

// Renew gives the intent a new key, so that the customer can try again after a
// refusal: with more money, say. The refusal is what [Client.CreateOrder]
// returned. Only a [*Problem] that is a verdict ([Problem.Verdict]) and says
// SafeNewKey is enough, and anything else is [ErrKeyKept]. That is so for
// IDEMPOTENCY_KEY_REUSED as well: the gateway takes the other content for another
// intent, but here the key has one intent only, and an earlier content of it may
// be an order.
func (c *Client) Renew(ctx context.Context, intent string, refusal error) error {
	var unsettled *UnsettledError
	var problem *Problem
	switch {
	case errors.As(refusal, &unsettled), !errors.As(refusal, &problem):
		return ErrKeyKept
	case !problem.Verdict(), !problem.SafeNewKey, problem.key == "":
		return ErrKeyKept
	}
	if err := c.o.Keys.Replace(ctx, intent, problem.key, rand.Text()); err != nil {
		return fmt.Errorf("client: replace the key of an intent: %w", err)
	}
	return nil
}

func (c *Client) keyOf(ctx context.Context, intent string) (string, error) {
	if intent == "" {
		return "", errors.New("client: an intent needs a name")
	}
	key, err := c.o.Keys.Claim(ctx, intent, rand.Text())
	if err != nil {
		return "", fmt.Errorf("client: key of an intent: %w", err)
	}
	if !sendable(key) {
		return "", errors.New("client: key of an intent: the store returned none, or one that no header can have")
	}
	return key, nil
}
