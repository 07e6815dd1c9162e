package gateway_test

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/order"
)

// trail notes which of its parts the gateway asks, and nothing of what.
type trail struct {
	gateway.Submitter
	order.Book
	order.Lifecycle

	mu    sync.Mutex
	steps []string
}

func (s *trail) note(step string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, step)
}

// since returns the steps of what do does.
func (s *trail) since(do func() reply) (reply, []string) {
	s.mu.Lock()
	s.steps = nil
	s.mu.Unlock()
	r := do()
	s.mu.Lock()
	defer s.mu.Unlock()
	return r, s.steps
}

func (s *trail) Status(ctx context.Context, userID string, key order.Key) (order.RequestStatus, error) {
	s.note("status")
	return s.Submitter.Status(ctx, userID, key)
}

func (s *trail) Order(ctx context.Context, userID string, id order.ID) (order.Order, error) {
	s.note("order")
	return s.Book.Order(ctx, userID, id)
}

func (s *trail) Orders(ctx context.Context, userID string, before order.ID, limit int) ([]order.Order, error) {
	s.note("orders")
	return s.Book.Orders(ctx, userID, before, limit)
}

func (s *trail) Cancel(ctx context.Context, userID string, id order.ID) (order.Transition, error) {
	s.note("cancel")
	return s.Lifecycle.Cancel(ctx, userID, id)
}

// trailed is a kit whose gateway leaves a trail.
func trailed(t testing.TB) (*kit, *trail) {
	t.Helper()
	s := &trail{}
	return newKit(t, func(o *gateway.Options) {
		s.Submitter, s.Book, s.Lifecycle = o.Submitter, o.Book, o.Lifecycle
		o.Submitter, o.Book, o.Lifecycle = s, s, s
	}), s
}

var ownWords = regexp.MustCompile(`"request_id":"[0-9a-f]{32}"`)

// asOne takes out of an answer what tells two requests of one kind apart.
func asOne(r reply) reply {
	r.header.Del("Date")
	r.header.Del("X-Request-Id")
	r.body = ownWords.ReplaceAllString(r.body, "")
	return r
}

// Somebody else's order or key is answered like one that never was: the same
// bytes, by the same steps, so that neither an answer nor its time tells.
func TestWhatIsSomebodyElsesIsLikeNothing(t *testing.T) {
	t.Parallel()
	k, steps := trailed(t)
	theirs := k.place("k1").String()
	nobodys := order.NewIDs(time.Now(), 1)[0].String()
	bob := as("bob")
	for _, c := range []struct{ method, foreign, never string }{
		{http.MethodGet, "/api/orders/" + theirs, "/api/orders/" + nobodys},
		{http.MethodHead, "/api/orders/" + theirs, "/api/orders/" + nobodys},
		{http.MethodPost, "/api/orders/" + theirs + "/cancel", "/api/orders/" + nobodys + "/cancel"},
		{http.MethodGet, "/api/requests/k1", "/api/requests/never"},
		{http.MethodHead, "/api/requests/k1", "/api/requests/never"},
		{http.MethodGet, "/api/orders?cursor=" + cursorOf(t, theirs), "/api/orders?cursor=" + cursorOf(t, nobodys)},
	} {
		foreign, byForeign := steps.since(func() reply { return k.do(c.method, c.foreign, "", bob) })
		never, byNever := steps.since(func() reply { return k.do(c.method, c.never, "", bob) })
		require.Equal(t, asOne(never), asOne(foreign), "%s %s", c.method, c.foreign)
		require.Equal(t, byNever, byForeign, "%s %s", c.method, c.foreign)
		require.NotContains(t, foreign.body, "alice")
	}
	require.Equal(t, order.Pending, k.status(mustID(t, theirs)))
	require.JSONEq(t, `{"orders":[]}`, k.get("/api/orders", bob).body)

	// The same key, number and content are free for bob, and do not change alice's.
	r := k.do(http.MethodPost, "/api/orders", potstick, bob, key("k1"))
	require.Equal(t, http.StatusCreated, r.status, r.body)
	require.Empty(t, r.header.Get("Idempotent-Replayed"))
	r = k.do(http.MethodPost, "/api/order-batches", `{"orders":[`+potstick+`]}`, bob, key("k1"))
	require.Equal(t, "IDEMPOTENCY_KEY_REUSED", r.problem(t).Code)
	require.NotContains(t, r.body, theirs)
	require.Equal(t, "true", k.post(plain, key("k1")).header.Get("Idempotent-Replayed"))
}

// A batch of somebody else's numbers says nothing of them.
func TestSomebodyElsesNumbersAreFree(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	require.Equal(t, http.StatusCreated, k.post(potstick, key("k1")).status)
	r := k.do(http.MethodPost, "/api/order-batches", `{"orders":[`+potstick+`]}`, as("bob"), key("k2"))
	require.Equal(t, http.StatusCreated, r.status, r.body)
}

// Whatever another scope may do, it is not this.
func TestAnOperatorIsNoCustomer(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	id := k.place("k1").String()
	ops := as("alice", gateway.ScopeAdmin)
	for _, c := range []struct{ method, path string }{
		{http.MethodGet, "/api/orders/" + id},
		{http.MethodGet, "/api/orders"},
		{http.MethodGet, "/api/requests/k1"},
		{http.MethodPost, "/api/orders/" + id + "/cancel"},
		{http.MethodPost, "/api/orders"},
		{http.MethodPost, "/api/order-batches"},
		{http.MethodPost, "/order/create_user_order"},
	} {
		require.Equal(t, http.StatusForbidden, k.do(c.method, c.path, "", ops).status, c.path)
		require.Equal(t, http.StatusUnauthorized, k.do(c.method, c.path, "").status, c.path)
	}
}

// The user is the token's, whatever else names one.
func TestNothingButTheTokenNamesTheUser(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	id := k.place("k1").String()
	for _, path := range []string{
		"/api/orders/" + id + "?user_id=alice", "/api/orders/" + id + "?sub=alice", "/api/requests/k1?user=alice",
	} {
		bob := []header{as("bob"), with("X-User-Id", "alice"), with("Cookie", "user=alice")}
		require.Equal(t, http.StatusBadRequest, k.get(path, bob...).status, path)
		bare, _, _ := strings.Cut(path, "?")
		require.Equal(t, http.StatusNotFound, k.get(bare, bob...).status, bare)
	}
	for _, member := range []string{"user_id", "user", "sub", "tenant", "__proto__"} {
		r := k.post(strings.Replace(plain, "{", `{"`+member+`":"bob",`, 1), key("k2"))
		require.Equal(t, http.StatusBadRequest, r.status, member)
	}
}

func mustID(t testing.TB, s string) order.ID {
	t.Helper()
	id, err := order.ParseID(s)
	require.NoError(t, err)
	return id
}

func cursorOf(t testing.TB, s string) string {
	t.Helper()
	id := mustID(t, s)
	return base64Of(id[:])
}
