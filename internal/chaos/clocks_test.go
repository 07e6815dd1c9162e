//go:build linux

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/loadtest/drive"
)

// jump is longer than anything lives: receipts, and answers until they are compacted.
const jump = 25 * time.Hour

// TestClocksThatJumpChangeNothing: the clocks of Redis and of the database jump by
// a day and back under traffic, so that everything expires at once, or lives for
// a day more; records are dated by such a clock, and compacted by it. Those of the
// gateways jump as well, each by itself, and somebody reads all orders meanwhile.
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
			read := w.readOrders()
			w.run(seed, w.jumps(seed))
			times := read()
			t.Logf("all orders of one customer were read %d times", times)
			require.Positive(t, times)
			if !w.clocks.none {
				require.Positive(t, w.clocks.shown.Load(), "gateways' clocks were moved")
			}
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
		w.eventually(func() error { // a reply of the database may take longer than a gateway waits
			if _, code := w.sites[0].command("compact"); code != 0 {
				return fmt.Errorf("compact: exit code %d", code)
			}
			return nil
		})
	}
	gateways := fault{"gateways' clocks jumping", inGateway, func(w *world, e event) func() { return w.jumping(e, w.sites) }}
	kinds := []fault{
		gateways,
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
		s := step{hold: between(r, time.Second, 3*time.Second), gap: between(r, 300*time.Millisecond, 2*time.Second)}
		f := &kinds[i%len(kinds)]
		s.events = []event{{fault: f, random: r.Uint64()}}
		if f != &kinds[0] && r.IntN(2) == 0 {
			s.events = append(s.events, event{fault: &kinds[0], random: r.Uint64()})
		}
		total += s.hold + s.gap
		plan = append(plan, s)
	}
	return plan
}

// readOrders reads all orders of the busiest user, page by page, again and again:
// whatever the clocks say by which ids are made, each order that was there before
// comes once. The function that it returns ends that, and tells how often.
func (w *world) readOrders() (times func() int) {
	ctx, cancel := context.WithCancel(context.Background())
	var reading sync.WaitGroup
	n := 0
	reading.Go(func() {
		for tick := every(ctx, 100*time.Millisecond); tick(); {
			if w.readOnce(ctx, w.people[0]) {
				n++
			}
		}
	})
	stop := func() {
		cancel()
		reading.Wait()
	}
	w.t.Cleanup(stop) // also where the run has ended the test
	return func() int {
		stop()
		return n
	}
}

// readOnce reports whether it came to the last page.
func (w *world) readOnce(ctx context.Context, who drive.Identity) bool {
	known, err := w.ordersOf(ctx, who.User)
	if err != nil {
		return false // its session was killed, or the test is over
	}
	seen := map[string]int{}
	cursor := ""
	for tick := every(ctx, time.Millisecond); tick(); {
		a, err := ask(http.MethodGet, "http://"+w.front+"/api/orders?limit=7"+cursor, who.Token, "", "")
		if err != nil || a.status >= http.StatusInternalServerError {
			continue // it is asked for again
		}
		var page struct {
			Orders []struct {
				ID string `json:"order_id"`
			} `json:"orders"`
			Next string `json:"next_cursor"`
		}
		if err := json.Unmarshal([]byte(a.body), &page); err != nil || a.status != http.StatusOK {
			w.t.Errorf("a page of orders: %d %s", a.status, a.body)
			return false
		}
		for _, o := range page.Orders {
			seen[strings.ReplaceAll(o.ID, "-", "")]++
		}
		if page.Next != "" {
			cursor = "&cursor=" + url.QueryEscape(page.Next)
			continue
		}
		for _, id := range known {
			if seen[id] != 1 {
				w.t.Errorf("order %s of %s came %d times on the pages of its orders", id, who.User, seen[id])
			}
		}
		return true
	}
	return false
}

// ordersOf reads the ids of a user's orders from the table.
func (w *world) ordersOf(ctx context.Context, user string) (ids []string, err error) {
	rows, err := w.admin.QueryContext(ctx, "SELECT LOWER(HEX(order_id)) FROM orders WHERE user_id = ?", user)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}
