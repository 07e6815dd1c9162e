package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/internal/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testserver.Settling(m)) }

const potsticker = `{"sku":"potsticker","quantity":2,"amount":"39.80"}`

// patient is a redis.op_timeout for a busy machine, where a healthy Redis may take
// longer than the default to answer. Only mysql.lock_wait_timeout is longer.
const patient = 900 * time.Millisecond

// embedded is the configuration of make run, on free ports and in dir, with limits
// that a database outlasts whose machine stands still for some seconds.
func embedded(dir string) configs.Config {
	c := configs.Default()
	c.DataDir = dir
	c.Redis.OpTimeout = patient
	c.MySQL.ReadTimeout, c.RequestBudget = 8*time.Second, 9*time.Second
	c.HTTP.WriteTimeout, c.MySQL.WaitTimeout = 21*time.Second, 22*time.Second // which must be longer
	c.HTTP.Listen, c.Admin.Listen = "127.0.0.1:0", "127.0.0.1:0"
	return c
}

// running is an App that serves.
type running struct {
	*App
	t    *testing.T
	stop context.CancelFunc
	done chan error
}

// start runs an App until the test ends, or stopped is called.
func start(t *testing.T, c configs.Config) *running {
	t.Helper()
	app, err := New(t.Context(), c, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return serving(t, app)
}

// serving runs an App as start does.
func serving(t *testing.T, app *App) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	r := &running{App: app, t: t, stop: cancel, done: make(chan error, 1)}
	go func() {
		r.done <- app.Run(ctx)
		close(r.done)
	}()
	t.Cleanup(func() { require.NoError(t, r.stopped()) })
	return r
}

// isWell waits until a gateway says so of itself: on a busy machine a Redis that is
// there may seem to be away for a moment.
func (r *running) isWell(c *customer) {
	r.t.Helper()
	eventually(r.t, "it is never well", func() bool { return strings.Contains(c.get(r, "/readyz").body, `"status":"ok"`) })
}

// stopped asks the App to stop, as a signal does, and waits for it.
func (r *running) stopped() error {
	r.stop()
	return <-r.done
}

// customer sends requests as one user.
type customer struct {
	t      *testing.T
	http   *http.Client
	bearer string
}

func newCustomer(t *testing.T, c configs.Config, user string) *customer {
	t.Helper()
	secret, err := signingSecret(&c)
	require.NoError(t, err)
	token, err := mint(&c, secret, tokenRequest{user: user, scopes: []string{"orders"}, ttl: time.Hour})
	require.NoError(t, err)
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return &customer{t: t, http: &http.Client{Transport: transport, Timeout: 30 * time.Second}, bearer: "Bearer " + token}
}

type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) replayed() bool { return a.header.Get("Idempotent-Replayed") == "true" }

// try sends one request; the error is the connection's.
func (c *customer) try(method, url, key, body string) (answer, error) {
	r, err := http.NewRequestWithContext(c.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Authorization", c.bearer)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(b)}, err
}

func (c *customer) do(method, url, key, body string) answer {
	c.t.Helper()
	a, err := c.try(method, url, key, body)
	require.NoError(c.t, err)
	return a
}

func (c *customer) post(r *running, key, body string) answer {
	c.t.Helper()
	return c.do(http.MethodPost, "http://"+r.Addr()+"/api/orders", key, body)
}

func (c *customer) get(r *running, path string) answer {
	c.t.Helper()
	return c.do(http.MethodGet, "http://"+r.Addr()+path, "", "")
}
