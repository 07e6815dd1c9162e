package store

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/order"
)

// Users for whom an account is opened wait for a row that somebody has: each of them
// gets its turns, and whoever needs no such row is answered meanwhile.
func TestNewUsersWhoWaitForARowTakeTurns(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		h, proxy := behindProxy(t, dsn, patient, func(o *Options) { o.ProvisionBalance = new(order.Amount(10_00)) })
		require.NoError(t, h.SetStock(t.Context(), "rare", 10))
		held, err := h.begin(t.Context(), &query{})
		require.NoError(t, err)
		require.NoError(t, held.lockStock(newView(), []*pending{{cmd: command(t, "ann", "held", order.Line{SKU: "rare", Quantity: 1, Amount: 1})}}))
		turns := map[string]*atomic.Int32{"new-1": {}, "new-2": {}}
		proxy.OnQuery(func(q string) faultproxy.Action {
			for user, n := range turns {
				if strings.HasPrefix(q, "SELECT user_id, balance") && strings.Contains(q, user) {
					n.Add(1)
				}
			}
			return faultproxy.Pass
		})
		answers := make(chan result, len(turns))
		wait := func(user string, more int32) {
			before := turns[user].Load()
			require.Eventually(t, func() bool { return turns[user].Load() >= before+more }, time.Minute, time.Millisecond, user)
		}
		for _, user := range []string{"new-1", "new-2"} {
			c := command(t, user, "k", order.Line{SKU: "rare", Quantity: 1, Amount: 1_00})
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
				defer cancel()
				d, err := h.Decide(ctx, c)
				answers <- result{d, err}
			}()
			wait(user, 2) // without an account, and with one
		}
		wait("new-1", 1)
		require.Equal(t, "created", kinds(submit(t, h, command(t, "ann", "k", potsticker(1)))()))
		held.end()
		require.Equal(t, "created created", kinds([]result{<-answers, <-answers}))
		requireSound(t, h)
	})
}

// An account is opened also while all sessions for reads are taken.
func TestOpeningAnAccountWaitsForNoReader(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, dsn string) {
		h := openHarness(t, Options{DSN: dsn, Workers: 1, ReadConns: 1, ProvisionBalance: new(order.Amount(10_00))})
		reader, err := h.reads.Conn(t.Context())
		require.NoError(t, err)
		results := submit(t, h, command(t, "new", "k", potsticker(1_00)))()
		require.NoError(t, reader.Close())
		require.Equal(t, "created", kinds(results))
	})
}

// A user whose name has no room is refused, and nobody else gets an account for it.
func TestAnAccountIsOpenedUnderItsWholeName(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		h := openHarness(t, Options{DSN: dsn, Workers: 1, ProvisionBalance: new(order.Amount(10_00))})
		name := strings.Repeat("x", order.MaxUserIDLen)
		results := submit(t, h, command(t, name+"y", "k", potsticker(1_00)))()
		require.ErrorIs(t, results[0].err, order.ErrInternal)
		require.Equal(t, order.OutcomeNotCommitted, order.OutcomeOf(results[0].err))
		n, err := h.count(t.Context(), "SELECT COUNT(*) FROM users")
		require.NoError(t, err)
		require.Zero(t, n)
	})
}
