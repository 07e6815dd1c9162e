package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/internal/browser"
	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/order"
)

// console is a gateway with a Redis of its own, and a browser that looks at it.
type console struct {
	*running
	t     *testing.T
	cfg   configs.Config
	redis *testserver.RedisServer
	page  context.Context
	token string // of an operator
}

func openConsole(t *testing.T) *console {
	t.Helper()
	c := &console{t: t, page: browser.New(t), redis: testserver.StartRedis(t)}
	c.cfg = embedded(t.TempDir())
	c.cfg.MySQL.DSN = configs.NewSecret(configs.EmbeddedDSN)
	c.cfg.Redis.Addrs = []string{c.redis.Addr}
	c.cfg.Breaker.OpenFor = 500 * time.Millisecond
	c.cfg.Cache.MACKey = configs.NewSecret("a key of sixteen bytes or more")
	c.cfg.Users.ProvisionBalance = "1000000.00"
	c.running = start(t, c.cfg)
	c.token = c.mint("ann", gateway.ScopeAdmin)
	c.work()
	c.run(chromedp.Navigate("http://"+c.AdminAddr()+"/"), chromedp.WaitVisible("#lab #slider"))
	if os.Getenv(screenshotsEnv) != "" {
		c.run(chromedp.SendKeys(`#config [type=search]`, ".")) // without the directory of this test
	}
	return c
}

// mint makes a token of an operator.
func (c *console) mint(user, scope string) string {
	c.t.Helper()
	secret, err := signingSecret(&c.cfg)
	require.NoError(c.t, err)
	token, err := mint(&c.cfg, secret, tokenRequest{user: user, scopes: []string{scope}, ttl: time.Hour})
	require.NoError(c.t, err)
	return token
}

// history is a day's traffic as storefronts make it, without the day: most
// retries come within seconds, some after minutes, a few on the next day.
type history struct {
	*rand.Rand
	to order.Observer
}

func (h history) happen(keys, retries int) {
	say := func(kind order.Kind, layer order.Layer, age, took time.Duration) {
		h.to.Decided(order.Answer{Kind: kind, Layer: layer, Age: age}, nil, took)
	}
	spread := func(mean time.Duration) time.Duration { return time.Duration(h.ExpFloat64() * float64(mean)) }
	for range keys {
		say(order.Created, order.LayerLedger, 0, 2*time.Millisecond+spread(3*time.Millisecond))
	}
	for range retries {
		switch p := h.IntN(1000); {
		case p < 550:
			say(order.Replayed, order.LayerProcess, spread(2*time.Second), spread(60*time.Microsecond))
		case p < 800:
			say(order.Replayed, order.LayerRedis, spread(40*time.Second), 200*time.Microsecond+spread(300*time.Microsecond))
		case p < 970:
			say(order.Replayed, order.LayerRedis, spread(25*time.Minute), 200*time.Microsecond+spread(300*time.Microsecond))
		default:
			say(order.Replayed, order.LayerLedger, 22*time.Hour+spread(4*time.Hour), 2*time.Millisecond+spread(2*time.Millisecond))
		}
	}
}

// work makes traffic: at once, or within a minute and a half with real customers
// among it if pictures are asked for.
func (c *console) work() {
	h := history{rand.New(rand.NewPCG(3, 5)), c.insight} // the same in every run
	alice := newCustomer(c.t, c.cfg, "alice")
	require.Equal(c.t, http.StatusCreated, alice.post(c.running, "the-first", potsticker).status, "so that there is an entry to measure")
	if os.Getenv(screenshotsEnv) == "" {
		h.happen(2400, 800)
		return
	}
	bob := newCustomer(c.t, c.cfg, "bob")
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for n := range 900 {
		h.happen(h.IntN(5), h.IntN(3))
		key := fmt.Sprint("order-", n)
		bob.post(c.running, key, potsticker)
		if n%97 == 0 {
			bob.post(c.running, key, `{"sku":"potsticker","quantity":3,"amount":"59.70"}`)
			bob.post(c.running, "dear-"+key, `{"sku":"caviar","quantity":1,"amount":"9999999.00"}`)
		}
		<-ticker.C
	}
}

func (c *console) run(steps ...chromedp.Action[chromedp.Void]) {
	c.t.Helper()
	require.NoError(c.t, chromedp.Do(c.page, steps...))
}

// text waits for an element and returns its text.
func (c *console) text(selector string) string {
	c.t.Helper()
	text, err := chromedp.Run(c.page, chromedp.Text(selector))
	require.NoError(c.t, err)
	return strings.Join(strings.Fields(text), " ")
}

// shows waits until an element has a text in it.
func (c *console) shows(selector, part string) {
	c.t.Helper()
	script := fmt.Sprintf(`document.querySelector(%q)?.innerText ?? ""`, selector)
	require.Eventually(c.t, func() bool {
		got, err := chromedp.Run(c.page, chromedp.Evaluate[string](script))
		return err == nil && strings.Contains(got, part)
	}, time.Minute, 50*time.Millisecond, "%s never shows %q", selector, part)
}

// evaluate runs a script of ours in the page.
func evaluate[T any](c *console, script string) T {
	c.t.Helper()
	v, err := chromedp.Run(c.page, chromedp.Evaluate[T](script))
	require.NoError(c.t, err)
	return v
}

// enterToken shows the console who asks.
func (c *console) enterToken() {
	c.t.Helper()
	c.run(
		chromedp.Click("#enter-token"), chromedp.WaitVisible("#token"),
		chromedp.SendKeys("#token", c.token+"\r"), chromedp.WaitNotPresent("#token"),
		chromedp.WaitVisible("#lab #slider"),
	)
}

// admin asks the admin API as the operator, and decodes the answer.
func (c *console) admin(path string, into any) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, "http://"+c.AdminAddr()+path, http.NoBody)
	require.NoError(c.t, err)
	r.Header.Set("Authorization", "Bearer "+c.token)
	transport := &http.Transport{DisableKeepAlives: true}
	answer, err := transport.RoundTrip(r)
	require.NoError(c.t, err)
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	require.NoError(c.t, err)
	require.Equal(c.t, http.StatusOK, answer.StatusCode, string(body))
	require.NoError(c.t, json.Unmarshal(body, into))
}

// as makes the window another size, and the page light or dark.
func (c *console) as(width, height int64, scheme string) {
	c.t.Helper()
	_, err := chromedp.Call(c.page, emulation.SetDeviceMetricsOverride,
		emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 600})
	require.NoError(c.t, err)
	_, err = chromedp.Call(c.page, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	require.NoError(c.t, err)
	script := fmt.Sprintf(`innerWidth === %d && matchMedia("(prefers-color-scheme: %s)").matches`, width, scheme)
	require.Eventually(c.t, func() bool {
		got, err := chromedp.Run(c.page, chromedp.Evaluate[bool](script))
		return err == nil && got
	}, time.Minute, 50*time.Millisecond)
}

// screenshotsEnv names a directory to keep pictures in, for the documents.
const screenshotsEnv = "ONCEGATE_SCREENSHOTS"

// picture keeps the whole page, or one element of it, if that is asked for.
func (c *console) picture(name, selector string) {
	c.t.Helper()
	dir := os.Getenv(screenshotsEnv)
	if dir == "" {
		return
	}
	take := chromedp.FullScreenshot(100)
	if selector != "" {
		take = chromedp.Screenshot(selector)
	}
	png, err := chromedp.Run(c.page, take)
	require.NoError(c.t, err)
	require.NoError(c.t, os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600))
}

// put changes a setting over the admin API, on top of a version.
func (c *console) put(name string, version int, body string) (status int) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodPut, "http://"+c.AdminAddr()+"/admin/v1/config/"+name, strings.NewReader(body))
	require.NoError(c.t, err)
	r.Header.Set("Authorization", "Bearer "+c.token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("If-Match", fmt.Sprintf(`"%d"`, version))
	transport := &http.Transport{DisableKeepAlives: true}
	answer, err := transport.RoundTrip(r)
	require.NoError(c.t, err)
	require.NoError(c.t, answer.Body.Close())
	return answer.StatusCode
}
