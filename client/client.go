package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// The defaults of [Options].
const (
	DefaultAttemptTimeout = 25 * time.Second
	DefaultPatience       = 2 * time.Minute
)

// Options are what a [Client] is made of.
type Options struct {
	// BaseURL is where the gateway is, such as "https://orders.example.com".
	// Required.
	BaseURL string
	// Token returns the bearer token of the user who orders. It is asked before
	// every attempt, so that a token may be renewed between two. Required.
	Token func(ctx context.Context) (string, error)
	// Keys remembers the keys of intents. Required: [FileKeys], or a table beside
	// the caller's own data.
	Keys KeyStore
	// HTTP sends the requests. Redirects are never followed, whatever it says: a
	// redirected POST becomes a GET, and its answer no receipt. Default: a client
	// with net/http's default transport.
	HTTP *http.Client
	// AttemptTimeout bounds one attempt. It should be above the gateway's own
	// limit, or its answer is given up just before it comes. Default 25 s.
	AttemptTimeout time.Duration
	// Patience bounds all attempts at one intent, pauses included, beside the
	// caller's context. Default 2 min.
	Patience time.Duration
	// Backoff spreads the attempts. Default: 200 ms doubling up to 10 s.
	Backoff Backoff
}

// Client speaks to one gateway for one user.
type Client struct {
	base string
	o    Options
	http http.Client
}

// New checks the options. It connects to nothing.
func New(o Options) (*Client, error) {
	u, err := url.Parse(o.BaseURL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("client: BaseURL: %w", err)
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.RawQuery != "", u.Fragment != "":
		return nil, fmt.Errorf("client: BaseURL: %q is not the address of a gateway, such as https://orders.example.com", o.BaseURL)
	case o.Token == nil:
		return nil, errors.New("client: Token is missing")
	case o.Keys == nil:
		return nil, errors.New("client: Keys is missing: a key that is not kept cannot be sent again")
	case o.AttemptTimeout < 0, o.Patience < 0, o.Backoff.Base < 0, o.Backoff.Cap < 0:
		return nil, errors.New("client: a time is negative")
	}
	if o.AttemptTimeout == 0 {
		o.AttemptTimeout = DefaultAttemptTimeout
	}
	if o.Patience == 0 {
		o.Patience = DefaultPatience
	}
	c := &Client{base: strings.TrimSuffix(u.String(), "/"), o: o}
	if o.HTTP != nil {
		c.http = *o.HTTP
	}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}
