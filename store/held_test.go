package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/order"
)

// A statement that waits for a lock is killed, or its session is.
func TestAKilledStatementMakesOneOrder(t *testing.T) {
	t.Parallel()
	for _, kill := range []string{"KILL QUERY", "KILL"} {
		t.Run(kill, func(t *testing.T) {
			t.Parallel()
			onServers(t, func(t *testing.T, dsn string) {
				// Nothing but the kill ends the wait.
				h, proxy := behindProxy(t, dsn, func(o *Options) {
					o.LockWaitTimeout, o.ReadTimeout, o.WaitTimeout = 50*time.Second, 55*time.Second, time.Minute
				})
				var session int
				require.NoError(t, h.writes.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&session))
				release := holdUser(t, dsn, "ann")
				defer release()
				locks := countLocks(proxy)
				answered := make(chan result, 1)
				c := command(t, "ann", "k", potsticker(1_00))
				go func() {
					ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
					defer cancel()
					d, err := h.Decide(ctx, c)
					answered <- result{d, err}
				}()
				onRawSession(t, dsn, func(db *sql.DB) {
					require.Eventually(t, func() bool {
						if locks.Load() == 1 {
							_, _ = db.ExecContext(t.Context(), fmt.Sprint(kill, " ", session)) // it may have come too early, or be gone
						}
						return locks.Load() > 1
					}, 40*time.Second, 10*time.Millisecond, "it is run again")
				})
				release()
				require.Equal(t, "created", kinds([]result{<-answered}))
				n, err := h.CountOrders(t.Context(), "ann")
				require.NoError(t, err)
				require.Equal(t, 1, n)
				requireSound(t, h)
			})
		})
	}
}

// countLocks counts the statements that lock users' rows.
func countLocks(proxy *faultproxy.MySQLProxy) *atomic.Int32 {
	var locks atomic.Int32
	proxy.OnQuery(func(q string) faultproxy.Action {
		if strings.HasPrefix(q, "SELECT user_id, balance") {
			locks.Add(1)
		}
		return faultproxy.Pass
	})
	return &locks
}

// holdUser locks a user's row as another program, until release.
func holdUser(t *testing.T, dsn, user string) (release func()) {
	t.Helper()
	return holdRow(t, dsn, "SELECT user_id FROM users WHERE user_id = ? FOR UPDATE", user)
}

func holdRow(t *testing.T, dsn, text string, key any) (release func()) {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	require.NoError(t, err)
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.ExecContext(t.Context(), text, key)
	require.NoError(t, err)
	return sync.OnceFunc(func() {
		require.NoError(t, tx.Rollback())
		require.NoError(t, db.Close())
	})
}

// Callers leave while their commands wait for a row: what they are told is true,
// and not each of them has the server wait for it.
func TestAWaitWhoseCallerLeftIsBounded(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		h, proxy := behindProxy(t, dsn)
		release := holdUser(t, dsn, "ann")
		defer release()
		locks := countLocks(proxy)
		const callers = 40
		errs := make([]error, callers)
		commands := make([]*order.Command, callers)
		for i := range callers {
			commands[i] = command(t, "ann", fmt.Sprint("k", i), potsticker(1))
		}
		for locks.Load() == 0 { // they may all have left before the worker had a session
			now := time.Now()
			var all sync.WaitGroup
			for i := range callers {
				all.Go(func() {
					ctx, cancel := context.WithDeadline(context.Background(), now.Add(time.Duration(300+5*i)*time.Millisecond))
					defer cancel()
					_, errs[i] = h.Decide(ctx, commands[i])
				})
			}
			all.Wait()
		}
		require.Less(t, locks.Load(), int32(callers/4))
		release()
		for i, err := range errs {
			require.ErrorIs(t, err, order.ErrUnavailable)
			require.Equal(t, "created", kinds(submit(t, h, commands[i])()), "nothing was made behind a lock that was not given")
		}
		n, err := h.CountOrders(t.Context(), "ann")
		require.NoError(t, err)
		require.Equal(t, callers, n)
		requireSound(t, h)
	})
}

// A gateway that is frozen with a user's row holds up nobody for longer than a
// session of its may idle: until then whoever needs the row hears in time that it
// was not made.
func TestAFrozenGatewayLosesItsLocks(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		o := Options{DSN: dsn, Workers: 1, LockWaitTimeout: time.Second, ReadTimeout: 2 * time.Second, WaitTimeout: 8 * time.Second}
		frozen, h := openHarness(t, o), openHarness(t, o)
		account(t, h, "ann", 100_00)
		account(t, h, "bob", 100_00)
		held, err := frozen.begin(t.Context(), &query{})
		require.NoError(t, err)
		defer held.end()
		require.NoError(t, held.lockUsers(newView(), []*pending{{cmd: command(t, "ann", "other", potsticker(1_00))}}, " FOR UPDATE"))

		try := func(user string) error {
			ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
			defer cancel()
			_, err := h.Decide(ctx, command(t, user, "k", potsticker(1_00)))
			return err
		}
		err = try("ann")
		require.ErrorIs(t, err, order.ErrUnavailable)
		require.NotEqual(t, order.OutcomeRejected, order.OutcomeOf(err))
		n, err := h.CountOrders(t.Context(), "ann")
		require.NoError(t, err)
		require.Zero(t, n, "whichever is said of it")
		require.Eventually(t, func() bool { return try("ann") == nil }, ample, time.Millisecond, "the server ends the session")
		require.Equal(t, "created", kinds(submit(t, h, command(t, "bob", "k", potsticker(1_00)))()))
		requireSound(t, h)
	})
}

// However many users of a group somebody has, the others of it wait for one of them,
// and those who come later for none.
func TestHeldUsersHoldUpNobodyElse(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		h, proxy := behindProxy(t, dsn, patient)
		account(t, h, "bob", 100_00)
		var held []*pending
		for i := range 3 {
			user := fmt.Sprint("a-held-", i)
			account(t, h, user, 100_00)
			held = append(held, started(command(t, user, "k", potsticker(1_00))))
		}
		theirs, err := h.begin(t.Context(), &query{})
		require.NoError(t, err)
		release := sync.OnceFunc(theirs.end)
		defer release()
		require.NoError(t, theirs.lockUsers(newView(), held, h.d.forUpdate))
		var mu sync.Mutex
		var locks []string
		proxy.OnQuery(func(q string) faultproxy.Action {
			if strings.HasPrefix(q, "SELECT user_id, balance") {
				mu.Lock()
				locks = append(locks, q)
				mu.Unlock()
			}
			return faultproxy.Pass
		})
		ann, bob := started(command(t, "ann", "k", potsticker(1_00))), started(command(t, "bob", "k", potsticker(1_00)))
		bob.phase.Store(phaseWaiting)
		w := &worker{s: h.Store, stop: t.Context(), queue: make(chan *pending, 1)}
		require.True(t, w.join(bob))
		var decided sync.WaitGroup
		decided.Go(func() { w.decide(append(slices.Clone(held), ann)) })
		require.Equal(t, "created created", kinds([]result{<-ann.done, <-bob.done}))
		mu.Lock()
		sent := slices.Clone(locks)
		mu.Unlock()
		require.Contains(t, sent[1], "'ann'", "the first waits, the second does not")
		require.Contains(t, sent[2], "'bob'")
		release()
		decided.Wait()
		require.Equal(t, "created created created", kinds([]result{<-held[0].done, <-held[1].done, <-held[2].done}))
		requireSound(t, h)
	})
}

// Most of those who are passed over were locked for a moment only, by others who
// decide. One by one they would keep the worker from whole groups for as long as
// there are more of them than it decides.
func TestWhoWasPassedOverStaysTogether(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		h, proxy := behindProxy(t, dsn, patient)
		lock := func(group ...*pending) (release func()) {
			theirs, err := h.begin(t.Context(), &query{})
			require.NoError(t, err)
			release = sync.OnceFunc(theirs.end)
			t.Cleanup(release)
			require.NoError(t, theirs.lockUsers(newView(), group, h.d.forUpdate))
			return release
		}
		var group []*pending
		for _, user := range []string{"a-held", "m-0", "m-1", "m-2"} {
			account(t, h, user, 100_00)
			group = append(group, started(command(t, user, "k", potsticker(1_00))))
		}
		held, moment := group[0], group[1:]
		release, soon := lock(held), lock(moment...)
		var attempts, alone atomic.Int64
		free := make(chan struct{})
		proxy.OnQuery(func(q string) faultproxy.Action {
			if !strings.HasPrefix(q, "SELECT user_id, balance") || !strings.Contains(q, "'m-0'") {
				return faultproxy.Pass
			}
			if !strings.Contains(q, "'m-1'") {
				alone.Add(1)
			}
			if !strings.Contains(q, "'ann'") && attempts.Add(1) > 2 { // behind those that wait and that pass over, the moment is over
				return faultproxy.DelayForward{Until: free}
			}
			return faultproxy.Pass
		})
		ann := started(command(t, "ann", "k", potsticker(1_00)))
		w := &worker{s: h.Store, stop: t.Context(), queue: make(chan *pending)}
		var decided sync.WaitGroup
		decided.Go(func() { w.decide(append(slices.Clone(group), ann)) })
		require.Equal(t, "created", kinds([]result{<-ann.done}))
		soon()
		close(free)
		require.Equal(t, "created created created", kinds([]result{<-moment[0].done, <-moment[1].done, <-moment[2].done}))
		require.Zero(t, alone.Load(), "attempts with one of them alone")
		release()
		decided.Wait()
		require.Equal(t, "created", kinds([]result{<-held.done}))
		requireSound(t, h)
	})
}

// started is a command that a worker has taken.
func started(c *order.Command) *pending {
	p := &pending{cmd: c, ids: order.NewIDs(time.Now(), len(c.Lines)), deadline: time.Now().Add(2 * time.Minute), done: make(chan result, 1)}
	p.start()
	return p
}

// A COMMIT is not answered; a later attempt finds what it has made, and fails for
// the sake of somebody else. It is not said that nothing was made.
func TestWhatWasFoundIsNeverDeniedForANeighboursSake(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		h, proxy := behindProxy(t, dsn, patient)
		account(t, h, "bob", 1)
		var lost atomic.Bool
		proxy.OnQuery(func(q string) faultproxy.Action {
			switch {
			case q == commitText && !lost.Swap(true):
				return faultproxy.Swallow
			case lost.Load() && strings.HasPrefix(q, "SELECT sku"):
				return faultproxy.CutBefore
			}
			return faultproxy.Pass
		})
		ann, bob := started(command(t, "ann", "k", potsticker(1_00))), started(command(t, "bob", "", potsticker(1_00)))
		w := &worker{s: h.Store, stop: t.Context(), queue: make(chan *pending)}
		w.decide([]*pending{ann, bob}) // bob cannot pay, of which nothing is written
		proxy.OnQuery(nil)
		theirs := <-bob.done
		require.Equal(t, order.OutcomeNotCommitted, order.OutcomeOf(theirs.err))
		mine := <-ann.done
		require.ErrorIs(t, mine.err, order.ErrUnavailable)
		require.Equal(t, order.OutcomeUnknown, order.OutcomeOf(mine.err))
		n, err := h.CountOrders(t.Context(), "ann")
		require.NoError(t, err)
		require.Equal(t, 1, n)
	})
}

// A COMMIT is not answered; a later attempt finds what it has made, and fails for the
// sake of somebody else. Without a key the next one knows its order by its number
// alone, and does not decide against itself.
func TestWhatWasFoundIsNotDecidedAgain(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		h, proxy := behindProxy(t, dsn, patient)
		account(t, h, "bob", 1)
		var lost, cut atomic.Bool
		proxy.OnQuery(func(q string) faultproxy.Action {
			switch {
			case q == commitText && !lost.Swap(true):
				return faultproxy.Swallow
			case lost.Load() && strings.HasPrefix(q, "SELECT sku") && !cut.Swap(true):
				return faultproxy.CutBefore
			}
			return faultproxy.Pass
		})
		ann := started(command(t, "ann", "", order.Line{SKU: "x", Quantity: 1, Amount: 60_00, ExternalOrderNo: "n"}))
		bob := started(command(t, "bob", "", potsticker(1_00)))
		w := &worker{s: h.Store, stop: t.Context(), queue: make(chan *pending)}
		w.decide([]*pending{ann, bob}) // bob cannot pay, of which nothing is written
		require.True(t, cut.Load())
		require.Equal(t, "created rejected", kinds([]result{<-ann.done, <-bob.done}))
		n, err := h.CountOrders(t.Context(), "ann")
		require.NoError(t, err)
		require.Equal(t, 1, n)
		requireSound(t, h)
	})
}
