//go:build linux

package chaos

import (
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/crashpoint"
	"github.com/oncegate/oncegate/internal/testserver"
)

// ending is one way in which a request can end, with the points that it meets
// on the way.
type ending struct {
	name    string
	points  []crashpoint.Point
	balance string // of the account before; "" for a user without one
	status  int    // of the final answer
	orders  int
	left    string // of the balance in the end
	stock   int
}

func endings() []ending {
	return []ending{
		{"created", crashpoint.OfACreatedOrder(), "100.00", http.StatusCreated, 1, "60.20", 3},
		{"refused", crashpoint.OfARefusedOrder(), "39.79", http.StatusUnprocessableEntity, 0, "39.79", 5},
		// The account is opened after the crash, and the same key then makes the order.
		{"account-opened-later", crashpoint.OfAnOrderWithoutAnAccount(), "", http.StatusCreated, 1, "60.20", 3},
	}
}

// TestAGatewayThatDiesAnywhereLeavesOneOrderAndOneAnswer: the gateway is killed
// at each point, started again, and asked again with the same key.
func TestAGatewayThatDiesAnywhereLeavesOneOrderAndOneAnswer(t *testing.T) {
	t.Parallel()
	program := gatewayProgram(t, "crashpoints")
	for engine, server := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			dsn := server(t).Database(t)
			migrate(t, program, dsn)
			redis := testserver.Redis(t)
			db := opened(t, dsn)
			t.Run("points", func(t *testing.T) {
				for _, e := range endings() {
					for _, point := range e.points {
						t.Run(e.name+"/"+string(point), func(t *testing.T) {
							t.Parallel()
							g := newGateway(t, program, settings(dsn, redis.Addr))
							g.settings["ONCEGATE_CACHE__PREFIX"] = rand.Text() // the Redis is shared
							diesAt(t, g, db, e, point)
						})
					}
				}
			})
			audited(t, newGateway(t, program, settings(dsn, redis.Addr)))
		})
	}
}

// diesAt has a gateway die with the order of a user in hand. Where the machine
// stands still at the wrong moment an order takes another way, which does not come
// by the point, or does when its outcome is unknown: then there is another user.
func diesAt(t *testing.T, g *gateway, db *sql.DB, e ending, point crashpoint.Point) {
	for i := range 10 {
		if tried := diesWith(t, g, db, e, point, fmt.Sprintf("%s-%s-%d", e.name, point, i)); tried {
			return
		}
	}
	t.Fatal("no order comes by the point")
}

// diesWith reports whether the gateway died as it should have.
func diesWith(t *testing.T, g *gateway, db *sql.DB, e ending, point crashpoint.Point, user string) bool {
	bearer := token(t, user)
	body := fmt.Sprintf(`{"sku":%q,"quantity":2,"amount":"39.80","external_order_no":"n"}`, user)

	g.start(crashpoint.Variable + "=" + string(point))
	g.ready()
	g.provide("/admin/v1/stock/"+user, `{"available":5}`)
	if e.balance != "" {
		g.provide("/admin/v1/users/"+user, fmt.Sprintf(`{"balance":%q}`, e.balance))
	}
	heard, err := g.order(bearer, "k", body)
	if err == nil && (point != crashpoint.AfterAnswer || !heard.final()) { // nobody is answered by the dead
		t.Logf("another way: %d %s", heard.status, heard.body)
		g.kill()
		return false
	}
	require.True(t, killedItself(g.awaitEnd()), "it died at the point; the answer was %d %s", heard.status, heard.body)
	committed := slices.Index(e.points, point) >= slices.Index(e.points, crashpoint.AfterCommit) && e.balance != ""
	records := map[bool]int{true: 1}[committed]
	found := number(t, db, "SELECT COUNT(*) FROM idempotency_records WHERE user_id = ?", user)
	if found != records && (point == crashpoint.BeforeAnswer || point == crashpoint.AfterAnswer) {
		t.Log("another way: it died with no decision in hand")
		return false
	}
	require.Equal(t, records, found, "it died where it should")

	g.start()
	g.ready()
	last, asked := g.insistCounting(bearer, "k", body)
	if e.balance == "" {
		require.Equal(t, http.StatusForbidden, last.status, last.body)
		g.provide("/admin/v1/users/"+user, `{"balance":"100.00"}`)
		last, asked = g.insistCounting(bearer, "k", body)
	}
	require.Equal(t, e.status, last.status, last.body)
	if committed || asked == 1 {
		require.Equal(t, committed, last.replayed, "it is a replay exactly if it was committed before the crash")
	}
	if err == nil && heard.decided() { // the answer had left before the crash
		require.Equal(t, heard.body, last.body)
	}
	again := g.insist(bearer, "k", body)
	require.Equal(t, last.body, again.body)
	require.True(t, again.replayed)

	e.requireIn(t, db, user)
	require.NoError(t, g.stop())
	return true
}

// requireIn demands that the database has the ending, and nothing beside it.
func (e ending) requireIn(t *testing.T, db *sql.DB, user string) {
	t.Helper()
	require.Equal(t, e.orders, number(t, db, "SELECT COUNT(*) FROM orders WHERE user_id = ?", user))
	require.Equal(t, 1, number(t, db, "SELECT COUNT(*) FROM idempotency_records WHERE user_id = ?", user))
	require.Equal(t, e.stock, number(t, db, "SELECT available FROM stock WHERE sku = ?", user))
	var left string
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT balance FROM users WHERE user_id = ?", user).Scan(&left))
	require.Equal(t, e.left, left)
}
