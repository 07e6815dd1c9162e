package main

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/order"
)

// settingsNow is what the admin API says of the settings.
type settingsNow struct {
	Version   int64
	ChangedBy string `json:"changed_by"`
	Settings  []struct{ Name, Value, Origin string }
}

func (s *settingsNow) value(name string) (value, origin string) {
	for _, one := range s.Settings {
		if one.Name == name {
			return one.Value, one.Origin
		}
	}
	return "", ""
}

func TestTheTTLLab(t *testing.T) {
	t.Parallel()
	c := openConsole(t)

	// Load: it is live, shows what was observed, and changes nothing without a token.
	c.shows("header .link", "live")
	c.shows("#funnel", "answered in the process")
	require.Equal(t, "1 d", c.text("#chosen"))
	require.True(t, evaluate[bool](c, `document.querySelector("#apply").disabled`), "without a token it is read-only")
	require.Equal(t, "Enter a token with the scope admin.write to change it.", c.text("#read-only"))
	c.shows("#lab", "per key, measured on")
	c.picture("console-light-1280", "")

	c.enterToken()
	require.Empty(t, evaluate[string](c, `Object.keys(localStorage).join() + document.cookie`), "a token is kept for the tab only")

	// Slide, by keyboard.
	before := c.text("#share")
	c.run(chromedp.Focus("#slider"), chromedp.SendKeys("#slider", kb.ArrowLeft+kb.ArrowLeft+kb.ArrowLeft+kb.ArrowLeft))
	c.shows("#chosen", "6 h")
	require.NotEqual(t, before, c.text("#share"))
	require.Regexp(t, `^9[67](\.\d)? % 9\d(\.\d)? % to 9\d(\.\d)? %$`, c.text("#share"), "3 of 100 retries come on the next day")
	require.Regexp(t, `^[\d.,]+ [KMG]iB$`, c.text("#memory"))
	require.Contains(t, evaluate[string](c, `document.querySelector("#slider").getAttribute("aria-valuetext")`), "6 h. 9")
	c.picture("ttl-lab", "#lab")

	// Apply: it asks why and shows the difference; nothing has changed until then.
	c.run(chromedp.WaitEnabled("#apply"), chromedp.Click("#apply"), chromedp.WaitVisible("dialog #reason"))
	require.True(t, evaluate[bool](c, `document.querySelector("#go").disabled`), "without a reason there is no change")
	c.run(chromedp.SendKeys("#reason", "Redis is small"), chromedp.Click("#go"), chromedp.WaitVisible("#difference"))
	require.Contains(t, c.text("#difference"), "now 1d then 6h")
	c.picture("ttl-apply", "dialog")
	var now settingsNow
	c.admin("/admin/v1/config", &now)
	require.Zero(t, now.Version, "a dry run changes nothing")
	c.run(chromedp.Click("#go"), chromedp.WaitVisible("#applied"))
	require.Contains(t, c.text("#applied"), "6h since version 1")

	c.admin("/admin/v1/config", &now)
	value, origin := now.value("ttl.receipt")
	require.Equal(t, []string{"6h", "api", "ann"}, []string{value, origin, now.ChangedBy})
	require.Equal(t, http.StatusCreated, newCustomer(t, c.cfg, "alice").post(c.running, "after", potsticker).status)
	require.Eventually(t, func() bool { return c.lives(6 * time.Hour) }, time.Minute, 50*time.Millisecond,
		"an order of now is remembered for the TTL of now")
	c.shows("#version", "version 1")
	c.shows("#changes", "Redis is small")
	c.shows("#ttl", "6 h")
	c.picture("settings", "#config")

	// Revert: back to the default, with a trail.
	c.run(chromedp.Click("#revert"), chromedp.WaitVisible("dialog #reason"), chromedp.Click("#go"), chromedp.WaitVisible("#difference"))
	require.Contains(t, c.text("#difference"), "now 6h then 1d")
	c.run(chromedp.Click("#go"), chromedp.WaitNotPresent("dialog"))
	c.shows("#applied", "1d since version 2")
	c.shows("#changes", "revert of version 1")
	c.admin("/admin/v1/config", &now)
	value, origin = now.value("ttl.receipt")
	require.Equal(t, []string{"1d", "default"}, []string{value, origin})
}

// lives says whether some entry in Redis has about this long to live.
func (c *console) lives(ttl time.Duration) bool {
	client := c.redis.Client(c.t)
	keys, err := client.Keys(c.t.Context(), "oncegate:*").Result()
	require.NoError(c.t, err)
	for _, key := range keys {
		left, err := client.PTTL(c.t.Context(), key).Result()
		require.NoError(c.t, err)
		if left > ttl-time.Minute && left <= ttl {
			return true
		}
	}
	return false
}

func TestTheLabProposesNothingThatWouldBeRefused(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	for range 20_000 { // young enough that the target is reached before anything that is accepted
		c.insight.Decided(order.Answer{Kind: order.Replayed, Layer: order.LayerRedis, Age: time.Second}, nil, time.Millisecond)
	}
	require.Equal(t, http.StatusOK, c.put("ttl.in_progress", 0, `{"value":"17s","reason":"a test"}`))
	c.run(chromedp.Evaluate[chromedp.Void](`document.querySelector("#target").value = "0.9"; document.querySelector("#target").dispatchEvent(new Event("change", {bubbles: true}))`))
	c.shows("#knee", "reached by any TTL that is accepted: from 18 s on, for it must be longer than ttl.in_progress, 17 s")
	c.run(chromedp.Click("#lab .row button"))
	c.shows("#chosen", "20 s")
	c.run(chromedp.Focus("#slider"), chromedp.SendKeys("#slider", kb.Home))
	c.shows("#chosen", "20 s")
}

func TestSomebodyElsesChangeIsNotOverwritten(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	c.enterToken()
	c.run(
		chromedp.Focus("#slider"), chromedp.SendKeys("#slider", kb.ArrowLeft), chromedp.WaitEnabled("#apply"), chromedp.Click("#apply"), chromedp.WaitVisible("dialog #reason"),
		chromedp.SendKeys("#reason", "mine"), chromedp.Click("#go"), chromedp.WaitVisible("#difference"),
	)
	require.Equal(t, http.StatusOK, c.put("ttl.receipt", 0, `{"value":"36h","reason":"theirs"}`))
	c.run(chromedp.Click("#go"))
	c.shows("dialog [role=alert]", "Somebody else changed a setting")
	c.run(chromedp.Click("#go"), chromedp.WaitVisible("#difference"))
	require.Contains(t, c.text("#difference"), "now 36h then 18h")
}

func TestAKeyIsLookedUp(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	alice := newCustomer(t, c.cfg, "alice")
	created := alice.post(c.running, "dinner/1", potsticker)
	require.Equal(t, http.StatusCreated, created.status)
	look := func(user, key string) {
		c.run(chromedp.SetValue(`#keys [name=user]`, user), chromedp.SetValue(`#keys [name=key]`, key), chromedp.Click(`#keys button`))
	}
	look("alice", "dinner/1")
	c.run(chromedp.WaitVisible("#layers"))
	for _, part := range []string{"process", "redis", "mysql", "succeeded", "for ever", created.header.Get("Location")[len("/api/orders/"):]} {
		c.shows("#layers", part)
	}
	require.NotContains(t, c.text("body"), "potsticker", "what was bought is nobody's business here")
	require.Regexp(t, `key_hash [0-9a-f]{12};.* client [0-9a-f]+`, c.text("#keys [role=status]"))
	c.picture("key-look-up", "#keys")
	look("bob", "dinner/1")
	c.shows("#keys", "No layer knows this key of bob")
	look("bob", "not a key")
	c.shows("#keys .bad", "visible ASCII")
}

func TestTheBreakerOpensBeforeOnesEyes(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	alice := newCustomer(t, c.cfg, "alice")
	n := 0
	order := func() int {
		n++
		return alice.post(c.running, "k"+strconv.Itoa(n), potsticker).status
	}
	require.Equal(t, http.StatusCreated, order())
	require.Equal(t, "closed", c.text("#breaker-state dd"))

	c.redis.Kill()
	require.Eventually(t, func() bool {
		require.Equal(t, http.StatusCreated, order(), "an outage of Redis is none of orders")
		return c.text("#breaker-state dd") != "closed"
	}, time.Minute, 10*time.Millisecond)
	c.shows("#redis", "away")
	c.shows("#breaker table", "unreachable")
	require.Equal(t, "polite", evaluate[string](c, `document.querySelector("#breaker-state").getAttribute("aria-live")`))
	c.picture("breaker-open", "")

	c.redis.Restart()
	require.Eventually(t, func() bool {
		require.Equal(t, http.StatusCreated, order())
		return c.text("#breaker-state dd") == "closed"
	}, time.Minute, 50*time.Millisecond)
	c.shows("#redis", "up")
	c.picture("breaker", "#breaker")

	// Conflicts come live as well, grouped by client.
	for range 3 {
		require.Equal(t, http.StatusConflict, alice.post(c.running, "k1", `{"sku":"potsticker","quantity":3,"amount":"59.70"}`).status)
	}
	require.Eventually(t, func() bool {
		return evaluate[bool](c, `[...document.querySelectorAll("#conflicts summary b")].some((e) => e.textContent === "3")`)
	}, time.Minute, 50*time.Millisecond)
	c.run(chromedp.Click("#conflicts summary"))
	c.shows("#conflicts table", "IDEMPOTENCY_KEY_REUSED")
	require.NotContains(t, c.text("#conflicts"), "alice")
}

func TestAConsoleWithATokenThatOnlyReadsSaysSo(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	c.token = c.mint("ron", gateway.ScopeAdminRead)
	c.enterToken()
	c.shows("#read-only", "The token of ron lacks the scope admin.write: it can look, and change nothing.")
	c.shows("header .access", "read-only token")
	c.run(chromedp.Focus("#slider"), chromedp.SendKeys("#slider", kb.ArrowLeft))
	c.shows("#apply", "18 h")
	require.True(t, evaluate[bool](c, `document.querySelector("#apply").disabled`))
	require.Equal(t, "read-only", evaluate[string](c, `document.querySelector("#apply").getAttribute("aria-describedby")`))
	require.Equal(t, http.StatusForbidden, c.put("ttl.receipt", 0, `{"value":"36h","reason":"a try"}`))
	c.shows("#config", "ttl.receipt")

	c.run(chromedp.Click("header .access button"), chromedp.WaitVisible("#enter-token"))
	c.token = c.mint("wanda", gateway.ScopeAdminWrite)
	c.enterToken()
	c.shows("header .access", "token entered")
	c.run(chromedp.WaitNotPresent("#read-only"))
	require.False(t, evaluate[bool](c, `document.querySelector("#apply").disabled`))
}

func TestALockedConsoleAsksForAToken(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	c.enterToken()
	c.run(chromedp.Evaluate[chromedp.Void](`sessionStorage.setItem("oncegate-token", "nonsense")`), chromedp.Reload(), chromedp.WaitVisible("#token"))
	c.shows("header [role=alert]", "token")
	c.run(chromedp.SendKeys("#token", c.token+"\r"))
	c.shows("header .link", "live")
}

func TestPauseStopsTheNumbers(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	c.run(chromedp.Click(`header button[aria-pressed=false]`), chromedp.WaitVisible(`header button[aria-pressed=true]`))
	c.shows("header .link", "paused")
	was := c.text("#funnel")
	alice := newCustomer(t, c.cfg, "alice")
	require.Equal(t, http.StatusCreated, alice.post(c.running, "k", potsticker).status)
	require.Equal(t, was, c.text("#funnel"))
	c.run(chromedp.Click(`header button[aria-pressed=true]`))
	c.shows("header .link", "live")
	require.Eventually(t, func() bool { return c.text("#funnel") != was }, time.Minute, 50*time.Millisecond)
}
