//go:build unix

package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
)

// The baselines that are HTTP servers.
const (
	BaselineBare  = "bare"
	BaselineRedis = "redis"
)

// BaselineOptions say which baseline is served and how.
type BaselineOptions struct {
	Kind        string
	Listen      string
	Redis       string
	Connections int
}

// orderAnswer is about what the gateway answers.
const orderAnswer = `{"order_id":"0193765c-5e3a-7cc1-a3f1-0d3b1e2c4f5a","user_id":"bench-000000","sku":"potsticker",` +
	`"quantity":2,"amount":"39.80","status":"PENDING","created_at":"2026-11-29T12:00:00.000Z"}`

const ordersPath = "/api/orders"

// ServeBaseline serves a baseline until ctx ends. It runs in a process of its
// own, as the gateway does.
func ServeBaseline(ctx context.Context, o BaselineOptions) (err error) {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New() // no logger, no recovery: nothing that is not needed
	engine.GET("/readyz", func(c *gin.Context) { c.Status(http.StatusOK) })
	switch o.Kind {
	case BaselineBare:
		bare(engine)
	case BaselineRedis:
		client := oneCommand(engine, o)
		defer func() { err = errors.Join(err, client.Close()) }()
	default:
		return fmt.Errorf("unknown baseline %q", o.Kind)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: engine, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err = server.Shutdown(end)
	if served := <-served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// bare does nothing: it reads the body and answers with an order.
func bare(engine *gin.Engine) {
	answer := []byte(orderAnswer)
	engine.POST(ordersPath, func(c *gin.Context) {
		if _, err := io.Copy(io.Discard, c.Request.Body); err != nil {
			c.Status(http.StatusBadRequest)
			return
		}
		c.Data(http.StatusCreated, "application/json", answer)
	})
}

// openBaseline starts a baseline as a process.
func openBaseline(ctx context.Context, s *stage, kind string) (t *target, err error) {
	var undo closers
	defer func() {
		if err != nil {
			err = errors.Join(err, undo.close())
		}
	}()
	addr, release, err := s.c.Reserve()
	if err != nil {
		return nil, err
	}
	undo.add(release)
	args := append(s.c.Baseline[1:len(s.c.Baseline):len(s.c.Baseline)],
		"--kind", kind, "--listen", addr, "--redis", s.c.Redis, "--connections", strconv.Itoa(s.c.most()))
	cmd := exec.Command(s.c.Baseline[0], args...) //nolint:gosec,noctx // G204: this very program; it is stopped in good order
	cmd.Env = environment(nil)
	p, err := spawn(cmd)
	if err != nil {
		return nil, err
	}
	undo.add(p.stop)
	if err := p.awaitReady(ctx, addr); err != nil {
		return nil, err
	}
	post := newPoster(addr)
	return &target{
		worker: func(ctx context.Context, i int) (worker, error) {
			return post.worker(ctx, known(s.users, i), made), nil
		},
		stop: undo.close,
	}, nil
}
