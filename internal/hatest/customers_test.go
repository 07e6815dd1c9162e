//go:build linux && ha

package hatest

import (
	"context"
	_ "embed"
	"fmt"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/loadtest/drive"
	"github.com/oncegate/oncegate/loadtest/history"
	"github.com/oncegate/oncegate/loadtest/identity"
	"github.com/oncegate/oncegate/loadtest/measure"
	"github.com/oncegate/oncegate/loadtest/pace"
	"github.com/oncegate/oncegate/loadtest/scenario"
	"github.com/oncegate/oncegate/loadtest/wire"
)

//go:embed testdata/customers.yaml
var scenarioYAML []byte

const perSecond = 20 // customers

// customers are people who want something and do not let go of it.
type customers struct {
	t      *testing.T
	run    string
	users  []drive.Identity
	driver *drive.Driver
	client *wire.Client
	log    history.Log
	cancel context.CancelFunc
	sent   chan struct{} // closed when the last customer has come
}

// runs numbers the runs of this process.
var runs atomic.Uint64

// send sends customers to the gateways until finish is called; several are behind
// a balancer.
func send(t *testing.T, gateways ...*gateway) *customers {
	t.Helper()
	addr := gateways[0].addr
	if len(gateways) > 1 {
		var addrs []string
		for _, g := range gateways {
			addrs = append(addrs, g.addr)
		}
		addr = faultproxy.NewBalancer(t, addrs).Addr()
	}
	s, err := scenario.Parse(scenarioYAML)
	require.NoError(t, err)
	number := runs.Add(1)
	c := &customers{t: t, run: fmt.Sprintf("ha%d", number), sent: make(chan struct{})}
	issuer := identity.Issuer{Audience: "oncegate", Issuer: "oncegate", Lifetime: time.Hour}
	require.NoError(t, issuer.UseSecret([]byte(tokenSecret)))
	for n := range s.Users.Count {
		user := fmt.Sprintf("user-%d", n)
		token, err := issuer.Token(user, "orders", time.Now())
		require.NoError(t, err)
		c.users = append(c.users, drive.Identity{User: user, Token: token})
	}
	c.client, err = wire.New(wire.Options{Target: &url.URL{Scheme: "http", Host: addr}, Timeout: 6 * time.Second})
	require.NoError(t, err)
	c.driver = drive.New(drive.Options{
		Client: c.client, Source: scenario.NewSource(s, c.run, number, len(c.users)), Users: c.users,
		Log: &c.log, Recorder: measure.NewRecorder(), MaxInFlight: 50_000,
	})
	var ctx context.Context
	ctx, c.cancel = context.WithCancel(context.Background())
	go func() {
		defer close(c.sent)
		c.driver.Open(ctx, pace.Constant(perSecond, 24*time.Hour).Even())
	}()
	t.Cleanup(func() {
		c.cancel()
		<-c.sent
		c.driver.Stop()
		c.client.Close()
	})
	return c
}

// heard counts the keys whose customers know their order.
func (c *customers) heard() (keys int) {
	for _, kase := range c.log.Cases() {
		if slices.ContainsFunc(kase.Records(), acknowledges) {
			keys++
		}
	}
	return keys
}

func acknowledges(r history.Record) bool {
	return r.Outcome == measure.Created || r.Outcome == measure.Replayed
}

// awaitMore waits until so many more customers know their order.
func (c *customers) awaitMore(keys int) {
	c.t.Helper()
	goal := c.heard() + keys
	await(c.t, "more orders are answered", func(context.Context) error {
		if n := c.heard(); n < goal {
			return fmt.Errorf("%d of %d keys are answered", n, goal)
		}
		return nil
	})
}

// awaitUnknown waits until so many more requests were answered with an unknown
// outcome.
func (c *customers) awaitUnknown(requests int) {
	c.t.Helper()
	goal := c.unknown() + requests
	await(c.t, "outcomes are unknown", func(context.Context) error {
		if n := c.unknown(); n < goal {
			return fmt.Errorf("%d of %d are", n, goal)
		}
		return nil
	})
}

func (c *customers) unknown() (requests int) {
	for _, kase := range c.log.Cases() {
		for _, r := range kase.Records() {
			if saysUnknown(r) {
				requests++
			}
		}
	}
	return requests
}

// saysUnknown reports whether the gateway answered that it does not know.
func saysUnknown(r history.Record) bool {
	return r.Outcome == measure.Unavailable && r.Proof == history.Unknown
}

// finish lets nobody new come, waits until every customer has an answer, and
// returns what they heard.
func (c *customers) finish() []*history.Case {
	c.t.Helper()
	c.cancel()
	<-c.sent
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	if !c.driver.Drain(ctx) {
		c.t.Errorf("after %v some customers have no answer yet", patient)
	}
	c.driver.Stop()
	p := c.driver.Progress()
	require.Zero(c.t, p.DroppedStarts+p.DroppedFollowUps, "the traffic was as planned")
	cases := c.log.Cases()
	for _, kase := range cases {
		settled := slices.ContainsFunc(kase.Records(), func(r history.Record) bool { return r.Proof == history.Decided })
		if !settled && len(kase.Records()) > 0 {
			c.t.Errorf("key %s of %s was never settled", kase.Intent.Key, kase.User)
		}
	}
	return cases
}
