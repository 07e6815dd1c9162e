package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

func TestEveryErrorHasItsAnswer(t *testing.T) {
	t.Parallel()
	const rejected, undone, unknown = order.OutcomeRejected, order.OutcomeNotCommitted, order.OutcomeUnknown
	for _, c := range []struct {
		name      string
		err       error
		status    int
		code      Code
		outcome   order.Outcome
		retryable bool
		after     bool
	}{
		{"invalid", &order.InvalidError{Faults: []order.FieldFault{{Path: "sku", Reason: "x"}}}, 400, CodeInvalidRequest, rejected, false, false},
		{"bad key", fmt.Errorf("%w: x", order.ErrKeyInvalid), 400, CodeKeyInvalid, rejected, false, false},
		{"not found", order.ErrNotFound, 404, CodeNotFound, rejected, false, false},
		{"unknown user", order.Undecided(undone, order.ErrUnknownUser), 403, CodeUserUnknown, undone, false, false},
		{"queue full", order.Undecided(undone, order.ErrOverloaded), 503, CodeOverloaded, undone, true, true},
		{"ledger away", order.Undecided(undone, order.ErrUnavailable), 503, CodeUnavailable, undone, true, true},
		{"commit unknown", order.Undecided(unknown, fmt.Errorf("%w: lost", order.ErrUnavailable)), 503, CodeUnavailable, unknown, true, true},
		{"says nothing", order.ErrUnavailable, 503, CodeUnavailable, unknown, true, true},
		{"shutting down", order.Undecided(undone, order.ErrShuttingDown), 503, CodeUnavailable, undone, true, true},
		{"deadline", order.Undecided(unknown, context.DeadlineExceeded), 503, CodeUnavailable, unknown, true, true},
		{"internal, nothing made", order.Undecided(undone, order.ErrInternal), 500, CodeInternal, undone, false, false},
		{"internal, unknown", order.Undecided(unknown, order.ErrInternal), 500, CodeInternal, unknown, true, false},
		{"anything else", errors.New("secret address 10.0.0.1"), 500, CodeInternal, unknown, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := problemOf(c.err)
			require.Equal(t, c.code, p.code)
			require.Equal(t, c.status, p.status)
			require.Equal(t, c.outcome, p.outcome)
			require.Equal(t, c.after, p.retryAfter > 0)
			body := NewRenderer("").problemBody(p, "id")
			require.NotContains(t, string(body), "10.0.0.1")
			var doc map[string]any
			require.NoError(t, json.Unmarshal(body, &doc))
			require.Equal(t, c.retryable, doc["retryable"])
			require.Equal(t, "id", doc["request_id"])
		})
	}
}

// A new key after an attempt that may have succeeded is how two orders come to be.
func TestNoRetryableProblemSuggestsANewKey(t *testing.T) {
	t.Parallel()
	for _, c := range Codes() {
		k := c.kind()
		require.NotEmpty(t, k.title, c)
		// A refusal is final: the answer that is remembered made nothing.
		if k.retryable || k.status >= 500 && k.outcome != order.OutcomeRejected || k.outcome == order.OutcomeUnknown {
			require.False(t, k.safeNewKey, c)
		}
		if k.status == http.StatusTooManyRequests || k.status == http.StatusServiceUnavailable {
			require.True(t, k.retryable, c)
		}
	}
}

func TestRetryAfterIsRoundedUpToWholeSeconds(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]int64{1: 1, time.Millisecond: 1, time.Second: 1, 1001 * time.Millisecond: 2, time.Minute: 60} {
		require.Equal(t, want, (&problem{retryAfter: d}).seconds(), d)
	}
}

func TestStatusURLs(t *testing.T) {
	t.Parallel()
	for key, want := range map[order.Key]string{
		"": "", ".": "", "..": "", "...": "/api/requests/...", "a+b": "/api/requests/a+b",
		"a/b": "/api/requests/a%2Fb", "{x}%": "/api/requests/%7Bx%7D%25", "<>;": "/api/requests/%3C%3E%3B",
	} {
		require.Equal(t, want, statusURL(key), key)
	}
}

func TestCursorsComeBack(t *testing.T) {
	t.Parallel()
	id := order.NewID(time.Now())
	got, ok := parseCursor(cursorOf(id))
	require.True(t, ok)
	require.Equal(t, id, got)
	for _, s := range []string{
		"", "x", cursorOf(id) + "A", cursorOf(id)[:21], cursorOf(order.ID{}), "====",
		cursorOf(id)[:12] + "\r" + cursorOf(id)[12:], cursorOf(id) + "\n", cursorOf(id)[:21] + "\n", "\r\n" + cursorOf(id)[:20],
	} {
		_, ok := parseCursor(s)
		require.False(t, ok, s)
	}
}
