package main

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheSessionOfTheReadme(t *testing.T) {
	t.Parallel()
	cfg := embedded(t.TempDir())
	r := start(t, cfg)
	alice := newCustomer(t, cfg, "alice")

	created := alice.post(r, "dinner-1", potsticker)
	require.Equal(t, http.StatusCreated, created.status, created.body)
	require.False(t, created.replayed())
	require.Regexp(t, `^/api/orders/[0-9a-f-]{36}$`, created.header.Get("Location"))

	replayed := alice.post(r, "dinner-1", `{ "amount": 39.8, "quantity": 2, "sku": "potsticker" }`)
	require.Equal(t, http.StatusCreated, replayed.status)
	require.True(t, replayed.replayed())
	require.Equal(t, created.body, replayed.body)
	require.Equal(t, created.header.Get("Location"), replayed.header.Get("Location"))

	reused := alice.post(r, "dinner-1", `{"sku":"potsticker","quantity":3,"amount":"59.70"}`)
	require.Equal(t, http.StatusConflict, reused.status)
	require.Contains(t, reused.body, "IDEMPOTENCY_KEY_REUSED")
	require.Empty(t, reused.header.Get("Retry-After"))

	poor := alice.post(r, "dinner-2", `{"sku":"caviar","quantity":1,"amount":"5000.00"}`)
	require.Equal(t, http.StatusUnprocessableEntity, poor.status)
	require.Contains(t, poor.body, "INSUFFICIENT_BALANCE")

	numbered := `{"sku":"dumpling","quantity":1,"amount":"12.00","external_order_no":"B-1"}`
	require.Equal(t, http.StatusCreated, alice.post(r, "dinner-3", numbered).status)
	taken := alice.post(r, "dinner-4", numbered)
	require.Equal(t, http.StatusConflict, taken.status)
	require.Contains(t, taken.body, `"reason":"exists"`)

	require.Contains(t, alice.post(r, "", potsticker).body, "IDEMPOTENCY_KEY_REQUIRED")
	require.Contains(t, alice.post(r, "dinner-5", `{"sku":"x"}`).body, `"path":"quantity"`)
	require.Contains(t, alice.get(r, "/api/requests/dinner-1").body, `"state":"succeeded"`)
	require.Contains(t, alice.get(r, "/api/requests/dinner-2").body, `"state":"failed"`)
	require.Equal(t, created.body, alice.get(r, created.header.Get("Location")).body)
	r.isWell(alice)

	bob := newCustomer(t, cfg, "bob")
	require.Equal(t, http.StatusNotFound, bob.get(r, "/api/requests/dinner-1").status)
	require.Equal(t, http.StatusNotFound, bob.get(r, created.header.Get("Location")).status)
	require.False(t, bob.post(r, "dinner-1", potsticker).replayed())

	stranger := &customer{t: t, http: bob.http, bearer: "Bearer nonsense"}
	require.Equal(t, http.StatusUnauthorized, stranger.post(r, "dinner-1", potsticker).status)
}

func TestARestartReplaysTheFirstAnswer(t *testing.T) {
	t.Parallel()
	cfg := embedded(t.TempDir())
	first := start(t, cfg)
	alice := newCustomer(t, cfg, "alice") // whose token outlives the restart
	created := alice.post(first, "k", potsticker)
	require.Equal(t, http.StatusCreated, created.status, created.body)
	require.NoError(t, first.stopped())

	second := start(t, cfg)
	replayed := alice.post(second, "k", potsticker)
	require.Equal(t, created.status, replayed.status)
	require.True(t, replayed.replayed())
	require.Equal(t, created.body, replayed.body)
}

func TestAStopUnderLoadLosesNothingThatWasAnswered(t *testing.T) {
	t.Parallel()
	cfg := embedded(t.TempDir())
	cfg.Users.ProvisionBalance = "1000000.00"
	r := start(t, cfg)

	const customers, enough = 16, 200
	var answered atomic.Int64
	var locations sync.Map
	var senders sync.WaitGroup
	for n := range customers {
		c := newCustomer(t, cfg, "user-"+strconv.Itoa(n))
		senders.Go(func() {
			for i := 0; ; i++ {
				a, err := c.try(http.MethodPost, "http://"+r.Addr()+"/api/orders", strconv.Itoa(i), potsticker)
				if err != nil {
					return // the listener is gone
				}
				switch a.status {
				case http.StatusCreated:
					locations.Store(a.header.Get("Location"), answeredOrder{c, a.body})
				case http.StatusServiceUnavailable:
					continue
				default:
					t.Errorf("unexpected answer %d: %s", a.status, a.body)
					return
				}
				if answered.Add(1) == enough {
					r.stop()
				}
			}
		})
	}
	require.NoError(t, <-r.done, "the stop must end within its grace")
	senders.Wait()
	require.GreaterOrEqual(t, answered.Load(), int64(enough))

	again := start(t, cfg)
	locations.Range(func(location, value any) bool {
		want := value.(answeredOrder)
		found := want.by.get(again, location.(string))
		require.Equal(t, http.StatusOK, found.status, "an answered order is gone")
		require.Equal(t, want.body, found.body)
		return true
	})
}

type answeredOrder struct {
	by   *customer
	body string
}

func TestTwoGatewaysOnOneDatabaseMakeOneOrder(t *testing.T) {
	t.Parallel()
	cfg := embedded(t.TempDir())
	gateways := []*running{start(t, cfg), start(t, cfg)} // each with a Redis of its own: they share the database only
	alice := newCustomer(t, cfg, "alice")

	const senders = 32
	ready := make(chan struct{})
	answers := make(chan answer, senders)
	for i := range senders {
		go func() {
			<-ready
			a, err := alice.try(http.MethodPost, "http://"+gateways[i%2].Addr()+"/api/orders", "k", potsticker)
			if err != nil {
				t.Error(err)
			}
			answers <- a
		}()
	}
	close(ready)
	bodies := map[string]int{}
	for range senders {
		if a := <-answers; a.status == http.StatusCreated {
			bodies[a.body]++
		}
	}
	require.Len(t, bodies, 1, "every success must carry the same bytes")

	var page struct{ Orders []json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(alice.get(gateways[0], "/api/orders").body), &page))
	require.Len(t, page.Orders, 1)
}

func TestAnAppThatNeverRunsCanBeClosed(t *testing.T) {
	t.Parallel()
	app, err := New(t.Context(), embedded(t.TempDir()), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.NoError(t, app.Close())
	require.NoError(t, app.Close())
}

func TestAnAppThatCannotStartLeavesNothingOpen(t *testing.T) {
	t.Parallel()
	first := start(t, embedded(t.TempDir()))
	second := embedded(t.TempDir())
	second.HTTP.Listen = first.Addr()
	_, err := New(t.Context(), second, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "http.listen")

	second.HTTP.Listen = ""
	_, err = New(t.Context(), second, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "http.listen")
}
