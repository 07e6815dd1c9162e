//go:build unix

package storefront_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/examples/storefront"
	"github.com/oncegate/oncegate/internal/browser"
)

// shop serves the page, and takes orders as the gateway does: the first content
// of a key is the order, and another one is refused.
type shop struct {
	*httptest.Server
	mu       sync.Mutex
	visitors int
	orders   map[string]string // content by user and key
	received int
	refuse   string // problem in place of an answer
	hold     chan struct{}
}

func open(t *testing.T) *shop {
	t.Helper()
	s := &shop{orders: map[string]string{}}
	mux := http.NewServeMux()

	mux.Handle("GET /demo/", http.StripPrefix("/demo/", http.FileServerFS(storefront.Files())))
	mux.HandleFunc("POST /demo/session", s.session)
	mux.HandleFunc("POST /api/orders", s.order)
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *shop) session(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	user := r.URL.Query().Get("user")
	if user == "" {
		s.visitors++
		user = "visitor " + string(rune('0'+s.visitors))
	}
	fmt.Fprintf(w, `{"user":%q,"token":%q}`, user, user)
}

func (s *shop) order(w http.ResponseWriter, r *http.Request) {
	content, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.received++
	if hold := s.hold; hold != nil {
		s.mu.Unlock()
		<-hold
		s.mu.Lock()
	}
	id := r.Header.Get("Authorization") + " " + r.Header.Get("Idempotency-Key")
	first, there := s.orders[id]
	switch {
	case s.refuse != "":
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, s.refuse)
	case there && first != string(content):
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"code":"IDEMPOTENCY_KEY_REUSED","outcome":"rejected","retryable":false,"safe_new_key":true,"title":"Reused","detail":""}`)
	default:
		s.orders[id] = string(content)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"order_id":"one","amount":"1.00"}`)
	}
}

func (s *shop) set(change func(*shop)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *shop) saw() (requests, orders int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.received, len(s.orders)
}

// customer is one tab with the page.
type customer struct {
	t   *testing.T
	tab context.Context
}

func (s *shop) visit(t *testing.T) *customer {
	t.Helper()
	c := &customer{t, browser.New(t)}
	c.do(chromedp.Navigate(s.URL+"/demo/"), chromedp.WaitEnabled("#order"))
	return c
}

// again opens the page in another tab of the same browser.
func (c *customer) again(s *shop) *customer {
	c.t.Helper()
	tab, cancel := chromedp.NewContext(c.tab)
	c.t.Cleanup(cancel)
	require.NoError(c.t, chromedp.Do(tab)) // with a deadline the tab would end with it
	other := &customer{c.t, tab}
	other.do(chromedp.Navigate(s.URL+"/demo/"), chromedp.WaitReady("#order"))
	return other
}

func (c *customer) do(steps ...chromedp.Action[chromedp.Void]) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.tab, time.Minute)
	defer cancel()
	require.NoError(c.t, chromedp.Do(ctx, steps...))
}

func (c *customer) eval(script string) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.tab, time.Minute)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](script))
	require.NoError(c.t, err)
	return text
}

func (c *customer) reads(selector, text string) {
	c.t.Helper()
	shown := func() bool { return c.eval(`document.querySelector("`+selector+`").textContent`) == text }
	require.Eventually(c.t, shown, time.Minute, 20*time.Millisecond, "%s never reads %q", selector, text)
}

// storage makes the browser refuse to store anything, or take it again.
func (c *customer) storage(works bool) {
	c.t.Helper()
	if works {
		c.eval(`Storage.prototype.setItem = window.usual; ""`)
		return
	}
	c.eval(`window.usual = Storage.prototype.setItem;
		Storage.prototype.setItem = () => { throw new DOMException("no room", "QuotaExceededError"); }; ""`)
}

func TestWhatCannotBeStoredIsNotSent(t *testing.T) {
	t.Parallel()
	s := open(t)
	c := s.visit(t)
	c.storage(false)
	c.do(chromedp.Click("#order"), chromedp.Click("#order"))
	require.Contains(t, c.eval(`document.getElementById("status").textContent`), "QuotaExceededError")
	requests, _ := s.saw()
	require.Zero(t, requests, "after a reload nobody would know what it was")

	c.storage(true)
	hold := make(chan struct{})
	s.set(func(s *shop) { s.hold = hold })
	c.do(chromedp.Click("#order"))
	require.Eventually(t, func() bool { requests, _ := s.saw(); return requests == 1 }, time.Minute, 10*time.Millisecond)
	c.storage(false)
	s.set(func(s *shop) { s.hold = nil })
	close(hold)
	c.reads("#title", "Ordered")
	c.reads("#status", "Your order is in.")
	c.do(chromedp.Click("#another"))
	require.Contains(t, c.eval(`document.getElementById("status").textContent`), "QuotaExceededError")
	c.do(chromedp.Reload(), chromedp.WaitVisible("#receipt")) // asked again, and told the same
	c.reads("#title", "Ordered")
	_, orders := s.saw()
	require.Equal(t, 1, orders)
}

func TestTabsShareOneIntent(t *testing.T) {
	t.Parallel()
	s := open(t)
	first := s.visit(t)
	second := first.again(s)
	second.do(chromedp.SetValue("#portions", "7"))
	first.do(chromedp.Click("#order"))
	first.reads("#title", "Ordered")
	second.reads("#title", "Ordered")
	require.Equal(t, "2", second.eval(`document.getElementById("portions").value`), "what was ordered, and not what was not")
	_, orders := s.saw()
	require.Equal(t, 1, orders)

	second.do(chromedp.Click("#another"))
	key := second.eval(`document.getElementById("key").textContent`)
	first.reads("#key", key)
	first.reads("#status", "")
}

// Both tabs show the same; the event that tells one of the other has not come yet.
func TestATabThatHasNotHeardOfTheOtherAsksTheStorage(t *testing.T) {
	t.Parallel()
	s := open(t)
	c := s.visit(t)
	// As the other tab does it: no event comes to the tab that stores.
	c.eval(`const other = JSON.parse(localStorage.getItem("intent")); other.body = '{"sku":"dumpling","quantity":1,"amount":"12.00"}';
		localStorage.setItem("intent", JSON.stringify(other)); ""`)
	c.do(chromedp.SetValue("#portions", "7"), chromedp.Click("#order"))
	c.reads("#title", "Ordered")
	s.set(func(s *shop) {
		require.Len(t, s.orders, 1)
		for _, content := range s.orders {
			require.Contains(t, content, `"dumpling"`)
		}
	})

	c.eval(`localStorage.setItem("intent", JSON.stringify({ user: "visitor 1", key: "of the other tab" })); ""`)
	c.do(chromedp.Click("#another"))
	c.reads("#key", "of the other tab")
}

func TestARefusalThatSettlesNothingCanBeSentAgain(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]string{
		"no verdict":     `{"code":"FORBIDDEN","outcome":"rejected","retryable":false,"safe_new_key":false,"title":"Refused","detail":""}`,
		"not remembered": `{"code":"OUT_OF_STOCK","outcome":"rejected","retryable":false,"safe_new_key":false,"title":"Refused","detail":""}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			s.set(func(s *shop) { s.refuse = refusal })
			c := s.visit(t)
			c.do(chromedp.Click("#order"))
			c.reads("#title", "Refused")
			key := c.eval(`document.getElementById("key").textContent`)
			require.Equal(t, "true", c.eval(`String(document.getElementById("another").hidden)`))
			c.do(chromedp.Reload(), chromedp.WaitVisible("#receipt"))
			s.set(func(s *shop) { s.refuse = "" })
			c.do(chromedp.WaitEnabled("#order"), chromedp.Click("#order"))
			c.reads("#title", "Ordered")
			require.Equal(t, key, c.eval(`document.getElementById("key").textContent`))
			require.Equal(t, "title", c.eval(`document.activeElement.id`), "the keyboard is where the news is, and on no button")
		})
	}
}

func TestWhatThisPageHasNotStoredIsNoIntent(t *testing.T) {
	t.Parallel()
	for _, stored := range []string{`{}`, `"x"`, `{"user":"u","key":"k","body":"{"}`, `[`} {
		s := open(t)
		c := s.visit(t)
		c.eval("localStorage.setItem('intent', `" + stored + "`); ''")
		c.do(chromedp.Reload(), chromedp.WaitEnabled("#order"), chromedp.Click("#order"))
		c.reads("#title", "Ordered")
		require.Len(t, c.eval(`document.getElementById("key").textContent`), 36, "a key of its own")
	}
}
