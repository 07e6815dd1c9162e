//go:build linux

package chaos

import (
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/loadtest/history"
	"github.com/oncegate/oncegate/loadtest/measure"
)

// jumps are by how much the clock of a gateway is moved: about the tolerance for
// other gateways' clocks, past what a mark is believed, and far beyond.
func jumps() []time.Duration {
	return []time.Duration{0, time.Second, 3 * time.Second, time.Minute, time.Hour, jump, -time.Second, -3 * time.Second, -time.Minute, -time.Hour, -jump}
}

// clockJumps is what is known of the jumps of gateways' clocks.
type clockJumps struct {
	shown   atomic.Int32   // by the date of an answer
	times   [][2]time.Time // in which a clock was off, by that of this machine
	refused int            // payments, which were then accepted
	none    bool           // they cannot be moved here, which was said
}

// moveClock puts the wall clock of the process so far before this machine's, or
// behind it. A process that is started again has this machine's.
func (g *gateway) moveClock(by time.Duration) (err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cmd == nil || g.cmd.Process == nil {
		return os.ErrProcessDone
	}
	select {
	case <-g.ended:
		return os.ErrProcessDone
	default:
	}
	if g.clock == nil {
		if g.clock, err = testserver.NewProgramClock(g.cmd.Process.Pid); err != nil {
			return err
		}
	}
	return g.clock.Move(by)
}

// dropClock forgets the clock of a process that has ended. It needs the lock.
func (g *gateway) dropClock() {
	if g.clock == nil {
		return
	}
	if err := g.clock.Close(); err != nil {
		g.t.Errorf("let go of a clock: %v", err)
	}
	g.clock = nil
}

// date is what the gateway takes for the time, in whole seconds.
func (g *gateway) date() (time.Time, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+g.addr+"/livez", http.NoBody)
	if err != nil {
		return time.Time{}, err
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return time.Time{}, err
	}
	defer func() { _ = resp.Body.Close() }() // only read
	return http.ParseTime(resp.Header.Get("Date"))
}

// requireJump moves the clock of a gateway, and demands that its answers show it. One
// that cannot be asked now, for another fault, shows nothing.
func (w *world) requireJump(s *site, by time.Duration) {
	w.t.Helper()
	if err := s.moveClock(by); errors.Is(err, os.ErrProcessDone) {
		return
	} else if err != nil {
		w.t.Errorf("move the clock of a gateway: %v", err)
		return
	}
	before := time.Now().Add(by).Truncate(time.Second)
	date, err := s.date()
	if err != nil {
		return
	}
	if after := time.Now().Add(by); date.Before(before) || date.After(after) {
		w.t.Errorf("a clock that was moved by %v shows %v, between %v and %v", by, date, before, after)
	}
	w.clocks.shown.Add(1)
}

// jumping has the clocks of gateways jump, each by itself, until the fault ends.
func (w *world) jumping(e event, sites []*site) (end func()) {
	w.t.Helper()
	for _, s := range sites {
		if err := s.moveClock(0); err != nil && !errors.Is(err, os.ErrProcessDone) {
			w.clocks.none = true
			return w.none("a gateway's clock", err)
		}
	}
	all, d, from := jumps(), e.dice(), time.Now()
	stop := repeatedly(200*time.Millisecond, func(context.Context) {
		for _, s := range sites {
			w.requireJump(s, all[d.pick(len(all))])
		}
	})
	return func() {
		stop()
		for _, s := range sites {
			w.requireJump(s, 0)
		}
		w.clocks.times = append(w.clocks.times, [2]time.Time{from, time.Now()})
	}
}

// forgive leaves out payments that were refused while a gateway's clock was off, which
// is right: their signatures are not of its time. Sent again they must be accepted.
func (w *world) forgive(start time.Time, cases []*history.Case) []*history.Case {
	w.t.Helper()
	if len(w.clocks.times) == 0 {
		return cases
	}
	left := make([]*history.Case, len(cases))
	for i, c := range cases {
		left[i] = &history.Case{Intent: c.Intent, User: c.User}
		refused, accepted := 0, false
		for _, r := range c.Records() {
			if r.Op == history.Callback && r.HTTP == http.StatusUnauthorized && w.clocks.during(start.Add(r.Sent), start.Add(r.Done)) &&
				(answer{body: string(r.Body)}).code() == "SIGNATURE_INVALID" {
				refused++
				continue
			}
			accepted = accepted || r.Op == history.Callback && r.Outcome == measure.Accepted
			left[i].Add(r)
		}
		if refused > 0 && !accepted {
			w.t.Errorf("the payment for key %s of %s was refused while a clock was off, and never accepted", c.Intent.Key, c.User)
		}
		w.clocks.refused += refused
	}
	return left
}

// during reports whether a clock was off at any time between.
func (j *clockJumps) during(from, to time.Time) bool {
	return slices.ContainsFunc(j.times, func(off [2]time.Time) bool { return from.Before(off[1]) && to.After(off[0]) })
}

// TestAGatewayGoesByItsClockForNothingButTokens: an answer of yesterday, or of
// tomorrow, is replayed with the same bytes, and a token ends when the clock says
// so, however lately it was found good.
func TestAGatewayGoesByItsClockForNothingButTokens(t *testing.T) {
	t.Parallel()
	g := newGateway(t, gatewayProgram(t, ""), map[string]string{
		"ONCEGATE_MYSQL__DSN":         "", // the embedded one
		"ONCEGATE_AUTH__HS256_SECRET": tokenSecret,
		"ONCEGATE_LOG__LEVEL":         "warn",
	})
	g.start()
	g.ready()
	testserver.Demand(t, g.moveClock(0))
	const body = `{"sku":"tea","quantity":1,"amount":"19.90"}`
	long, short := token(t, "ann"), tokenFor(t, "ann", time.Hour/2)
	first := g.insist(long, "k", body)
	require.Equal(t, http.StatusCreated, first.status, first.body)
	require.Equal(t, first.body, g.insist(short, "k", body).body)
	for _, by := range jumps() {
		require.NoError(t, g.moveClock(by))
		before := time.Now().Add(by).Truncate(time.Second)
		date, err := g.date()
		require.NoError(t, err)
		require.WithinRange(t, date, before, time.Now().Add(by), "the clock was moved")
		again := g.insist(long, "k", body)
		require.Equal(t, answer{first.status, first.body, true}, again)
		want := http.StatusCreated
		if by >= time.Hour {
			want = http.StatusUnauthorized
		}
		a := g.insist(short, "k", body)
		require.Equal(t, want, a.status, "with a token for half an hour, moved by %v: %s", by, a.body)
	}
	require.NoError(t, g.stop())
}
