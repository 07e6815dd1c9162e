package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/configs"
)

// patientCustomers order once each and ask again once, most of them soon and
// some of them late. The same seed makes the same customers.
type patientCustomers struct {
	seed uint64
	pace int // 1 is the fastest; 2 makes half as many at a time, who take twice as long
}

// What they do at the fastest pace. Exponential ages are what back-off and
// impatience make. Nobody asks again within patientGap before a TTL, nor at the
// very moment: a retry that comes later than it was sent is still on the side of
// the TTL that it was meant for. The TTLs are where the lab's buckets end, within
// which it has to guess.
const (
	patientCount = 400
	patientAge   = 5 * time.Second  // on average, those left out that do not fit
	patientLimit = 13 * time.Second // nobody asks later
	patientRush  = 5 * time.Second  // within which they come
	patientShort = 5120 * time.Millisecond
	patientLong  = 2 * patientShort
	patientGap   = time.Second
	patientPaces = 4 // the slowest
)

// age draws how long a customer waits before the second request.
func (p patientCustomers) age(draw *rand.Rand) time.Duration {
	for {
		age := time.Duration(draw.ExpFloat64() * float64(patientAge))
		short, long := age-patientShort, age-patientLong
		if age < patientLimit && !amid(short) && !amid(long) {
			return time.Duration(p.pace) * age
		}
	}
}

// amid says that an age is too near a TTL for a slow machine.
func amid(beyond time.Duration) bool { return beyond > -patientGap && beyond < 100*time.Millisecond }

// oneRetry is a second request: its age is from when the gateway decided the
// first one to when it looked the second one up, and so at least from the first
// answer to the second request, and at most from the first request to the second
// answer. Drawn is how old it was meant to be.
type oneRetry struct{ drawn, shortest, longest time.Duration }

type retriesSeen []oneRetry

// younger is the share of the retries that were younger than a TTL: those that
// must have been, and with those that may have been.
func (s retriesSeen) younger(ttl time.Duration) (share span) {
	one := 1 / float64(len(s))
	for _, a := range s {
		if a.longest < ttl {
			share.low += one
		}
		if a.shortest < ttl {
			share.high += one
		}
	}
	return share
}

// carried is the share of the retries that were meant to be younger than a TTL and
// may not have been: what a slow machine made of the customers' habits.
func (s retriesSeen) carried(ttl time.Duration) float64 {
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
		arrival, age := time.Duration(p.pace)*time.Duration(draw.Int64N(int64(patientRush))), p.age(draw)
		c, key := customers[i%len(customers)], fmt.Sprintf("k-%d-%d", p.seed, i)
		all.Go(func() {
			if !wait(t, arrival) {
				return
			}
			begun := time.Now()
			if !c.insist(r, key, false) {
				return
			}
			answered := time.Now()
			if !wait(t, age) {
				return
			}
			again := time.Now()
			if c.insist(r, key, true) {
				seen[i] = oneRetry{age, again.Sub(answered), time.Since(begun)}
			}
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
