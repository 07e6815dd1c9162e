//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/loadtest/history"
	"github.com/oncegate/oncegate/loadtest/measure"
	"github.com/oncegate/oncegate/loadtest/scenario"
	"github.com/oncegate/oncegate/loadtest/verdict"
)

const (
	soakReceipts = time.Minute // ttl.receipt, so that what Redis holds levels off
	soakCalm     = 8 * time.Second
	soakClients  = 768 // that look for the ceiling
)

// plentiful is a deployment that an hour does not empty.
func plentiful() scale {
	return scale{
		users: 500, cents: 1_000_000_000_00, stock: 20_000,
		settings:    map[string]string{"ONCEGATE_TTL__RECEIPT": soakReceipts.String()},
		ownBalancer: true,
	}
}

// soak is a long run, in slices, each of which is judged when it is over: so the
// history of one is all that is remembered.
type soak struct {
	*world
	seed     uint64
	samples  []sample
	so       sample // what has been counted so far
	injected map[string]int
}

// TestALongRunLeavesNothingBehind: mixed traffic at half of what the deployment
// can do, with faults, and what the gateways, the database and Redis hold of it.
func TestALongRunLeavesNothingBehind(t *testing.T) { //nolint:paralleltest // a run has the machine to itself
	if *soakFor == 0 {
		t.Skip("it is for make soak")
	}
	seed := *runSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	engine := *onEngine
	if engine == "" {
		engine = "MySQL"
	}
	t.Logf("seed %d; repeat with -engine %s -soak %v -seed %d", seed, engine, *soakFor, seed)
	s := &soak{
		world: newWorldOf(t, plentiful(), engine, nemesisProgram(t)),
		seed:  seed, injected: map[string]int{},
	}
	begun := time.Now()
	s.sampleNow("before", 0)
	ceiling := s.ceiling(min(20*time.Second, *soakFor/10))
	rate := ceiling / 2
	defer func() { t.Logf("faults: %s\n\n%s", counts(s.injected), s.table(rate)) }()
	t.Logf("the deployment takes %.0f customers per second; %.0f come", ceiling, rate)
	slice := min(max(*soakFor/20, 20*time.Second), 3*time.Minute)
	for n := 1; time.Since(begun) < *soakFor && !t.Failed(); n++ {
		s.slice(n, slice, rate, begun)
	}
	s.heal()
	s.requireConserved()
	s.requireNoMarks()
	s.requireNothingOpen()
	s.sampleNow("after", time.Since(begun))
	s.requireNothingLeft()
	s.requireNoGrowth(rate)
}

// soakFaults are all of them, but the first gateway lives through the whole run:
// one that starts again cannot show what it gathers.
func soakFaults() []fault {
	faults := slices.DeleteFunc(allFaults(), func(f fault) bool {
		return f.name == "all gateways killed" || !strings.Contains(f.name, *only)
	})
	for i, f := range faults {
		if f.name == "gateway killed" || f.name == "gateway stopped" {
			faults[i].begin = func(w *world, e event) func() {
				e.site = 1 + e.site%(gatewayCount-1)
				return f.begin(w, e)
			}
		}
	}
	return faults
}

// ceiling measures how many customers per second the deployment takes when as
// many as it takes come, and judges what they heard, as of any slice.
func (s *soak) ceiling(length time.Duration) float64 {
	run := s.name(0)
	tr := s.newTraffic(run, s.seed)
	go func() {
		defer close(tr.sent)
		tr.driver.Closed(context.Background(), soakClients, length)
	}()
	<-tr.sent
	settled := 0
	for _, c := range tr.log.Cases() {
		if len(c.Records()) > 0 {
			settled++
		}
	}
	s.settle(tr, run)
	return float64(settled) / length.Seconds()
}

func (s *soak) name(slice int) string { return fmt.Sprintf("s%xn%d", s.seed&0xffffffff, slice) }

// slice sends customers for a while, with faults and then without, takes a sample
// while they still come, and judges. What the connections of customers take goes
// up and down with them, and is counted when they have gone.
func (s *soak) slice(n int, length time.Duration, rate float64, begun time.Time) {
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	run := s.name(n)
	tr := s.begin(ctx, run, s.seed+uint64(n), rate)
	for _, step := range draw(s.seed+uint64(n), length-soakCalm, soakFaults()) {
		s.so.faults += s.suffer(ctx, step, s.injected)
		s.awaitCalm(ctx, tr, rate)
	}
	s.heal()
	pause(ctx, soakCalm)
	now := s.sampleOf(time.Since(begun))
	cancel()
	s.settle(tr, run)
	s.requireNothingOpen()
	now.goroutines, now.files = s.gauge("go_goroutines"), s.gauge("process_open_fds")
	s.keep(fmt.Sprintf("%.1f", now.at.Minutes()), now)
}

// awaitCalm waits until whom a fault held up has been served: no more requests are
// under way than customers come within a second. Under half the load that the
// deployment takes it has to come to that by itself.
func (s *soak) awaitCalm(ctx context.Context, tr *traffic, rate float64) {
	ctx, cancel := context.WithTimeout(ctx, recovery)
	defer cancel()
	for tick := every(ctx, 50*time.Millisecond); tick(); {
		if tr.driver.Progress().InFlight <= int64(rate) {
			return
		}
	}
	s.t.Errorf("%v after a fault %d requests are under way", recovery, tr.driver.Progress().InFlight)
}

// settle waits until every customer has an answer, and judges.
func (s *soak) settle(tr *traffic, run string) {
	cases := tr.finish()
	s.requireAnswers(cases)
	j := s.judge(tr, cases, verdict.Scope{KeyPrefix: scenario.KeyPrefix(run)})
	s.so.keys += len(cases)
	for _, c := range cases {
		for _, r := range c.Records() {
			if r.Op != history.Status || r.HTTP != 0 {
				s.so.requests++
			}
			if r.Outcome == measure.Unavailable {
				s.so.unavailable++
			}
		}
	}
	s.so.checked += j.linearity.Checked + j.linearity.Trivial
	s.so.violations += j.findings.Total()
	for _, f := range j.findings.List {
		s.t.Errorf("%s: key %s of %s: %s", f.Kind, f.Key, f.User, f.Detail)
	}
	require.Zero(s.t, j.linearity.Unknown, "every history was decided")
}

// requireNothingOpen waits until the deployment is at rest.
func (s *soak) requireNothingOpen() {
	s.t.Helper()
	witness := s.sites[0]
	s.eventually(func() error {
		n, err := witness.goroutines()
		if err == nil && n > s.atRest+goroutineSlack {
			err = errors.New("the gateway is not at rest")
		}
		return err
	})
}
