package store

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/order"
	"github.com/oncegate/oncegate/order/ordertest"
)

func TestLifecycleKeepsTheContract(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, dsn string) {
		ordertest.RunLifecycle(t, func(t *testing.T) ordertest.LifecycleHarness {
			return openHarness(t, Options{DSN: dsn})
		})
	})
}

func TestDeferralsKeepTheContract(t *testing.T) {
	t.Parallel()
	fresh := func(name string, database func(t *testing.T) string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ordertest.RunDeferrals(t, func(t *testing.T) ordertest.DeferralsHarness {
				dsn := database(t)
				require.NoError(t, Migrate(t.Context(), Options{DSN: dsn}))
				return openHarness(t, Options{DSN: dsn})
			})
		})
	}
	fresh("SQLite", func(t *testing.T) string { return sqliteDatabase(t) })
	fresh("MySQL", func(t *testing.T) string { return testserver.MySQL(t).Database(t) })
	fresh("MariaDB", func(t *testing.T) string { return testserver.MariaDB(t).Database(t) })
}

func (h *harness) CountEvents(ctx context.Context, id order.ID, effect order.Effect) (int, error) {
	return h.count(ctx, "SELECT COUNT(*) FROM order_events WHERE order_id = ? AND ? IN ('', effect)", id[:], string(effect))
}

func (h *harness) CountRefunds(ctx context.Context, id order.ID) (int, error) {
	return h.count(ctx, "SELECT COUNT(*) FROM order_events WHERE order_id = ? AND refund_owed", id[:])
}

func (h *harness) CountMessages(ctx context.Context, consumer string) (done, parked int, err error) {
	done, err = h.count(ctx, "SELECT COUNT(*) FROM consumed_messages WHERE consumer = ?", consumer)
	if err != nil {
		return 0, 0, err
	}
	parked, err = h.count(ctx, "SELECT COUNT(*) FROM parked_messages WHERE consumer = ?", consumer)
	return done, parked, err
}

func (h *harness) CountDeferred(ctx context.Context, user string) (int, error) {
	return h.count(ctx, "SELECT COUNT(*) FROM deferred_requests WHERE user_id = ?", user)
}

// CarryOut works like [Store.RunDeferred], until there is nothing to lease.
func (h *harness) CarryOut(ctx context.Context) error {
	for {
		worked, err := h.carryOutNext(ctx, DeferredOptions{Lease: 30 * time.Second, MaxAttempts: 5})
		if err != nil || !worked {
			return err
		}
	}
}
