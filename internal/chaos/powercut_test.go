//go:build linux

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/loadtest/scenario"
	"github.com/oncegate/oncegate/loadtest/verdict"
)

// TestAPowerCutLosesNothingAnswered: the disk of the database loses all that was
// not flushed to it, time and again, under traffic.
func TestAPowerCutLosesNothingAnswered(t *testing.T) { //nolint:paralleltest // a run has the machine to itself
	seed, engines := aside(t, "MariaDB")
	for _, engine := range engines { //nolint:paralleltest // as above
		t.Run(engine, func(t *testing.T) {
			of := scarce()
			of.ownDisk = true
			w := newWorldOf(t, of, engine, nemesisProgram(t))
			cut := &fault{"power cut", inDatabase, func(w *world, _ event) func() {
				w.disk.CutPower()
				return w.database.Restart
			}}
			r := rand.New(rand.NewPCG(seed, 4))
			var plan []step
			for total := time.Duration(0); len(plan) < 3 || total < asideFor(); {
				s := step{hold: between(r, 100*time.Millisecond, 2*time.Second), gap: between(r, time.Second, 3*time.Second), events: []event{{fault: cut}}}
				total += s.hold + s.gap
				plan = append(plan, s)
			}
			w.run(seed, plan)
		})
	}
}

// TestAPowerCutIsSeenWhereSettingsPermitIt: a server that answers before it has
// flushed loses answered orders by such a cut, and the verdict says so. Once a
// second it flushes all the same, so that one cut may come too early.
func TestAPowerCutIsSeenWhereSettingsPermitIt(t *testing.T) { //nolint:paralleltest // as above
	seed, engines := aside(t, "MySQL")
	for _, engine := range engines { //nolint:paralleltest // as above
		t.Run(engine, func(t *testing.T) {
			of := scarce()
			of.ownDisk = true
			w := newWorldOf(t, of, engine, nemesisProgram(t))
			lost, cuts := 0, 0
			for ; lost == 0 && cuts < 10; cuts++ {
				lost = w.lostByACut(fmt.Sprintf("p%dx%d", seed, cuts), seed)
			}
			t.Logf("%d answered orders are lost by cut number %d", lost, cuts)
			require.Positive(t, lost, "the loss is there to be seen")
		})
	}
}

// lostByACut cuts the power of a server that does not flush, and counts the orders
// that were answered and are gone.
func (w *world) lostByACut(run string, seed uint64) int {
	w.t.Helper()
	// The binary log stays on the safe side: MySQL crashed once while it recovered
	// without either.
	w.restore("SET GLOBAL innodb_flush_log_at_trx_commit = 0")
	had := number(w.t, w.admin, "SELECT COUNT(*) FROM orders")
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	tr := w.begin(ctx, run, seed, *runRate)
	w.eventually(func() error {
		if n := number(w.t, w.admin, "SELECT COUNT(*) FROM orders"); n < had+50 {
			return fmt.Errorf("%d orders", n)
		}
		return nil
	})
	w.disk.CutPower()
	cancel()
	<-tr.sent
	tr.driver.Stop() // nobody asks again for what is gone
	w.database.Restart()
	w.heal()
	j := w.judge(tr, tr.finish(), verdict.Scope{KeyPrefix: scenario.KeyPrefix(run)})
	return j.findings.Counts[verdict.Lost]
}
