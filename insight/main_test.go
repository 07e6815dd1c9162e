package insight

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a time that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

const ttlInForce = time.Hour

func newRecorder(t testing.TB, change ...func(*Options)) (*Recorder, *clock) {
	t.Helper()
	c := &clock{now: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)}
	o := Options{Now: c.Now, Logger: slog.New(slog.DiscardHandler), ReceiptTTL: func() time.Duration { return ttlInForce }}
	for _, f := range change {
		f(&o)
	}
	r, err := New(o)
	require.NoError(t, err)
	return r, c
}
