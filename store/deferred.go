package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/oncegate/oncegate/order"
)

var _ order.Deferrals = (*Store)(nil)

// deferredContent is a command as it waits in deferred_requests.
type deferredContent struct {
	Operation order.Operation `json:"operation"`
	Lines     []order.Line    `json:"lines"`
}

// errNoAccount says that the user's row is missing.
var errNoAccount = errors.New("no account")

// Accept implements [order.Deferrals].
func (s *Store) Accept(ctx context.Context, c *order.Command) (order.Decision, error) {
	content, err := json.Marshal(deferredContent{c.Operation, c.Lines})
	if err != nil {
		return order.Decision{}, order.Undecided(order.OutcomeNotCommitted, fmt.Errorf("%w: %w", order.ErrInternal, err))
	}
	decision, err := s.accept(ctx, c, content)
	if errors.Is(err, errNoAccount) && s.o.ProvisionBalance != nil {
		err = s.inTransaction(ctx, "open an account", waitingFor(userRow(c.UserID)), func(t *transaction) error {
			return t.openAccounts([]string{c.UserID}, *s.o.ProvisionBalance)
		})
		if err == nil {
			decision, err = s.accept(ctx, c, content)
		}
	}
	switch {
	case errors.Is(err, errNoAccount):
		return decision, order.Undecided(order.OutcomeNotCommitted, order.ErrUnknownUser)
	case err != nil:
		return decision, order.Undecided(order.OutcomeUnknown, err)
	}
	return decision, nil
}

func (s *Store) accept(ctx context.Context, c *order.Command, content []byte) (decision order.Decision, err error) {
	err = s.inTransaction(ctx, "accept a request", waitingFor(userRow(c.UserID)), func(t *transaction) error {
		p := &pending{cmd: c, ids: make([]order.ID, max(1, len(c.Lines))), suspect: true}
		group := []*pending{p}
		v := newView()
		if err := t.lockUsers(v, group, t.d.forUpdate); err != nil {
			return err
		}
		if _, account := v.balances[c.UserID]; !account {
			return errNoAccount
		}
		if err := t.readRecords(v, group, s.o.Renderer); err != nil {
			return err
		}
		if rec := v.records[p.pair()]; rec != nil {
			decision = known(p, rec).decision
			return nil
		}
		receipt := order.Receipt{Digest: c.Digest, State: order.Processing, FirstSeen: v.now, Server: v.server}
		decision = order.Decision{Kind: order.InProgress, Receipt: receipt, Remembered: true}
		w := &writes{now: instant{v.now}, records: []writtenRecord{{c.UserID, c.Key, &record{operation: c.Operation, receipt: receipt}}}}
		if err := t.insertRecords(w); err != nil {
			return err
		}
		t.q.reset("INSERT INTO deferred_requests (user_id, idempotency_key, content, attempts, lease_until, created_at) VALUES (")
		for _, v := range []any{c.UserID, string(c.Key), content, 0, t.d.instant(v.now)} {
			t.q.bind(v)
			t.q.add(",")
		}
		t.q.bind(t.d.instant(v.now))
		t.q.add(")")
		return t.exec(1)
	})
	return decision, err
}
