//go:build linux

package chaos

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
)

// Links of the network: over the front come its customers, over the back it
// reaches its servers.
const (
	front = iota
	back
)

// TestAPartedGatewayLosesNothing: one of three gateways has a network of its own,
// whose packets are lost both ways or one way only, on the way to its servers or
// to its customers. No process between them closes a connection for anybody.
func TestAPartedGatewayLosesNothing(t *testing.T) { //nolint:paralleltest // a run has the machine to itself
	seed, engines := aside(t, "MariaDB")
	for _, engine := range engines { //nolint:paralleltest // as above
		t.Run(engine, func(t *testing.T) {
			n := testserver.NewNetwork(t, 2)
			of := scarce()
			of.also = n.Links[back].Near
			w := newWorldOf(t, of, engine, nemesisProgram(t))
			w.move(w.sites[0], n)
			w.run(seed, w.partings(n, seed))
		})
	}
}

// partings is the plan: each kind once, for a moment and for longer than a session
// of the database lives, and then any until the time is over.
func (w *world) partings(n *testserver.Network, seed uint64) (plan []step) {
	kinds := []fault{
		parting("nothing from or to the servers", n.Links[back].Cut),
		parting("nothing to the servers", n.Links[back].Deafen),
		parting("nothing from the servers", n.Links[back].Mute),
		parting("nothing from or to the customers", n.Links[front].Cut),
		parting("nothing to the customers", n.Links[front].Deafen),
	}
	r := rand.New(rand.NewPCG(seed, 2))
	total := time.Duration(0)
	for i := 0; i < len(kinds) || total < asideFor(); i++ {
		f := &kinds[i%len(kinds)]
		s := step{hold: between(r, time.Second, 4*time.Second), gap: between(r, 300*time.Millisecond, 2*time.Second), events: []event{{fault: f}}}
		if i%7 == 2 {
			s.hold = sessionLife + 2*time.Second
		}
		total += s.hold + s.gap
		plan = append(plan, s)
	}
	return plan
}

func parting(name string, how func() (mend func())) fault {
	return fault{name, toDatabase, func(*world, event) func() { return how() }}
}

// move starts a gateway again in a network of its own, with the balancer in front
// of its new address.
func (w *world) move(s *site, n *testserver.Network) {
	w.t.Helper()
	require.NoError(w.t, s.stop())
	_, sqlPort, err := net.SplitHostPort(w.database.Addr)
	require.NoError(w.t, err)
	_, redisPort, err := net.SplitHostPort(w.redis.Addr)
	require.NoError(w.t, err)
	shop := w.shop.Clone()
	for _, statement := range []string{
		fmt.Sprintf("CREATE USER IF NOT EXISTS 'shop'@'%s'", n.Links[back].Far),
		fmt.Sprintf("GRANT ALL ON `%s`.* TO 'shop'@'%s'", shop.DBName, n.Links[back].Far),
	} {
		w.restore(statement)
	}
	shop.Addr = net.JoinHostPort(n.Links[back].Near, sqlPort)
	s.within, s.addr = n.Inside(), net.JoinHostPort(n.Links[front].Far, "8080")
	s.settings["ONCEGATE_MYSQL__DSN"] = shop.FormatDSN()
	s.settings["ONCEGATE_REDIS__ADDRS"] = net.JoinHostPort(n.Links[back].Near, redisPort)
	s.settings["ONCEGATE_HTTP__LISTEN"] = s.addr
	var addrs []string
	for _, s := range w.sites {
		addrs = append(addrs, s.addr)
	}
	w.balance(addrs)
	s.start()
	s.ready()
}
