package main

import (
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
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
//
// How old each retry was is noted on the clients' side as well, between two
// bounds, and that is what the lab and the layers are held against: a machine
// that is slow makes the retries older, and the bounds wider. Where they are too
// wide to tell one TTL from the other, it is done again with more time.
func TestWhatTheTTLLabPredictsComesTrue(t *testing.T) {
	t.Parallel()
	for name, longer := range map[string]bool{"Longer": true, "ShorterWithTheProcessTier": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for pace := 1; ; pace *= 2 {
				c := ttlChange{before: time.Duration(pace) * patientShort, after: time.Duration(pace) * patientLong, pace: pace}
				if !longer {
					c.before, c.after, c.processTier = c.after, c.before, true
				}
				if c.make(t).tells() {
					return
				}
				require.Less(t, pace, patientPaces, "too many retries come seconds later than they are sent")
			}
		})
	}
}

// ttlChange is a change of ttl.receipt under traffic.
type ttlChange struct {
	before, after time.Duration
	pace          int // of the customers
	processTier   bool
}

// outcome is what came of a change: the shares of the second crowd's retries that
// were younger than each of the TTLs.
type outcome struct{ before, after span }

// tells reports whether a change that changed nothing would have been noticed.
func (o outcome) tells() bool { return o.before.high < o.after.low || o.after.high < o.before.low }

// make makes the change on a gateway of its own, between two crowds of customers,
// and judges what came.
func (c ttlChange) make(t *testing.T) outcome {
	t.Helper()
	cfg := deployed(t, migrated(t, testserver.MySQL(t)), testserver.StartRedis(t).Addr)
	shortTimes(&cfg, c.before)
	cfg.Cache.ProcessTier = c.processTier
	r, ops := start(t, cfg), newOperator(t)

	first := patientCustomers{seed: 1, pace: c.pace}.come(t, r, cfg)
	earlier := answeredByLayer(t, r)
	seen := ops.forecast(r, c.after)
	require.InDelta(t, c.before.Seconds(), seen.CurrentTTLSeconds, 0)
	inForce, predicted := seen.Current, seen.Forecasts[0]
	require.True(t, predicted.Known, "nothing is known of a TTL of %v", c.after)
	unsure := earlier.unsure(first) + math.Abs(float64(predicted.Sample)-earlier.total())/earlier.total()
	holds(t, "what the lab saw of the TTL in force", first.younger(c.before).wider(unsure), inForce.Share)
	holds(t, "what the lab predicts", first.younger(c.after).wider(unsure), predicted.Share)
	holds(t, "what came of the TTL in force", first.younger(c.before).wider(unsure), earlier.beforeMySQL())

	ops.change(r, "ttl.receipt", strconv.Quote(c.after.String()))
	second := patientCustomers{seed: 2, pace: c.pace}.come(t, r, cfg)
	came := answeredByLayer(t, r).since(earlier)
	unsure = came.unsure(second)
	o := outcome{second.younger(c.before).wider(unsure), second.younger(c.after).wider(unsure)}
	t.Logf("ttl.receipt from %v to %v: in force %.1f %%, predicted %.1f %% (%.1f to %.1f %%, of %d), came %.1f %% (of %.0f: process %.0f, Redis %.0f, MySQL %.0f; by the clients' clocks from %.1f to %.1f %%)",
		c.before, c.after, 100*inForce.Share, 100*predicted.Share, 100*predicted.ShareLow, 100*predicted.ShareHigh, predicted.Sample,
		100*came.beforeMySQL(), came.total(), came.process, came.redis, came.mysql, 100*o.after.low, 100*o.after.high)
	holds(t, "what came", o.after, came.beforeMySQL())

	// And so the prediction holds for others, within the bounds that are shown,
	// the luck of the second crowd, and what slowness made of either.
	luck := samplingError(came.beforeMySQL(), came.total())
	slowness := first.carried(c.after) + second.carried(c.after) + 2*unsure
	holds(t, "what came of the prediction", span{predicted.ShareLow, predicted.ShareHigh}.wider(luck+slowness), came.beforeMySQL())

	require.Equal(t, c.processTier, came.process > 0)
	require.Positive(t, came.redis)
	require.Positive(t, came.mysql)
	require.NoError(t, r.stopped())
	return o
}

// span is where a share must be.
type span struct{ low, high float64 }

func (s span) wider(by float64) span { return span{s.low - by, s.high + by} }

func holds(t *testing.T, what string, s span, share float64) {
	t.Helper()
	const rounding = 1e-9
	require.GreaterOrEqual(t, share, s.low-rounding, what)
	require.LessOrEqual(t, share, s.high+rounding, what)
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
// than the one that the prediction was made from. A few of them say nothing of a
// TTL: Redis could not be asked, or told.
type layerCounts struct{ process, redis, mysql, astray float64 }

func answeredByLayer(t *testing.T, r *running) (l layerCounts) {
	t.Helper()
	for line := range strings.Lines(metricsOf(t, r)) {
		sample, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, labels, _ := strings.Cut(sample, "{")
		var into *float64
		switch {
		case name == "oncegate_filter_bypassed_total", name == "oncegate_filter_unsettled_total":
			into = &l.astray
		case name != "oncegate_duplicates_total":
			continue
		case labels == `layer="process"}`:
			into = &l.process
		case labels == `layer="redis"}`:
			into = &l.redis
		case labels == `layer="mysql"}`:
			into = &l.mysql
		default:
			t.Fatalf("a layer that nobody knows: %s", line)
		}
		v, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err)
		*into += v
	}
	return l
}

func (l layerCounts) since(earlier layerCounts) layerCounts {
	return layerCounts{l.process - earlier.process, l.redis - earlier.redis, l.mysql - earlier.mysql, l.astray - earlier.astray}
}

func (l layerCounts) total() float64       { return l.process + l.redis + l.mysql }
func (l layerCounts) beforeMySQL() float64 { return (l.process + l.redis) / l.total() }

// unsure is the share of what the gateway counted that the customers' notes do
// not explain: what went astray, and answers that were asked for more than twice.
func (l layerCounts) unsure(s retriesSeen) float64 {
	return (l.astray + math.Abs(l.total()-float64(len(s)))) / l.total()
}

// samplingError is how far a share p of n may be from the truth, with 95 %
// confidence.
func samplingError(p, n float64) float64 { return 1.96 * math.Sqrt(p*(1-p)/n) }
