package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/order"
)

// Of an order that nothing guards and that may have been made, no answer may say
// that it can be sent again: a program would, and make another.
func TestNothingUnguardedIsAskedForAgainWhileItsOutcomeIsUnknown(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.tune(func(t *gateway.Tuning) { t.KeyRequired = false })
	unknown := func(cause error) func(*order.Command) error {
		return func(*order.Command) error { return order.Undecided(order.OutcomeUnknown, cause) }
	}
	undone := func(*order.Command) error {
		return order.Undecided(order.OutcomeNotCommitted, order.ErrUnavailable)
	}
	panics := func(*order.Command) error { panic("a fault of ours") }
	for name, c := range map[string]struct {
		fault   func(*order.Command) error
		body    string
		headers []header
		again   bool
	}{
		"unavailable":            {fault: unknown(order.ErrUnavailable), body: plain},
		"internal":               {fault: unknown(order.ErrInternal), body: plain},
		"a panic":                {fault: panics, body: plain},
		"proven not to be there": {fault: undone, body: plain, again: true},
		"guarded by its number":  {fault: unknown(order.ErrUnavailable), body: potstick, again: true},
		"guarded by a key":       {fault: unknown(order.ErrUnavailable), body: plain, headers: []header{key("k")}, again: true},
		"a panic with a key":     {fault: panics, body: plain, headers: []header{key("k")}, again: true},
	} {
		k.ledger.SetFault(c.fault)
		p := k.post(c.body, c.headers...).problem(t)
		require.Equal(t, c.again, p.Retryable, name)
		require.False(t, p.SafeNewKey, name)
		require.Equal(t, !c.again, strings.Contains(p.Detail, "look among your orders"), "%s: %s", name, p.Detail)
	}
}

// waits remembers how long a command may wait.
type waits struct {
	gateway.Submitter
	last time.Duration
}

func (w *waits) Submit(ctx context.Context, c *order.Command, wait time.Duration) (order.Answer, error) {
	w.last = wait
	return w.Submitter.Submit(ctx, c, wait)
}

// late is a body that takes its time.
type late struct {
	io.Reader
	arrives func()
}

func (l late) Read(b []byte) (int, error) {
	l.arrives()
	return l.Reader.Read(b)
}

// The limit on an answer begins with the header. What is spent on the body is not
// there to wait in.
func TestAPreferredWaitBeginsWithTheHeader(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ body, left time.Duration }{
		{0, 10 * time.Second},
		{4 * time.Second, 6 * time.Second},
		{11 * time.Second, 0},
	} {
		var passed atomic.Int64
		start := time.Now()
		w := &waits{}
		k := newKit(t, func(o *gateway.Options) {
			w.Submitter, o.Submitter = o.Submitter, w
			o.Now = func() time.Time { return start.Add(time.Duration(passed.Load())) }
		})
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/orders",
			late{strings.NewReader(plain), func() { passed.Store(int64(c.body)) }})
		for _, h := range []header{as("alice"), key("k"), with("Content-Type", "application/json"), with("Prefer", "wait=10")} {
			h(r.Header)
		}
		answer := httptest.NewRecorder()
		k.server.Handler().ServeHTTP(answer, r)
		require.Equal(t, http.StatusCreated, answer.Code, answer.Body.String())
		require.Equal(t, c.left, w.last)
		require.Equal(t, "wait=10", answer.Header().Get("Preference-Applied"))
	}
}

// A request whose body did not arrive is not wrong: the same may arrive.
func TestABodyThatDidNotArriveMayBeSentAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		request string
		read    time.Duration // for it; 0: the default
		closes  bool
		again   bool
	}{
		"too slow":  {request: head("Content-Length: 400") + plain, read: time.Second, again: true},
		"cut":       {request: head("Content-Length: 400") + plain, closes: true, again: true},
		"no chunks": {request: head("Transfer-Encoding: chunked") + "zz\r\n" + plain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newLiveKit(t, func(o *gateway.Options) { o.Timeouts.Read = c.read })
			conn := k.dial()
			_, err := io.WriteString(conn, c.request)
			require.NoError(t, err)
			if c.closes {
				require.NoError(t, conn.CloseWrite())
			}
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			defer func() { _ = resp.Body.Close() }()
			require.Equal(t, http.StatusBadRequest, resp.StatusCode)
			var p problemDoc
			require.NoError(t, json.NewDecoder(resp.Body).Decode(&p))
			require.Equal(t, "INVALID_REQUEST", p.Code)
			require.Equal(t, "rejected", p.Outcome)
			require.Equal(t, c.again, p.Retryable)
			require.Zero(t, k.ledger.Calls().Decide)
		})
	}
}
