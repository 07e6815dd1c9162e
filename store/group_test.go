package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

func command(t *testing.T, user, key string, lines ...order.Line) *order.Command {
	t.Helper()
	op := order.CreateOrder
	if len(lines) > 1 {
		op = order.CreateBatch
	}
	c, err := order.NewCommand(op, user, order.Key(key), lines)
	require.NoError(t, err)
	return c
}

func potsticker(amount order.Amount) order.Line {
	return order.Line{SKU: "potsticker", Quantity: 1, Amount: amount}
}

// account sets a balance. A disk may be slower than the limits with which a test
// has silence noticed: it is asked again then.
func account(t *testing.T, h *harness, user string, balance order.Amount) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), ample)
	defer cancel()
	err := h.SetBalance(ctx, user, balance)
	for errors.Is(err, order.ErrUnavailable) && pause(ctx, firstDelay) {
		err = h.SetBalance(ctx, user, balance)
	}
	require.NoError(t, err)
}

// ample is the time for what comes to pass at once, but for a busy machine.
const ample = time.Minute

// arriving is a context that says when its end begins to be waited for: a command
// is in the queue by then.
type arriving struct {
	context.Context
	arrived func()
}

func (a arriving) Done() <-chan struct{} {
	a.arrived()
	return a.Context.Done()
}

// submit decides commands side by side and returns their results in order.
func submit(t *testing.T, h *harness, commands ...*order.Command) func() []result {
	t.Helper()
	results := make([]chan result, len(commands))
	for i, c := range commands {
		results[i] = make(chan result, 1)
		queued := make(chan struct{})
		arrived := sync.OnceFunc(func() { close(queued) })
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), ample)
			defer cancel()
			d, err := h.Decide(arriving{ctx, arrived}, c)
			arrived() // it was refused
			results[i] <- result{d, err}
		}()
		<-queued // order of arrival is order of the list
	}
	return func() []result {
		out := make([]result, len(results))
		for i := range results {
			out[i] = <-results[i]
		}
		return out
	}
}

func (h *harness) waiting() int {
	n := 0
	for _, w := range h.ledger.byHash {
		n += len(w.queue)
	}
	return n
}

// unhurried are options with which a worker waits for a lock for as long as it
// takes a test to submit what is to become one group.
func unhurried(o Options) Options {
	o.LockWaitTimeout, o.ReadTimeout, o.WaitTimeout = 40*time.Second, 50*time.Second, 2*time.Minute
	return o
}

// holdWorker makes the only worker wait for a lock that the test has, so that
// what is submitted meanwhile becomes one group.
func holdWorker(t *testing.T, h *harness) (release func()) {
	t.Helper()
	account(t, h, "blocker", 1_00)
	ctx, cancel := context.WithTimeout(context.Background(), ample)
	conn, err := h.writes.Conn(ctx)
	require.NoError(t, err)
	if h.d.begin != "" {
		_, err = conn.ExecContext(ctx, h.d.begin)
		require.NoError(t, err)
	}
	var user string
	require.NoError(t, conn.QueryRowContext(ctx, "SELECT user_id FROM users WHERE user_id = 'blocker'"+h.d.forUpdate).Scan(&user))
	blocking := command(t, "blocker", "k", potsticker(1))
	go func() { _, _ = h.Decide(ctx, blocking) }()
	require.Eventually(t, func() bool { return h.started() }, ample, time.Millisecond, "the worker has taken the command that it will wait with")
	return func() {
		_, err := conn.ExecContext(ctx, "ROLLBACK")
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		cancel()
	}
}

// started reports whether a second session is busy: the worker's.
func (h *harness) started() bool { return h.writes.Stats().InUse > 1 && h.waiting() == 0 }

// biggestGroup is the number of commands of the largest transaction so far, as
// the histogram's buckets tell it.
func biggestGroup(t *testing.T, h *harness) float64 {
	t.Helper()
	var m dto.Metric
	require.NoError(t, h.metrics.batch.Write(&m))
	biggest, before := 0.0, uint64(0)
	for _, b := range m.GetHistogram().GetBucket() {
		if b.GetCumulativeCount() > before {
			biggest = b.GetUpperBound()
		}
		before = b.GetCumulativeCount()
	}
	return biggest
}

func kinds(results []result) string {
	var b strings.Builder
	for _, r := range results {
		if r.err != nil {
			fmt.Fprintf(&b, "[%v]", r.err)
			continue
		}
		b.WriteString(r.decision.Kind.String() + " ")
	}
	return strings.TrimSpace(b.String())
}

func TestOutcomesOfOneGroupAreTheirOwn(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, dsn string) {
		h := openHarness(t, unhurried(Options{DSN: dsn, Workers: 1}))
		account(t, h, "ann", 30_00)
		account(t, h, "bob", 5_00)
		first := submit(t, h, command(t, "ann", "k0", potsticker(1_00)))()
		require.Equal(t, "created", kinds(first))

		release := holdWorker(t, h)
		wait := submit(t, h,
			command(t, "ann", "k0", potsticker(2_00)),  // another content
			command(t, "ann", "k0", potsticker(1_00)),  // a retry
			command(t, "bob", "k1", potsticker(9_00)),  // too dear
			command(t, "ann", "k2", potsticker(20_00)), // leaves 9
			command(t, "ann", "k3", potsticker(10_00)), // sees the one before it
			command(t, "bob", "k4", potsticker(5_00)),
			command(t, "bob", "k4", potsticker(5_00)), // the same key twice at once
			command(t, "nobody", "k5", potsticker(1_00)),
		)
		release()
		results := wait()
		require.ErrorIs(t, results[7].err, order.ErrUnknownUser)
		require.Equal(t, order.OutcomeNotCommitted, order.OutcomeOf(results[7].err))
		require.Equal(t, "reused replayed rejected created rejected created replayed", kinds(results[:7]))
		require.Equal(t, results[5].decision.Receipt.Response, results[6].decision.Receipt.Response)
		require.GreaterOrEqual(t, biggestGroup(t, h), 8.0, "they were decided together")
	})
}

func TestForeignWriterCostsOnlyItsOwnKey(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, dsn string) {
		h := openHarness(t, unhurried(Options{DSN: dsn, Workers: 1}))
		for _, user := range []string{"ann", "bob", "cid", "dan"} {
			account(t, h, user, 30_00)
		}
		// An import that takes no lock and keeps no record.
		foreign := func(user, key string, amount order.Amount) order.ID {
			id := order.NewID(time.Now())
			q := query{d: h.d}
			q.reset("INSERT INTO orders (" + orderColumns + ", stock_taken) VALUES (")
			q.bind(id[:])
			q.add(",")
			q.bind(user)
			q.add(",")
			q.bind(key)
			q.add(",0,NULL,'potsticker',1,")
			q.amount(amount)
			q.add(",'PAID'," + h.d.now + "," + h.d.now + ",0)")
			_, err := h.reads.ExecContext(t.Context(), string(q.text), q.args...)
			require.NoError(t, err)
			return id
		}
		id := foreign("ann", "k", 1_00)
		foreign("bob", "k", 1_00)
		// An answer that this version of the program would not write.
		require.Equal(t, "created", kinds(submit(t, h, command(t, "dan", "old", potsticker(1)))()))
		_, err := h.reads.ExecContext(t.Context(), "UPDATE idempotency_records SET response_body = ?", []byte("as it was written"))
		require.NoError(t, err)

		release := holdWorker(t, h)
		wait := submit(t, h,
			command(t, "ann", "k", potsticker(1_00)), // what the import wrote
			command(t, "bob", "k", potsticker(2_00)), // something else
			command(t, "cid", "k", potsticker(3_00)),
			command(t, "dan", "k", potsticker(4_00)),
			command(t, "dan", "old", potsticker(1)),
		)
		release()
		results := wait()
		require.Equal(t, "replayed reused created created replayed", kinds(results))
		require.Equal(t, "as it was written", string(results[4].decision.Receipt.Response.Body), "its neighbours' trouble is not its own")
		require.Contains(t, string(results[0].decision.Receipt.Response.Body), id.String())
		for user, want := range map[string]order.Amount{"ann": 30_00, "bob": 30_00, "cid": 27_00, "dan": 25_99} {
			balance, err := h.Balance(t.Context(), user)
			require.NoError(t, err)
			require.Equal(t, want, balance, user)
		}
	})
}

func TestLockedUserDelaysOnlyItself(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		h := openHarness(t, Options{DSN: dsn, Workers: 1})
		account(t, h, "ann", 30_00)
		account(t, h, "bob", 30_00)
		release := holdWorker(t, h)
		// The blocker's row stays locked until its neighbours have their answers.
		ann := submit(t, h, command(t, "ann", "k", potsticker(1_00)))
		blocked := submit(t, h, command(t, "blocker", "k2", potsticker(1)))
		bob := submit(t, h, command(t, "bob", "k", potsticker(1_00)))
		require.Equal(t, "created", kinds(ann()))
		require.Equal(t, "created", kinds(bob()))
		release()
		require.Equal(t, "created", kinds(blocked()))
		// The command that met the lock first had its neighbours decided before it
		// was given up for lost.
		require.Eventually(t, func() bool {
			n, err := h.CountOrders(t.Context(), "blocker")
			return err == nil && n == 2
		}, ample, 10*time.Millisecond)
	})
}

func TestFullQueueSaysSo(t *testing.T) {
	t.Parallel()
	h := openHarness(t, unhurried(Options{DSN: sqliteDatabase(t), Queue: 2}))
	account(t, h, "ann", 30_00)
	release := holdWorker(t, h)
	wait := submit(t, h, command(t, "ann", "k1", potsticker(1)), command(t, "ann", "k2", potsticker(1)))
	ctx, cancel := context.WithTimeout(t.Context(), ample)
	defer cancel()
	_, err := h.Decide(ctx, command(t, "ann", "k3", potsticker(1)))
	require.ErrorIs(t, err, order.ErrOverloaded)
	require.Equal(t, order.OutcomeNotCommitted, order.OutcomeOf(err))
	release()
	require.Equal(t, "created created", kinds(wait()))
}

func TestWithdrawnCommandIsNeverStarted(t *testing.T) {
	t.Parallel()
	h := openHarness(t, unhurried(Options{DSN: sqliteDatabase(t)}))
	account(t, h, "ann", 30_00)
	release := holdWorker(t, h)
	ctx, cancel := context.WithCancel(context.Background())
	ctx, cancelTimeout := context.WithTimeout(ctx, ample)
	defer cancelTimeout()
	answer := make(chan error, 1)
	c := command(t, "ann", "k", potsticker(1))
	go func() {
		_, err := h.Decide(ctx, c)
		answer <- err
	}()
	require.Eventually(t, func() bool { return h.waiting() == 1 }, ample, time.Millisecond)
	cancel()
	err := <-answer
	require.ErrorIs(t, err, order.ErrUnavailable)
	require.Equal(t, order.OutcomeNotCommitted, order.OutcomeOf(err))
	release()
	require.Equal(t, "created", kinds(submit(t, h, command(t, "ann", "k2", potsticker(1)))()))
	n, err := h.CountOrders(t.Context(), "ann")
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

func TestCloseAnswersWhatWaits(t *testing.T) {
	t.Parallel()
	o := unhurried(Options{DSN: sqliteDatabase(t)})
	h := openAlone(t, o)
	account(t, h, "ann", 30_00)
	release := holdWorker(t, h)
	var commands []*order.Command
	for i := range 20 {
		commands = append(commands, command(t, "ann", fmt.Sprintf("k%d", i), potsticker(1)))
	}
	wait := submit(t, h, commands...)
	release()
	ctx, cancel := context.WithTimeout(t.Context(), ample)
	defer cancel()
	require.NoError(t, h.Close(ctx))
	require.Equal(t, strings.TrimSpace(strings.Repeat("created ", 20)), kinds(wait()))
	_, err := h.Decide(ctx, commands[0])
	require.ErrorIs(t, err, order.ErrShuttingDown)
}

func TestCloseOutOfTimeTellsTheTruth(t *testing.T) {
	t.Parallel()
	o := unhurried(Options{DSN: sqliteDatabase(t)})
	h := openAlone(t, o)
	account(t, h, "ann", 30_00)
	release := holdWorker(t, h)
	wait := submit(t, h, command(t, "ann", "k", potsticker(1)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	closed := make(chan error, 1)
	go func() { closed <- h.ledger.close(ctx) }()
	r := wait()
	require.Error(t, r[0].err)
	require.Equal(t, order.OutcomeNotCommitted, order.OutcomeOf(r[0].err))
	release()
	require.Error(t, <-closed)
	ctx, cancel = context.WithTimeout(t.Context(), ample)
	defer cancel()
	require.NoError(t, h.Close(ctx))
}

func TestRowsAboveTheLimitGoIntoTheNextTransaction(t *testing.T) {
	t.Parallel()
	h := openHarness(t, unhurried(Options{DSN: sqliteDatabase(t), MaxRows: 4}))
	account(t, h, "ann", 30_00)
	lines := func(n int, number string) []order.Line {
		all := make([]order.Line, n)
		for i := range all {
			all[i] = order.Line{SKU: "x", Quantity: 1, Amount: 1, ExternalOrderNo: fmt.Sprintf("%s-%d", number, i)}
		}
		return all
	}
	release := holdWorker(t, h)
	wait := submit(t, h, command(t, "ann", "a", lines(3, "a")...), command(t, "ann", "b", lines(3, "b")...), command(t, "ann", "c", lines(9, "c")...))
	release()
	require.Equal(t, "created created created", kinds(wait()))
	require.InDelta(t, 1, biggestGroup(t, h), 0)
}
