//go:build linux

package chaos

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
)

// jump is longer than anything lives: receipts, and answers until they are compacted.
const jump = 25 * time.Hour

// TestClocksThatJumpChangeNothing: the clocks of Redis and of the database jump by
// a day and back under traffic, so that everything expires at once, or lives for
// a day more; records are dated by such a clock, and compacted by it.
func TestClocksThatJumpChangeNothing(t *testing.T) { //nolint:paralleltest // a run has the machine to itself
	seed, engines := aside(t, "MySQL")
	for _, engine := range engines { //nolint:paralleltest // as above
		t.Run(engine, func(t *testing.T) {
			// Nobody is refused: compaction forgets refusals, so that one which runs
			// a day too early has a customer's last look find nothing.
			of := scale{users: userCount, cents: 1_000_000_000_00, stock: 1_000_000}
			of.ownClocks = true
			// Shorter than a jump: what was answered a moment ago is compacted.
			of.settings = map[string]string{"ONCEGATE_RETENTION__RESPONSES": "24h"}
			w := newWorldOf(t, of, engine, nemesisProgram(t))
			w.run(seed, w.jumps(seed))
			require.Positive(t, number(t, w.admin,
				"SELECT COUNT(*) FROM idempotency_records WHERE status = 2 AND response_body IS NULL"), "answers were compacted")
		})
	}
}

// jumps is the plan: each kind once, and then any until the time is over.
func (w *world) jumps(seed uint64) (plan []step) {
	clock := func(name string, c *testserver.Clock, by time.Duration, meanwhile func()) fault {
		return fault{name, inRedis, func(*world, event) func() {
			c.Move(by)
			meanwhile()
			return func() { c.Move(0) }
		}}
	}
	nothing := func() {}
	compact := func() {
		_, code := w.sites[0].command("compact")
		require.Zero(w.t, code, "compact")
	}
	kinds := []fault{
		clock("redis a day ahead", w.redisClock, jump, nothing),
		clock("redis a day behind", w.redisClock, -jump, nothing),
		clock("database a day ahead", w.databaseClock, jump, compact),
		clock("database a day behind", w.databaseClock, -jump, compact),
		{"database in another time zone", inDatabase, func(w *world, _ event) func() {
			w.restore("SET GLOBAL time_zone = '+02:00'")
			w.killSessions(context.Background(), "KILL", 1) // the next ones begin with it
			return func() {
				w.restore("SET GLOBAL time_zone = 'SYSTEM'")
				w.killSessions(context.Background(), "KILL", 1)
			}
		}},
	}
	r := rand.New(rand.NewPCG(seed, 3))
	total := time.Duration(0)
	for i := 0; i < len(kinds) || total < asideFor(); i++ {
		s := step{hold: between(r, time.Second, 4*time.Second), gap: between(r, 300*time.Millisecond, 2*time.Second)}
		s.events = []event{{fault: &kinds[i%len(kinds)]}}
		total += s.hold + s.gap
		plan = append(plan, s)
	}
	return plan
}
