package client_test

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/client"
)

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	keys, err := client.OpenFileKeys(t.TempDir())
	require.NoError(t, err)
	for name, c := range map[string]struct {
		change func(*client.Options)
		says   string
	}{
		"no address":     {func(o *client.Options) { o.BaseURL = "" }, "BaseURL"},
		"no scheme":      {func(o *client.Options) { o.BaseURL = "orders.example.com" }, "BaseURL"},
		"another scheme": {func(o *client.Options) { o.BaseURL = "ftp://orders.example.com" }, "BaseURL"},
		"no token":       {func(o *client.Options) { o.Token = nil }, "Token"},
		"no keys":        {func(o *client.Options) { o.Keys = nil }, "Keys"},
		"negative time":  {func(o *client.Options) { o.Patience = -1 }, "negative"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := client.Options{BaseURL: "http://localhost", Token: anyToken, Keys: keys}
			c.change(&o)
			_, err := client.New(o)
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestAnIntentNeedsAName(t *testing.T) {
	t.Parallel()
	server := play(t)
	_, err := quick(t, server.URL).CreateOrder(t.Context(), "", dumplings)
	require.ErrorContains(t, err, "name")
	require.Zero(t, server.requests())
}

// shopOf is a client of the real gateway, through whatever stands between.
func shopOf(t *testing.T, url, user string) *client.Client {
	t.Helper()
	return quick(t, url, func(o *client.Options) { o.Token = gateway().token(user) })
}

func TestTwoClicksAtOnceAreOneOrder(t *testing.T) {
	t.Parallel()
	shop := shopOf(t, gateway().url, "clicks")
	const clicks = 8
	receipts := make([]client.OrderReceipt, clicks)
	var all sync.WaitGroup
	for i := range clicks {
		all.Go(func() {
			var err error
			if receipts[i], err = shop.CreateOrder(t.Context(), "cart", dumplings); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	fresh := 0
	for _, r := range receipts {
		require.Equal(t, receipts[0].Order, r.Order)
		if !r.Replayed {
			fresh++
		}
	}
	require.Equal(t, 1, fresh, "one call made the order, the others were told of it")

	read, err := shop.Order(t.Context(), receipts[0].Order.ID)
	require.NoError(t, err)
	require.Equal(t, receipts[0].Order, read)
}

// TestNoWeatherMakesASecondOrder sends intents through a network that loses
// requests before the gateway, answers after it, and whole answers half-way.
func TestNoWeatherMakesASecondOrder(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	network := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch n.Add(1) % 4 {
		case 0:
			gateway().handler().ServeHTTP(w, r)
		case 1:
			panic(http.ErrAbortHandler)
		case 2:
			gateway().handler().ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		case 3:
			gateway().handler().ServeHTTP(httptest.NewRecorder(), r)
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	t.Cleanup(network.Close)
	shop := shopOf(t, network.URL, "weather")
	ids := map[string]bool{}
	for _, intent := range []string{"a", "b", "c", "d", "e", "a", "b", "c", "d", "e"} {
		r, err := shop.CreateOrder(t.Context(), intent, client.Line{SKU: "tea", Quantity: 1, Amount: "1.00"})
		require.NoError(t, err)
		ids[r.Order.ID] = true
	}
	require.Len(t, ids, 5, "ten calls, five intents")
}

func TestABatchIsAllOrNothing(t *testing.T) {
	t.Parallel()
	shop := shopOf(t, gateway().url, "batch-"+rand.Text()) // the numbers are a user's, and taken after one run
	lines := []client.Line{
		{SKU: "tea", Quantity: 1, Amount: "5.00", ExternalOrderNo: "B-1"},
		{SKU: "potsticker", Quantity: 2, Amount: "39.80", ExternalOrderNo: "B-2"},
	}
	first, err := shop.CreateBatch(t.Context(), "import 1", lines)
	require.NoError(t, err)
	require.Len(t, first.Orders, 2)
	require.Equal(t, lines[1], first.Orders[1].Line)

	again, err := shop.CreateBatch(t.Context(), "import 1", lines)
	require.NoError(t, err)
	require.True(t, again.Replayed)
	require.Equal(t, first.Orders, again.Orders)

	_, err = shop.CreateBatch(t.Context(), "import 2", lines[:1])
	var p *client.Problem
	require.ErrorAs(t, err, &p)
	require.Equal(t, "ORDER_ALREADY_EXISTS", p.Code)
	require.Equal(t, []client.Conflict{{Row: 0, ExternalOrderNo: "B-1", Reason: "exists", OrderID: first.Orders[0].ID}}, p.Conflicts)
}

func TestAnotherContentUnderOneIntentIsRefused(t *testing.T) {
	t.Parallel()
	shop := shopOf(t, gateway().url, "reuse")
	_, err := shop.CreateOrder(t.Context(), "cart", dumplings)
	require.NoError(t, err)
	_, err = shop.CreateOrder(t.Context(), "cart", client.Line{SKU: "tea", Quantity: 1, Amount: "5.00"})
	var p *client.Problem
	require.ErrorAs(t, err, &p)
	require.Equal(t, "IDEMPOTENCY_KEY_REUSED", p.Code)
	require.ErrorIs(t, shop.Renew(t.Context(), "cart", err), client.ErrKeyKept, "the intent has an order")
}

// The price changes between two starts of a program, and the first start has not
// heard that its order was made.
func TestAnUnsettledIntentWithAnotherPriceMakesNoSecondOrder(t *testing.T) {
	t.Parallel()
	dir, token := t.TempDir(), gateway().token("price")
	start := func(url string) *client.Client {
		keys, err := client.OpenFileKeys(dir)
		require.NoError(t, err)
		return quick(t, url, func(o *client.Options) { o.Keys, o.Token = keys, token })
	}
	deaf := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		gateway().handler().ServeHTTP(httptest.NewRecorder(), r)
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(deaf.Close)
	_, err := start(deaf.URL).CreateOrder(t.Context(), "cart", dumplings)
	require.ErrorIs(t, err, client.ErrUnsettled)

	shop, dearer := start(gateway().url), dumplings
	dearer.Amount = "42.00"
	_, err = shop.CreateOrder(t.Context(), "cart", dearer)
	require.ErrorContains(t, err, "IDEMPOTENCY_KEY_REUSED")
	require.ErrorIs(t, shop.Renew(t.Context(), "cart", err), client.ErrKeyKept)
	_, err = shop.CreateOrder(t.Context(), "cart", dearer)
	require.ErrorContains(t, err, "IDEMPOTENCY_KEY_REUSED", "and not a second order")

	receipt, err := shop.CreateOrder(t.Context(), "cart", dumplings)
	require.NoError(t, err)
	require.True(t, receipt.Replayed, "the first content settles it")
}

func TestFaultsOfARequestAreNamed(t *testing.T) {
	t.Parallel()
	_, err := shopOf(t, gateway().url, "faults").CreateOrder(t.Context(), "cart", client.Line{SKU: "tea", Quantity: 0, Amount: "5.00"})
	require.ErrorContains(t, err, "INVALID_REQUEST")
	require.ErrorContains(t, err, "quantity")
}

func TestAnOrderOfSomebodyElseIsNotThere(t *testing.T) {
	t.Parallel()
	r, err := shopOf(t, gateway().url, "owner").CreateOrder(t.Context(), "cart", dumplings)
	require.NoError(t, err)
	_, err = shopOf(t, gateway().url, "stranger").Order(t.Context(), r.Order.ID)
	var p *client.Problem
	require.ErrorAs(t, err, &p)
	require.Equal(t, "NOT_FOUND", p.Code)
}

func TestPausesAreJitteredAndNeverBeforeRetryAfter(t *testing.T) {
	t.Parallel()
	b := client.Backoff{Base: 100 * time.Millisecond, Cap: time.Second}
	limits := []int{100, 200, 400, 800, 1000, 1000}
	for i, millis := range limits {
		limit := time.Duration(millis) * time.Millisecond
		lowest, highest := time.Hour, time.Duration(0)
		for range 2000 {
			p := b.Pause(i+1, 0)
			lowest, highest = min(lowest, p), max(highest, p)
		}
		require.LessOrEqual(t, highest, limit)
		require.Greater(t, highest, limit*8/10, "full jitter reaches the limit")
		require.Less(t, lowest, limit*2/10, "and nothing")
	}
	for range 100 {
		p := b.Pause(1, 3*time.Second)
		require.GreaterOrEqual(t, p, 3*time.Second)
		require.LessOrEqual(t, p, 3100*time.Millisecond)
	}
	require.LessOrEqual(t, client.Backoff{}.Pause(1<<30, 0), 10*time.Second)
}

// The header can only say whole seconds: what the problem says is closer, unless
// somebody on the way asks for more.
func TestPauseOfTheProblemIsTakenBeforeItsRoundingUp(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]time.Duration{"1": 100 * time.Millisecond, "2": 2 * time.Second, "": 100 * time.Millisecond} {
		recorder := httptest.NewRecorder()
		if header != "" {
			recorder.Header().Set("Retry-After", header)
		}
		refuse(recorder, http.StatusServiceUnavailable, strings.Replace(away, `"retry_after_ms":1`, `"retry_after_ms":100`, 1))
		require.Equal(t, want, client.Advise(recorder.Result(), nil).After, header)
	}
}

func TestAdviceForOtherSenders(t *testing.T) {
	t.Parallel()
	require.True(t, client.Advise(nil, context.DeadlineExceeded).Again)
	require.False(t, client.Advise(nil, context.Canceled).Again)
	recorder := httptest.NewRecorder()
	recorder.Header().Set("Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
	refuse(recorder, http.StatusServiceUnavailable, away)
	resp := recorder.Result()
	advice := client.Advise(resp, nil)
	require.True(t, advice.Again)
	require.InDelta(t, time.Hour, advice.After, float64(time.Minute))
	require.Equal(t, client.Unknown, advice.Problem.Outcome)
	require.Equal(t, advice.Problem, client.Advise(resp, nil).Problem, "the body was put back")
}
