package main

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/internal/browser"
)

// network stands between a browser and a gateway. What it does with orders is
// changed while it runs; everything else it passes on.
type network struct {
	*httptest.Server
	gateway atomic.Value // its address
	orders  atomic.Pointer[http.HandlerFunc]
	taken   atomic.Int64 // orders that have reached it
}

func newNetwork(t *testing.T, r *running) *network {
	t.Helper()
	n := &network{}
	n.leadsTo(r)
	n.whole()
	n.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path == "/api/orders" {
			n.taken.Add(1)
			(*n.orders.Load())(w, r)
			return
		}
		n.pass(w, r)
	}))
	t.Cleanup(n.Close)
	return n
}

// leadsTo says which gateway is behind it.
func (n *network) leadsTo(r *running) { n.gateway.Store(r.Addr()) }

// pass hands a request to the gateway and its answer back.
func (n *network) pass(w http.ResponseWriter, r *http.Request) {
	on := r.Clone(context.WithoutCancel(r.Context())) // the browser may leave; the gateway has it
	on.RequestURI, on.URL.Scheme, on.URL.Host = "", "http", n.gateway.Load().(string)
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(on)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer func() { _ = resp.Body.Close() }()
	maps.Copy(w.Header(), resp.Header)
	w.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(w, resp.Body)
}

func (n *network) set(h http.HandlerFunc) { n.orders.Store(&h) }

func (n *network) whole() { n.set(n.pass) }

// losesAnswers lets orders through, and cuts the connection instead of the answer.
func (n *network) losesAnswers() {
	n.set(func(_ http.ResponseWriter, r *http.Request) {
		n.pass(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	})
}

// down cuts every connection before the gateway has heard of the order.
func (n *network) down() {
	n.set(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
}

func (n *network) saw(t *testing.T, orders int64) {
	t.Helper()
	require.Eventually(t, func() bool { return n.taken.Load() >= orders }, time.Minute, 10*time.Millisecond,
		"orders did not arrive")
}

// shopper is a customer in front of the page.
type shopper struct {
	t       *testing.T
	page    context.Context
	network *network
	config  configs.Config
}

func visit(t *testing.T, n *network, cfg configs.Config) *shopper {
	t.Helper()
	s := &shopper{t: t, page: browser.New(t), network: n, config: cfg}
	s.do(chromedp.Navigate(n.URL+"/demo"), chromedp.WaitEnabled("#order"))
	return s
}

func (s *shopper) do(steps ...chromedp.Action[chromedp.Void]) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.page, time.Minute)
	defer cancel()
	require.NoError(s.t, chromedp.Do(ctx, steps...))
}

func (s *shopper) text(selector string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.page, time.Minute)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.TextContent(selector))
	require.NoError(s.t, err)
	return text
}

// orders reads the shopper's orders from the gateway itself.
func (s *shopper) orders(r *running) []string {
	s.t.Helper()
	user, err := chromedp.Run(s.page, chromedp.Evaluate[string](`JSON.parse(localStorage.getItem("intent")).user`))
	require.NoError(s.t, err)
	var page struct {
		Orders []struct {
			ID string `json:"order_id"`
		}
	}
	require.NoError(s.t, json.Unmarshal([]byte(newCustomer(s.t, s.config, user).get(r, "/api/orders").body), &page))
	ids := make([]string, len(page.Orders))
	for i, o := range page.Orders {
		ids[i] = o.ID
	}
	return ids
}

// comesTo waits until the shopper has that many orders: one whose answer is
// lost is made a moment after it was sent.
func (s *shopper) comesTo(r *running, orders int) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return len(s.orders(r)) == orders }, time.Minute, 10*time.Millisecond,
		"the orders are not there")
}

func TestStorefrontDoubleClick(t *testing.T) {
	t.Parallel()
	cfg := embedded(t.TempDir())
	r := start(t, cfg)
	s := visit(t, newNetwork(t, r), cfg)
	s.do(chromedp.DoubleClick("#order"), chromedp.WaitVisible("#receipt"))
	require.Equal(t, "Ordered", s.text("#title"))
	ids := s.orders(r)
	require.Len(t, ids, 1)
	require.Contains(t, s.text("#detail"), ids[0])
}

func TestStorefrontClicksAndReloadsWhileAnswersAreLost(t *testing.T) {
	t.Parallel()
	cfg := embedded(t.TempDir())
	r := start(t, cfg)
	n := newNetwork(t, r)
	s := visit(t, n, cfg)

	n.losesAnswers()
	s.do(chromedp.Click("#order"), chromedp.Click("#order"), chromedp.Click("#order"))
	n.saw(t, 3)
	key := s.text("#key")
	s.comesTo(r, 1) // and nobody has told the customer

	n.down()
	s.do(chromedp.Reload())
	before := n.taken.Load()
	n.saw(t, before+2) // the page goes on by itself
	require.Equal(t, key, s.text("#key"))

	n.whole()
	s.do(chromedp.WaitVisible("#receipt"))
	require.Equal(t, "Ordered", s.text("#title"))
	require.Contains(t, s.text("#detail"), "It had been made before")
	require.Len(t, s.orders(r), 1)

	s.do(chromedp.Reload(), chromedp.WaitVisible("#receipt"))
	require.Equal(t, "Ordered", s.text("#title"), "the receipt outlives a reload as well")

	s.do(chromedp.Click("#another"), chromedp.WaitEnabled("#order"))
	require.NotEqual(t, key, s.text("#key"))
	s.do(chromedp.Click("#order"), chromedp.WaitVisible("#receipt"))
	require.Len(t, s.orders(r), 2, "another order is another intent")
}

func TestStorefrontRestartOfTheGateway(t *testing.T) {
	t.Parallel()
	cfg := embedded(t.TempDir())
	first := start(t, cfg)
	n := newNetwork(t, first)
	s := visit(t, n, cfg)
	n.losesAnswers()
	s.do(chromedp.Click("#order"))
	n.saw(t, 1)
	s.comesTo(first, 1)
	n.down()
	require.NoError(t, first.stopped())

	second := start(t, cfg) // on another port: somebody else may have been given the first one's
	n.leadsTo(second)
	n.whole()
	s.do(chromedp.WaitVisible("#receipt"))
	require.Equal(t, "Ordered", s.text("#title"))
	require.Len(t, s.orders(second), 1)
}

func TestStorefrontRefusal(t *testing.T) {
	t.Parallel()
	cfg := embedded(t.TempDir())
	r := start(t, cfg)
	s := visit(t, newNetwork(t, r), cfg)
	s.do(chromedp.SetValue("#dish", "caviar"), chromedp.Click("#order"), chromedp.WaitVisible("#receipt"))
	require.Equal(t, "The balance is not sufficient", s.text("#title"))
	require.Equal(t, "There is no order.", s.text("#status"))
	require.Empty(t, s.orders(r))
	key := s.text("#key")
	s.do(chromedp.Click("#another"), chromedp.WaitEnabled("#order"))
	require.NotEqual(t, key, s.text("#key"), "the refusal says that a new key is safe")
}

// A final refusal of a later attempt says nothing of the one whose answer was lost.
func TestStorefrontALostAnswerIsNotCalledNothing(t *testing.T) {
	t.Parallel()
	cfg := embedded(t.TempDir())
	r := start(t, cfg)
	n := newNetwork(t, r)
	s := visit(t, n, cfg)
	n.losesAnswers()
	s.do(chromedp.Click("#order"))
	s.comesTo(r, 1)
	n.set(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Content-Type", "text/plain") // something in between spoils it: 415, for good
		n.pass(w, r)
	})
	s.do(chromedp.WaitVisible("#receipt"))
	require.Contains(t, s.text("#status"), "not known")
	hidden, err := chromedp.Run(s.page, chromedp.Evaluate[bool](`document.getElementById("another").hidden`))
	require.NoError(t, err)
	require.True(t, hidden, "a new key could make a second order")
	require.Len(t, s.orders(r), 1)
}

func TestDemoIsForTryingOnly(t *testing.T) {
	t.Parallel()
	cfg := embedded(t.TempDir())
	require.NotNil(t, demoPage(&cfg))
	issued := cfg
	issued.Auth.JWKSURL = "https://issuer.example.com/keys"
	require.Nil(t, demoPage(&issued), "tokens are not ours to sign")
	cfg.MySQL.DSN = configs.NewSecret("oncegate:secret@tcp(127.0.0.1:3306)/oncegate")
	require.Nil(t, demoPage(&cfg), "a real database is not for trying")
}
