package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/insight"
	"github.com/oncegate/oncegate/internal/testserver"
)

// What the TTL lab predicts of another ttl.receipt is what comes once it is in
// force: with a longer one and a shorter one, with the process tier and without,
// on a real database and a real Redis, whose entries really expire.
func TestWhatTheTTLLabPredictsComesTrue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]ttlChange{
		"Longer":                    {before: 4 * time.Second, after: 8 * time.Second},
		"ShorterWithTheProcessTier": {before: 8 * time.Second, after: 4 * time.Second, processTier: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 3 {
				if o := c.make(t); o.slow <= tooSlow {
					c.judge(t, o)
					return
				}
			}
			t.Skip("this machine is too busy to tell: three times it carried too many retries over the TTL")
		})
	}
}

// tooSlow is the share of retries that a slow machine carried over the TTL, from
// which on clients did not go on as they did, as far as the gateway can see.
const tooSlow = .15

// ttlChange is a change of ttl.receipt under traffic.
type ttlChange struct {
	before, after time.Duration
	processTier   bool
}

// outcome is what was predicted of a change and what came.
type outcome struct {
	inForce, predicted insight.Forecast
	came               layerCounts
	slow               float64
}

// make makes the change on a gateway of its own, between two crowds of customers.
func (c ttlChange) make(t *testing.T) (o outcome) {
	t.Helper()
	cfg := deployed(t, migrated(t, testserver.MySQL(t)), testserver.StartRedis(t).Addr)
	shortTimes(&cfg, c.before)
	cfg.Cache.ProcessTier = c.processTier
	r, ops := start(t, cfg), newOperator(t)

	first := patientCustomers{seed: 1}.come(t, r, cfg)
	seen := ops.forecast(r, c.after)
	require.Equal(t, c.before.Seconds(), seen.CurrentTTLSeconds) //nolint:testifylint // a whole number
	o.inForce, o.predicted = seen.Current, seen.Forecasts[0]

	earlier := answeredByLayer(t, r)
	ops.change(r, "ttl.receipt", strconv.Quote(c.after.String()))
	second := patientCustomers{seed: 2}.come(t, r, cfg)
	o.came = answeredByLayer(t, r).since(earlier)
	require.GreaterOrEqual(t, o.came.total(), second.retries())
	o.slow = first.unclear(c.after) + second.unclear(c.after)
	t.Logf("ttl.receipt from %v to %v: in force %.1f %%, predicted %.1f %% (%.1f to %.1f %%, of %d), came %.1f %% (of %.0f: process %.0f, Redis %.0f, MySQL %.0f), slowness %.1f %%",
		c.before, c.after, 100*o.inForce.Share, 100*o.predicted.Share, 100*o.predicted.ShareLow, 100*o.predicted.ShareHigh, o.predicted.Sample,
		100*o.came.beforeMySQL(), o.came.total(), o.came.process, o.came.redis, o.came.mysql, 100*o.slow)
	require.NoError(t, r.stopped())
	return o
}

// judge compares. What the machine may have carried over the TTL belongs to
// neither side.
func (c ttlChange) judge(t *testing.T, o outcome) {
	t.Helper()
	require.True(t, o.predicted.Known, "nothing is known of a TTL of %v", c.after)
	require.Equal(t, c.processTier, o.came.process > 0)
	require.Positive(t, o.came.redis)
	require.Positive(t, o.came.mysql)
	luck := samplingError(o.came.beforeMySQL(), o.came.total())
	require.GreaterOrEqual(t, o.came.beforeMySQL(), o.predicted.ShareLow-luck-o.slow, "less than was predicted")
	require.LessOrEqual(t, o.came.beforeMySQL(), o.predicted.ShareHigh+luck+o.slow, "more than was predicted")
	require.Greater(t, math.Abs(o.inForce.Share-o.came.beforeMySQL()), luck+o.slow, "a change that changes nothing would prove nothing")
}

// shortTimes makes room for a TTL of receipts that a test can wait for.
func shortTimes(c *configs.Config, receipt time.Duration) {
	c.MySQL.ReadTimeout = 1500 * time.Millisecond
	c.RequestBudget, c.TTL.InProgress, c.TTL.Receipt = 2500*time.Millisecond, 3*time.Second, receipt
	c.MySQL.ConnectTimeout = 2 * time.Second
	c.Cache.LocalTTL = time.Second // the process forgets sooner than Redis, as it does in production
	c.Users.ProvisionBalance = "1000000.00"
}

// forecast asks what a TTL would do.
func (o *operator) forecast(r *running, ttl time.Duration) (seen insight.TTL) {
	o.t.Helper()
	a := o.do(r, http.MethodGet, "/admin/v1/ttl?"+url.Values{"ttl": {ttl.String()}}.Encode(), "", "")
	require.Equal(o.t, http.StatusOK, a.status, a.body)
	require.NoError(o.t, json.Unmarshal([]byte(a.body), &seen))
	require.Len(o.t, seen.Forecasts, 1)
	return seen
}

// layerCounts are retries by who answered, as Prometheus is told: another way
// than the one that the prediction was made from.
type layerCounts struct{ process, redis, mysql float64 }

func answeredByLayer(t *testing.T, r *running) layerCounts {
	t.Helper()
	of := func(layer string) float64 { return metric(t, r, `oncegate_duplicates_total{layer="`+layer+`"}`) }
	return layerCounts{of("process"), of("redis"), of("mysql")}
}

func (l layerCounts) since(earlier layerCounts) layerCounts {
	return layerCounts{l.process - earlier.process, l.redis - earlier.redis, l.mysql - earlier.mysql}
}

func (l layerCounts) total() float64       { return l.process + l.redis + l.mysql }
func (l layerCounts) beforeMySQL() float64 { return (l.process + l.redis) / l.total() }

// samplingError is how far a share p of n may be from the truth, with 95 %
// confidence.
func samplingError(p, n float64) float64 { return 1.96 * math.Sqrt(p*(1-p)/n) }

// patientCustomers order once each and ask again once, most of them soon and
// some of them late. The same seed makes the same customers.
type patientCustomers struct{ seed uint64 }

// What they do. Exponential ages are what back-off and impatience make.
const (
	patientCount = 700
	patientAge   = 5 * time.Second  // on average, the longest left out
	patientLimit = 13 * time.Second // nobody asks later
	patientRush  = 5 * time.Second  // within which they come
)

// oneRetry is a second request.
type oneRetry struct {
	// drawn is how old it was meant to be, and longest how old it can have been
	// at most: from the moment the first request was sent to that of the answer.
	drawn, longest time.Duration
}

type retriesSeen []oneRetry

func (s retriesSeen) retries() float64 { return float64(len(s)) }

// unclear is the share of the retries of which this machine's slowness does not
// say whether they were younger than the TTL.
func (s retriesSeen) unclear(ttl time.Duration) float64 {
	n := 0
	for _, a := range s {
		if a.drawn < ttl && ttl <= a.longest {
			n++
		}
	}
	return float64(n) / float64(len(s))
}

// come sends all of them and returns when the last one has its second answer.
func (p patientCustomers) come(t *testing.T, r *running, cfg configs.Config) retriesSeen {
	t.Helper()
	draw := rand.New(rand.NewPCG(p.seed, 7))
	seen := make(retriesSeen, patientCount)
	customers := make([]*customer, 8)
	for i := range customers {
		customers[i] = newCustomer(t, cfg, fmt.Sprintf("user-%d", i))
	}
	var all sync.WaitGroup
	for i := range seen {
		arrival, age := time.Duration(draw.Int64N(int64(patientRush))), patientLimit
		for age >= patientLimit {
			age = time.Duration(draw.ExpFloat64() * float64(patientAge))
		}
		c, key := customers[i%len(customers)], fmt.Sprintf("k-%d-%d", p.seed, i)
		all.Go(func() {
			if !wait(t, arrival) {
				return
			}
			begun := time.Now()
			if !c.insist(r, key, false) || !wait(t, age) || !c.insist(r, key, true) {
				return
			}
			seen[i] = oneRetry{age, time.Since(begun)}
		})
	}
	all.Wait()
	require.False(t, t.Failed(), "a customer went without an answer")
	return seen
}

// wait lets traffic come when it is due, and reports whether the test goes on.
func wait(t *testing.T, d time.Duration) bool {
	t.Helper()
	due := time.NewTimer(d)
	defer due.Stop()
	select {
	case <-due.C:
		return true
	case <-t.Context().Done():
		return false
	}
}

// insist orders until there is an order, as clients do with a machine that is too
// busy at the moment; again says that there was one before.
func (c *customer) insist(r *running, key string, again bool) bool {
	for range 20 {
		a, err := c.try(http.MethodPost, "http://"+r.Addr()+"/api/orders", key, potsticker)
		switch {
		case err != nil:
			c.t.Error(err)
			return false
		case a.status == http.StatusCreated && (a.replayed() || !again):
			return true
		case a.status == http.StatusCreated:
			c.t.Error("a second order for " + key)
			return false
		case a.status != http.StatusServiceUnavailable && a.status != http.StatusConflict:
			c.t.Errorf("%d %s", a.status, a.body)
			return false
		}
		if !wait(c.t, 250*time.Millisecond) {
			return false
		}
	}
	c.t.Error("nobody answers " + key)
	return false
}
