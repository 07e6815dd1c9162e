package ordertest_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncegate/oncegate/order/ordertest"
)

// harness is the fake under its own contract.
type harness struct{ *ordertest.Ledger }

func (h harness) Sibling(*testing.T) ordertest.Harness { return harness{h.Ledger.Sibling()} }

func TestLedgerKeepsTheContract(t *testing.T) {
	t.Parallel()
	ordertest.RunLedger(t, func(_ *testing.T, o ordertest.LedgerOptions) ordertest.Harness {
		l := ordertest.NewLedger(ordertest.PlainRenderer{}, time.Now)
		if o.RememberRejections != nil {
			l.RememberRejections(*o.RememberRejections)
		}
		l.ProvisionUsers(o.ProvisionBalance)
		return harness{l}
	})
}

func TestLifecycleKeepsTheContract(t *testing.T) {
	t.Parallel()
	ordertest.RunLifecycle(t, func(*testing.T) ordertest.LifecycleHarness {
		return harness{ordertest.NewLedger(ordertest.PlainRenderer{}, time.Now)}
	})
}

func TestDeferralsKeepTheContract(t *testing.T) {
	t.Parallel()
	ordertest.RunDeferrals(t, func(*testing.T) ordertest.DeferralsHarness {
		return harness{ordertest.NewLedger(ordertest.PlainRenderer{}, ticking())}
	})
}

// ticking is a clock on which no two moments are the same.
func ticking() func() time.Time {
	start := time.Now()
	var ticks atomic.Int64
	return func() time.Time { return start.Add(time.Duration(ticks.Add(1)) * time.Millisecond) }
}
