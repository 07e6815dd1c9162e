package cache

import (
	"context"
	"crypto/rand"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/order"
)

const (
	// patient is an operation time-out that no healthy server of a busy test
	// machine reaches.
	patient = 10 * time.Second
	// hurried is one that a frozen server is to reach soon.
	hurried = 100 * time.Millisecond
	// reached is one for a command that is to reach a server, or what stands before
	// it, and to have no answer: a test waits for all of it.
	reached = 3 * time.Second
	// hung is when a test believes that something waits for ever.
	hung = 20 * time.Second
)

func macKey() []byte { return []byte("a key of at least sixteen bytes") }

// rig is a filter with what a test wants to see of it.
type rig struct {
	*Filter
	client redis.UniversalClient
	log    *logbook
}

// settings are what a test changes of a filter.
type settings struct {
	client   ClientOptions
	options  Options
	tuning   Tuning
	streamed bool // every command goes through a stream, as with a Cluster, a lone one too
}

func open(tb testing.TB, addr string, change func(*settings)) *rig {
	tb.Helper()
	s := settings{client: ClientOptions{Addrs: []string{addr}, OpTimeout: patient}, tuning: DefaultTuning()}
	s.options.MACKey = macKey()
	s.options.Pipelining = true
	s.tuning.OpTimeout = patient
	if change != nil {
		change(&s)
	}
	client, err := OpenClient(s.client)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, client.Close()) })
	log := &logbook{}
	s.options.Client = client
	s.options.Logger = slog.New(slog.NewTextHandler(log, nil))
	if s.options.Registerer == nil {
		s.options.Registerer = prometheus.NewRegistry()
	}
	if s.options.Tuning == nil {
		s.options.Tuning = func() Tuning { return s.tuning }
	}
	f, err := New(s.options)
	require.NoError(tb, err)
	if s.streamed {
		p, err := newStreams(client)
		require.NoError(tb, err)
		f.guard.pipe = p.many
	}
	r := &rig{Filter: f, client: client, log: log}
	if t, ok := tb.(*testing.T); ok {
		t.Cleanup(func() { r.nothingIsImmortal(t) })
	}
	return r
}

// nothingIsImmortal looks for entries that will never expire, in whatever state
// a test has left its Redis. One that answers nothing by then is passed over.
func (r *rig) nothingIsImmortal(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), hung)
	defer cancel()
	for keys := r.client.Scan(ctx, 0, r.o.Prefix+":*", 1000).Iterator(); keys.Next(ctx); {
		if ttl, err := r.client.PTTL(ctx, keys.Val()).Result(); err == nil {
			require.NotEqual(t, time.Duration(-1), ttl, "an entry without a time to live")
		}
	}
}

// everyWay runs a test with each of the pipes.
func everyWay(t *testing.T, test func(t *testing.T, ways func(*settings))) {
	t.Helper()
	for _, way := range []string{"combined", "streamed", "plain"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			test(t, func(s *settings) { s.options.Pipelining, s.streamed = way != "plain", way == "streamed" })
		})
	}
}

// withOpTimeout sets both time-outs of an operation.
func withOpTimeout(d time.Duration, more func(*settings)) func(*settings) {
	return func(s *settings) {
		s.client.OpTimeout, s.tuning.OpTimeout = d, d
		if more != nil {
			more(s)
		}
	}
}

// shorterWhile sets the time-out of an operation: patient, but for while a test has
// its server frozen. So no pause of a busy machine is taken for an outage.
func shorterWhile(frozen *atomic.Bool, limit time.Duration, more func(*settings)) func(*settings) {
	return func(s *settings) {
		s.options.Tuning = func() Tuning {
			t := s.tuning
			if frozen.Load() {
				t.OpTimeout = limit
			}
			return t
		}
		more(s)
	}
}

func guardOnly(s *settings) { s.options.DisableProcessTier = true }

func (r *rig) bypassed(t *testing.T, why reason) float64 {
	t.Helper()
	return value(t, r.guard.metrics.bypassed[why])
}

func (r *rig) unsettled(t *testing.T, why reason) float64 {
	t.Helper()
	return value(t, r.guard.metrics.unsettled[why])
}

// value reads a counter or a gauge.
func value(t *testing.T, m prometheus.Metric) float64 {
	t.Helper()
	var read dto.Metric
	require.NoError(t, m.Write(&read))
	return read.GetCounter().GetValue() + read.GetGauge().GetValue()
}

// entry returns the record of a key in Redis.
func (r *rig) entry(t *testing.T, user string, key order.Key) entry {
	t.Helper()
	held, err := r.client.Get(t.Context(), r.names.name(user, key)).Bytes()
	require.NoError(t, err)
	e, err := r.guard.codec.decode(held, user, key)
	require.NoError(t, err)
	return e
}

func (r *rig) has(t *testing.T, user string, key order.Key) bool {
	t.Helper()
	n, err := r.client.Exists(t.Context(), r.names.name(user, key)).Result()
	require.NoError(t, err)
	return n == 1
}

func startMini(t *testing.T) *miniredis.Miniredis {
	t.Helper()
	return miniredis.RunT(t)
}

// somebody is a user whom no other test has, nor this one when it runs again on
// the same Redis.
func somebody(t *testing.T) string {
	t.Helper()
	return t.Name() + rand.Text()
}

func attempt(user string, key order.Key) order.Attempt {
	return order.Attempt{UserID: user, Key: key, Digest: order.Digest{1, 2, 3}}
}

func receipt() order.Receipt {
	return order.Receipt{
		Digest:    order.Digest{1, 2, 3},
		State:     order.Succeeded,
		FirstSeen: time.Date(2026, 11, 29, 12, 0, 0, 123e6, time.UTC),
		Server:    0xfedcba9876543210,
		Response: order.Response{
			Status: 201, ContentType: "application/json", Location: "/api/orders/1", Body: []byte(`{"order_id":"1"}`),
		},
	}
}

func created() order.End {
	r := receipt()
	return order.End{Answer: order.Answer{Kind: order.Created, Receipt: r}, Mark: order.MarkReceipt, Receipt: r}
}

func released() order.End {
	return order.End{Err: order.Undecided(order.OutcomeNotCommitted, order.ErrUnavailable), Mark: order.MarkReleased}
}

// admit admits an attempt that is to have a certain advice.
func (r *rig) admit(t *testing.T, a order.Attempt, want order.Advice) order.Admission {
	t.Helper()
	adm := r.Admit(t.Context(), a)
	require.Equal(t, want, adm.Advice)
	return adm
}

// warm connects a filter whose time-outs are short, on a machine that is busy.
func (r *rig) warm(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		adm := r.Admit(t.Context(), attempt("alice", "warm"))
		if adm.Ticket != nil {
			adm.Ticket.Finish(t.Context(), released())
		}
		return adm.Advice == order.Ours
	}, hung, 10*time.Millisecond)
}

// within runs f and fails the test if it does not end.
func within(t *testing.T, limit time.Duration, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(limit):
		require.FailNow(t, "it hangs", "longer than %v", limit)
	}
}

// wait waits for a flight.
func wait(t *testing.T, f order.Flight) (order.Answer, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hung)
	defer cancel()
	return f.Wait(ctx)
}

// logbook keeps what was logged.
type logbook struct{ testserver.Output }

func (l *logbook) lines(with string) (n int) {
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, with) {
			n++
		}
	}
	return n
}

// clock is a time that stands still until it is moved.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
