package loadtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/oncegate/oncegate/loadtest/decimal"
	"github.com/oncegate/oncegate/loadtest/verdict"
	"github.com/oncegate/oncegate/loadtest/wire"
)

// ErrUnreachable says that nothing answers at the target.
var ErrUnreachable = errors.New("the target cannot be reached")

// RefusedError says that the target answers, and will not take the run's users.
type RefusedError struct {
	What   string
	Status int
	Body   string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s: HTTP %d: %s", e.What, e.Status, e.Body)
}

const creators = 8

// prepare makes sure that the run can mean something before it starts.
func (r *run) prepare(ctx context.Context) error {
	x := r.client.Do(ctx, &wire.Request{Method: http.MethodGet, Path: "/livez"}, 0)
	if x.Err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, x.Err)
	}
	if err := r.sameTime(x.Header.Get("Date")); err != nil {
		return err
	}
	if x := r.client.Do(ctx, &wire.Request{Method: http.MethodGet, Path: "/api/policy"}, 0); x.Status == http.StatusOK && json.Valid(x.Body) {
		r.policy = x.Body
	}
	if r.Audit == AuditSQL {
		if err := r.auditable(ctx); err != nil {
			return err
		}
	}
	if r.Create.Enabled {
		if err := r.createUsers(ctx); err != nil {
			return err
		}
	}
	return r.look(ctx)
}

// mostApart is how far the clocks of this machine and of the target may be apart
// where callbacks are signed: their receiver allows five minutes (Standard Webhooks).
const mostApart = 4 * time.Minute

// sameTime compares the clocks: callbacks that are refused for the time in them
// would be taken for a broken promise. A target that tells no time is believed.
func (r *run) sameTime(date string) error {
	there, err := http.ParseTime(date)
	apart := time.Since(there).Abs()
	if err == nil && apart > mostApart && r.Scenario.NeedsWebhookSecret() {
		return fmt.Errorf("the clock of this machine and that of the target are %s apart: signed callbacks would be refused", apart.Round(time.Second))
	}
	return nil
}

// auditable tells whether the database of the audit can be read and has nothing of
// this run, before a run that could not be judged by it.
func (r *run) auditable(ctx context.Context) error {
	db, err := verdict.OpenDB(r.DSN)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // only read
	ready, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	if err := db.Ready(ready); err != nil {
		return err
	}
	ctx, cancel = context.WithTimeout(ctx, r.AuditTimeout)
	defer cancel()
	user, err := verdict.Earlier(ctx, db, r.names(), r.scope())
	if err == nil && user != "" {
		err = &UsedError{r.Run, user}
	}
	return err
}

func (r *run) createUsers(ctx context.Context) error {
	if r.Create.Admin == nil {
		db, err := verdict.OpenDB(r.DSN)
		if err != nil {
			return err
		}
		defer func() { _ = db.Close() }() // every statement was its own transaction
		return verdict.CreateUsers(ctx, db, r.names(), r.Create.Balance)
	}
	client, err := wire.New(wire.Options{Target: r.Create.Admin, Timeout: r.Timeout, TLS: r.TLS})
	if err != nil {
		return fmt.Errorf("the admin listener: %w", err)
	}
	defer client.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan string)
	var wg sync.WaitGroup
	for range creators {
		wg.Go(func() {
			for user := range next {
				if err := r.createUser(ctx, client, user); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, u := range r.Users {
		if ctx.Err() != nil {
			break
		}
		next <- u.User
	}
	close(next)
	wg.Wait()
	return context.Cause(ctx)
}

func (r *run) names() []string {
	names := make([]string, len(r.Users))
	for i, u := range r.Users {
		names[i] = u.User
	}
	return names
}

func (r *run) createUser(ctx context.Context, client *wire.Client, user string) error {
	request := &wire.Request{
		Method: http.MethodPut,
		Path:   "/admin/v1/users/" + url.PathEscape(user),
		Body:   fmt.Appendf(nil, `{"balance":%q}`, decimal.Text(r.Create.Balance)),
	}
	if r.Create.Token != "" {
		request.Fields = bearer(r.Create.Token)
	}
	x := client.Do(ctx, request, 0)
	switch {
	case x.Err != nil:
		return fmt.Errorf("create the users: %w: %w", ErrUnreachable, x.Err)
	case x.Status/100 != 2:
		return &RefusedError{"create the users", x.Status, excerpt(x.Body)}
	}
	return nil
}

func bearer(token string) []wire.Field {
	return []wire.Field{{Name: "Authorization", Value: "Bearer " + token}}
}

func excerpt(b []byte) string {
	const most = 300
	if len(b) > most {
		return string(b[:most]) + "…"
	}
	return string(b)
}
