//go:build linux

package chaos

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/crashpoint"
	"github.com/oncegate/oncegate/internal/testserver"
)

// TestAGatewayThatSleepsLongerThanItsMarkChangesNothing: at each point a gateway
// freezes with a request in hand until its mark is gone from Redis. Another is
// asked with the same key; then the first wakes and goes on where it was.
func TestAGatewayThatSleepsLongerThanItsMarkChangesNothing(t *testing.T) {
	t.Parallel()
	if *runFor < long {
		t.Skip("it takes some minutes: make chaos runs it")
	}
	_, names := aside(t, "")
	program := gatewayProgram(t, "crashpoints")
	for _, engine := range names {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			dsn := engines()[engine](t).Database(t)
			migrate(t, program, dsn)
			redis := testserver.Redis(t)
			d := &dormitory{program: program, dsn: dsn, redis: redis.Addr, db: opened(t, dsn), cache: redis.Client(t)}
			t.Run("points", func(t *testing.T) {
				for _, e := range endings() {
					for _, point := range e.points {
						t.Run(e.name+"/"+string(point)+"/asked", func(t *testing.T) {
							t.Parallel()
							d.sleepsAt(t, e, point, false)
						})
						if !e.locked(point) {
							continue // whoever asks the other hears how it ends
						}
						t.Run(e.name+"/"+string(point)+"/decided", func(t *testing.T) {
							t.Parallel()
							d.sleepsAt(t, e, point, true)
						})
					}
				}
			})
			t.Logf("%d marks were seen before they expired, and %d times the other could not have the user's row", d.marks.Load(), d.waits.Load())
			require.Positive(t, d.marks.Load())
			require.Positive(t, d.waits.Load())
			audited(t, newGateway(t, program, settings(dsn, redis.Addr)))
		})
	}
}

// locked reports whether the user's row is held at a point.
func (e ending) locked(point crashpoint.Point) bool {
	at := slices.Index(e.points, point)
	return e.balance != "" && at >= slices.Index(e.points, crashpoint.BeforeRecords) && at <= slices.Index(e.points, crashpoint.BeforeCommit)
}

// sleepsAt has a gateway freeze at the point, and wakes it when the other was asked
// once, or has decided. Where the machine stands still at the wrong moment an order
// takes another way, which does not come by the point: then there is another order.
func (d *dormitory) sleepsAt(t *testing.T, e ending, point crashpoint.Point, untilDecided bool) {
	for i := range 10 {
		b := d.bed(t, e, point, untilDecided, i)
		ctx, awake := context.WithCancel(t.Context())
		heard := b.asked(ctx)
		if b.fallsAsleep(point, heard) {
			b.meanwhile(untilDecided)
			awake()
			b.wakes(heard)
			return
		}
		awake()
	}
	t.Fatal("no order comes by the point")
}

// asked has a customer ask the sleeper until there is a final answer, or until it
// is about to be woken: on a busy machine the time of a request may be over before
// it comes to the point. The channel gives all answers.
func (b *bed) asked(ctx context.Context) <-chan []answer {
	heard := make(chan []answer, 1)
	go func() {
		var all []answer
		defer func() { heard <- all }()
		for tick := every(ctx, 50*time.Millisecond); tick(); {
			a, err := b.sleeper.order(b.bearer, "k", b.body)
			if err != nil {
				continue
			}
			if all = append(all, a); a.decided() {
				return
			}
		}
	}()
	return heard
}

// fallsAsleep waits until the sleeper is stopped, and reports whether it is: once
// its customer has the answer, only one point is left.
func (b *bed) fallsAsleep(point crashpoint.Point, heard <-chan []answer) (asleep bool) {
	b.t.Helper()
	b.await("the gateway does not stop", func() bool {
		over := len(heard) > 0 && point != crashpoint.AfterAnswer
		asleep = b.sleeper.stopped()
		return asleep || over
	})
	return asleep
}

// meanwhile is what happens while it is stopped.
func (b *bed) meanwhile(untilDecided bool) {
	b.t.Helper()
	if b.forgotten() {
		b.marks.Add(1)
	}
	if b.ending.balance == "" {
		b.provide("users", `{"balance":"100.00"}`)
	}
	if a, err := b.other.order(b.bearer, "k", b.body); err == nil {
		b.said = append(b.said, a)
		if b.locked && !a.decided() {
			b.waits.Add(1)
		}
	}
	if untilDecided {
		b.settled(b.other, "k", b.body)
		b.ending.requireIn(b.t, b.db, b.user)
	}
	require.True(b.t, b.sleeper.stopped(), "it sleeps until it is woken")
}

// wakes has it go on, and asks both how it ended.
func (b *bed) wakes(heard <-chan []answer) {
	b.t.Helper()
	b.sleeper.signal(syscall.SIGCONT)
	last := b.settled(b.other, "k", b.body)
	b.said = append(b.said, <-heard...)
	b.settled(b.sleeper, "k", b.body)
	b.settled(b.other, "k", b.body)
	require.Equal(b.t, b.ending.status, last.status, last.body)
	for _, a := range b.said {
		b.requireAgrees(a, last)
	}
	b.ending.requireIn(b.t, b.db, b.user)
	b.requireNothingInTheWay(last)
	require.NoError(b.t, b.sleeper.stop())
	require.NoError(b.t, b.other.stop())
}

// requireAgrees demands of an answer that it is the final one, or one after which
// a customer asks again with the same key.
func (b *bed) requireAgrees(a, final answer) {
	b.t.Helper()
	if a.decided() {
		require.Equal(b.t, final.status, a.status)
		require.Equal(b.t, final.body, a.body)
		return
	}
	require.Contains(b.t, a.body, `"safe_new_key":false`)
	if b.ending.balance == "" && a.code() == "USER_UNKNOWN" {
		return // decided before the account was opened
	}
	require.Contains(b.t, a.body, `"retryable":true`)
	require.True(b.t, a.status == http.StatusServiceUnavailable || a.code() == "REQUEST_IN_PROGRESS", a.body)
}

// requireNothingInTheWay demands that what is left in Redis answers nothing else:
// not the same key, and not another, which is decided by itself.
func (b *bed) requireNothingInTheWay(last answer) {
	b.t.Helper()
	b.forgotten()
	for _, g := range []*gateway{b.sleeper, b.other} {
		require.Equal(b.t, last.body, b.settled(g, "k", b.body).body)
	}
	body := fmt.Sprintf(`{"sku":%q,"quantity":2,"amount":"39.80"}`, b.user)
	another := b.settled(b.sleeper, "another", body)
	require.Equal(b.t, last.status, another.status, another.body)
	require.Equal(b.t, another.body, b.settled(b.other, "another", body).body)
	require.Equal(b.t, 2, number(b.t, b.db, "SELECT COUNT(*) FROM idempotency_records WHERE user_id = ?", b.user))
	require.Equal(b.t, 2*b.ending.orders, number(b.t, b.db, "SELECT COUNT(*) FROM orders WHERE user_id = ?", b.user))
}
