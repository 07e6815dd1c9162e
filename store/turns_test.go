package store

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/order"
)

// sentLocks notes the statements that lock users' rows, and counts COMMITs.
type sentLocks struct {
	mu      sync.Mutex
	locks   []string
	commits int
}

func watchLocks(proxy *faultproxy.MySQLProxy) *sentLocks {
	s := &sentLocks{}
	proxy.OnQuery(func(q string) faultproxy.Action {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case strings.HasPrefix(q, "SELECT user_id, balance"):
			s.locks = append(s.locks, q)
		case q == commitText:
			s.commits++
		}
		return faultproxy.Pass
	})
	return s
}

func (s *sentLocks) so() (locks []string, commits int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.locks), s.commits
}

// waitFor waits until so many were sent.
func (s *sentLocks) waitFor(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		locks, _ := s.so()
		return len(locks) >= n
	}, time.Minute, time.Millisecond)
}

// turn is a worker with held users, whose commands it decides, and others who come.
type turn struct {
	*harness
	*worker
	sent    *sentLocks
	release func()
}

// newTurn locks the users whose names begin with "held".
func newTurn(t *testing.T, dsn string, users []string, changes ...func(*Options)) *turn {
	t.Helper()
	patient := func(o *Options) { o.ReadTimeout, o.WaitTimeout = time.Minute, 5*time.Minute }
	h, proxy := behindProxy(t, dsn, append(changes, patient)...)
	var held []*pending
	for _, user := range users {
		account(t, h, user, 100_00)
		if strings.HasPrefix(user, "held") {
			held = append(held, &pending{cmd: command(t, user, "theirs", potsticker(1_00))})
		}
	}
	theirs, err := h.begin(t.Context(), &query{})
	require.NoError(t, err)
	release := sync.OnceFunc(theirs.end)
	t.Cleanup(release)
	require.NoError(t, theirs.lockUsers(newView(), held, h.d.forUpdate))
	w := &worker{s: h.Store, stop: t.Context(), queue: make(chan *pending, 10)}
	return &turn{h, w, watchLocks(proxy), release}
}

// come sends commands of users to the worker's queue.
func (w *turn) come(t *testing.T, users ...string) (come []*pending) {
	t.Helper()
	for _, user := range users {
		p := started(command(t, user, "k", potsticker(1_00)))
		p.phase.Store(phaseWaiting)
		require.True(t, w.join(p))
		come = append(come, p)
	}
	return come
}

// The neighbours of somebody whose row is held wait for it once, also when there is
// somebody before them whose row is held.
func TestNeighboursOfHeldUsersGoBeforeAnythingIsWaitedFor(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		w := newTurn(t, dsn, []string{"held-0", "held-1", "bob"})
		come := w.come(t, "held-1", "bob")
		group := []*pending{started(command(t, "held-0", "k", potsticker(1_00)))}
		var decided sync.WaitGroup
		decided.Go(func() { w.decide(group) })
		require.Equal(t, "created", kinds([]result{<-come[1].done}))
		sent, _ := w.sent.so()
		require.Contains(t, sent[1], "'bob'")
		require.Contains(t, sent[2], "SKIP LOCKED")
		w.release()
		decided.Wait()
		require.Equal(t, "created created", kinds([]result{<-group[0].done, <-come[0].done}))
		requireSound(t, w.harness)
	})
}

// The commands of one user need one row, and wait for it together.
func TestCommandsOfOneUserWaitTogether(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		for _, users := range [][]string{{"held-0", "held-0", "held-0"}, {"held-0", "held-1", "held-0", "held-1"}} {
			w := newTurn(t, dsn, users)
			var group []*pending
			for i, user := range users {
				group = append(group, started(command(t, user, fmt.Sprint("k", len(users), i), potsticker(1_00))))
			}
			var decided sync.WaitGroup
			decided.Go(func() { w.decide(group) })
			w.sent.waitFor(t, 3)
			w.release()
			decided.Wait()
			for _, p := range group {
				require.Equal(t, "created", kinds([]result{<-p.done}))
			}
			_, commits := w.sent.so()
			require.LessOrEqual(t, commits, 2, "one for each user")
			requireSound(t, w.harness)
		}
	})
}

// While a row is held, those who come have as much of the time as the wait for it.
func TestThoseWhoComeHaveHalfOfTheTime(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		stands := time.Now()
		w := newTurn(t, dsn, []string{"held", "u-0", "u-1", "u-2"}, func(o *Options) {
			o.MaxBatch, o.Now = 1, func() time.Time { return stands }
		})
		come := w.come(t, "u-0", "u-1", "u-2")
		held := started(command(t, "held", "k", potsticker(1_00)))
		var decided sync.WaitGroup
		decided.Go(func() { w.decide([]*pending{held}) })
		require.Equal(t, "created created created", kinds([]result{<-come[0].done, <-come[1].done, <-come[2].done}))
		sent, _ := w.sent.so()
		for i, user := range []string{"'held'", "'u-0'", "'held'", "'u-1'", "'u-2'"} {
			require.Contains(t, sent[i], user)
		}
		w.release()
		decided.Wait()
		require.Equal(t, "created", kinds([]result{<-held.done}))
		requireSound(t, w.harness)
	})
}

// However small the groups are, and however many rows are held: whoever comes later
// is decided before anybody gives up.
func TestMoreHeldUsersThanAGroupHasHoldUpNobodyElse(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		w := newTurn(t, dsn, []string{"held-0", "held-1", "bob"}, func(o *Options) { o.MaxBatch = 1 })
		come := w.come(t, "held-1", "bob")
		group := []*pending{started(command(t, "held-0", "k", potsticker(1_00)))}
		var decided sync.WaitGroup
		decided.Go(func() { w.decide(group) })
		require.Equal(t, "created", kinds([]result{<-come[1].done}))
		w.release()
		decided.Wait()
		require.Equal(t, "created created", kinds([]result{<-group[0].done, <-come[0].done}))
		requireSound(t, w.harness)
	})
}

// Where a group has most of the users, or more articles than there are limited ones, it
// waits for none of the others.
func TestNobodyWaitsForARowThatIsNotNeeded(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		w := newTurn(t, dsn, []string{"held"})
		var rows []string
		var group []*pending
		for i := range 60 {
			user := fmt.Sprintf("u-%02d", i)
			rows = append(rows, "('"+user+"', 100.00, 100.00, UTC_TIMESTAMP(3))")
			c := command(t, user, "k", order.Line{SKU: fmt.Sprintf("sku-%02d", i), Quantity: 1, Amount: 1_00})
			group = append(group, started(c))
		}
		_, err := w.reads.ExecContext(t.Context(), "INSERT INTO users (user_id, balance, credited, created_at) VALUES "+strings.Join(rows, ","))
		require.NoError(t, err)
		for _, sku := range []string{"sku-01", "sku-02", "theirs"} {
			require.NoError(t, w.SetStock(t.Context(), sku, 10))
		}
		_, err = w.reads.ExecContext(t.Context(), "ANALYZE TABLE users, stock") // its words are passed over
		require.NoError(t, err)
		theirs, err := w.begin(t.Context(), &query{})
		require.NoError(t, err)
		end := sync.OnceFunc(theirs.end)
		defer end()
		require.NoError(t, theirs.lockStock(newView(), []*pending{{cmd: command(t, "ann", "k", order.Line{SKU: "theirs", Quantity: 1, Amount: 1_00})}}))
		before, _ := w.sent.so()
		w.decide(group)
		for _, p := range group {
			require.Equal(t, "created", kinds([]result{<-p.done}))
		}
		sent, commits := w.sent.so()
		require.Len(t, sent, len(before)+1)
		require.Equal(t, 1, commits)
		end()
		w.release()
		requireSound(t, w.harness)
	})
}
