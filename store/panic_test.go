package store

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/order"
	"github.com/oncegate/oncegate/order/ordertest"
)

// fragile panics at one SKU.
type fragile struct{ ordertest.PlainRenderer }

func (f fragile) Created(op order.Operation, orders []order.Order) order.Response {
	if orders[0].Line.SKU == "hot" {
		panic("too hot to render")
	}
	return f.PlainRenderer.Created(op, orders)
}

func TestAPanicCostsNobodyButItsOwnCommand(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, dsn string) {
		h := openHarness(t, unhurried(Options{DSN: dsn, Workers: 1, Renderer: fragile{}}))
		account(t, h, "ann", 30_00)
		account(t, h, "bob", 30_00)
		release := holdWorker(t, h)
		wait := submit(t, h,
			command(t, "ann", "k1", potsticker(1_00)),
			command(t, "ann", "k2", order.Line{SKU: "hot", Quantity: 1, Amount: 1_00}),
			command(t, "bob", "k3", potsticker(1_00)),
		)
		release()
		results := wait()
		require.Equal(t, "created created", kinds([]result{results[0], results[2]}))
		require.ErrorIs(t, results[1].err, order.ErrInternal)
		require.Equal(t, order.OutcomeNotCommitted, order.OutcomeOf(results[1].err), "it is proven: nothing was committed")
		n, err := h.CountOrders(t.Context(), "ann")
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Equal(t, "created", kinds(submit(t, h, command(t, "ann", "k4", potsticker(1_00)))()), "the worker lives")
	})
}

func TestAPanicBehindACommitLeavesItsOrdersToBeFound(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		var armed atomic.Bool
		h, proxy := behindProxy(t, dsn, func(o *Options) {
			*o = unhurried(*o)
			o.Now = func() time.Time {
				if armed.Swap(false) {
					panic("the clock has stopped")
				}
				return time.Now()
			}
		})
		account(t, h, "bob", 30_00)
		account(t, h, "cid", 30_00)
		release := holdWorker(t, h)
		var meant atomic.Bool
		proxy.OnQuery(func(q string) faultproxy.Action {
			switch {
			case strings.HasPrefix(q, "INSERT INTO orders"):
				meant.Store(strings.Contains(q, "'ann'") && strings.Contains(q, "'bob'") || strings.Contains(q, "'cid'"))
			case q == commitText && meant.Swap(false):
				armed.Store(true) // the next to look is the worker, when it has the answer
			}
			return faultproxy.Pass
		})
		wait := submit(t, h, command(t, "ann", "", potsticker(1_00)), command(t, "bob", "k", potsticker(1_00)))
		release()
		require.Equal(t, "created created", kinds(wait()), "they were decided together, and then apart")

		alone := submit(t, h, command(t, "cid", "k", potsticker(1_00)))()
		require.ErrorIs(t, alone[0].err, order.ErrInternal)
		require.Equal(t, order.OutcomeUnknown, order.OutcomeOf(alone[0].err))
		require.Equal(t, "replayed", kinds(submit(t, h, command(t, "cid", "k", potsticker(1_00)))()))
		for _, user := range []string{"ann", "bob", "cid"} {
			n, err := h.CountOrders(t.Context(), user)
			require.NoError(t, err)
			require.Equal(t, 1, n, user)
		}
	})
}
