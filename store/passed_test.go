package store

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/order"
)

// A COMMIT is under way, and its session has the row of its user. That the row of
// somebody else was given says nothing of it.
func TestWhatWasPassedOverIsNotProvenAbsent(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		h, proxy := behindProxy(t, dsn, func(o *Options) { o.ReadTimeout, o.WaitTimeout = 3*time.Second, time.Minute })
		account(t, h, "cid", 100_00)
		release := holdUser(t, dsn, "cid")
		defer release()
		deliver := make(chan struct{})
		var commits atomic.Int64
		proxy.OnQuery(func(q string) faultproxy.Action {
			if q != commitText {
				return faultproxy.Pass
			}
			if commits.Add(1) > 1 {
				return faultproxy.Pass
			}
			release()
			return faultproxy.DelayForward{Until: deliver, For: time.Minute}
		})
		ann, cid := started(command(t, "ann", "k", potsticker(1_00))), started(command(t, "cid", "k", potsticker(1_00)))
		ann.deadline = time.Now().Add(10 * time.Second)
		w := &worker{s: h.Store, stop: t.Context(), queue: make(chan *pending)}
		w.decide([]*pending{ann, cid})
		proxy.OnQuery(nil)
		require.Equal(t, "created", kinds([]result{<-cid.done}))
		require.Equal(t, order.OutcomeUnknown, order.OutcomeOf((<-ann.done).err))
		close(deliver)
		require.Eventually(t, func() bool {
			n, err := h.CountOrders(t.Context(), "ann")
			return err == nil && n == 1
		}, 20*time.Second, 10*time.Millisecond, "it comes late")
		requireSound(t, h)
	})
}
