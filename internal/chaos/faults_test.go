//go:build linux

package chaos

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/oncegate/oncegate/internal/testserver"
)

// place is where a fault happens. Two faults at a time are in different places.
type place string

const (
	inGateway  place = "gateway"
	inDatabase place = "database"
	inRedis    place = "redis"
	toDatabase place = "link to the database"
	toRedis    place = "link to redis"
)

// fault is one thing that can happen.
type fault struct {
	name  string
	place place
	// begin starts it. It lasts until the function that it returns has returned;
	// nil says that it did not begin.
	begin func(w *world, e event) (end func())
}

// none is the end of a fault that cannot begin, for what it lacks.
func (w *world) none(name string, err error) (end func()) {
	w.t.Helper()
	if testserver.Excused(err) {
		w.t.Logf("NOT TESTED: %s: %v", name, err)
	} else {
		w.t.Errorf("%s: it is none: %v", name, err)
	}
	return nil
}

func allFaults() []fault {
	var all []fault
	for _, some := range [][]fault{gatewayFaults(), databaseFaults(), commitFaults(), databaseLinkFaults(), redisFaults(), redisLinkFaults()} {
		all = append(all, some...)
	}
	return all
}

// sitesOf returns the gateway of an event, or all of them: half of the faults of
// links meet everybody.
func (w *world) sitesOf(e event) []*site {
	if e.random%2 == 0 {
		return w.sites
	}
	return w.sites[e.site : e.site+1]
}

// dice are numbers that an event draws while it lasts. Safe for concurrent use.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (e event) dice() *dice { return &dice{r: rand.New(rand.NewPCG(e.random, 1))} }

// one reports true once in n times.
func (d *dice) one(n int) bool { return d.pick(n) == 0 }

func (d *dice) pick(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(n)
}

// over and over does something until the fault ends.
func repeatedly(period time.Duration, do func(ctx context.Context)) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for tick := every(ctx, period); tick(); {
			do(ctx)
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}
