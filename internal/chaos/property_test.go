//go:build linux

package chaos

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/loadtest/decimal"
)

// wish is what a customer wants: one order, or a batch of lines that are alike.
type wish struct {
	cents, quantity int64 // of a line
	lines           int   // of a batch; 0 is an order by itself
}

func (x wish) count() int { return max(1, x.lines) }

// model is the whole promise for one user: a key keeps its first answer for the
// content that it came with, and everything else is arithmetic.
type model struct {
	balance, stock int64
	first          map[string]wish   // by key
	said           map[string]answer // by key
	bought         []*bought
	payments       []*payment
}

func (m *model) want(key string, x wish) (status int, code string, before answer) {
	if w, known := m.first[key]; known && w != x {
		return http.StatusConflict, "IDEMPOTENCY_KEY_REUSED", answer{}
	} else if known {
		return m.said[key].status, m.said[key].code(), m.said[key]
	}
	m.first[key] = x
	cents, quantity := x.cents*int64(x.count()), x.quantity*int64(x.count())
	switch {
	case cents > m.balance:
		return http.StatusUnprocessableEntity, "INSUFFICIENT_BALANCE", answer{}
	case quantity > m.stock:
		return http.StatusUnprocessableEntity, "OUT_OF_STOCK", answer{}
	}
	m.balance, m.stock = m.balance-cents, m.stock-quantity
	return http.StatusCreated, "", answer{}
}

// TestRandomSequencesFollowTheModel: orders, batches, copies of them, cancellations,
// payments, faults and crashes in any sequence come to what a few lines say, and so
// does the database.
func TestRandomSequencesFollowTheModel(t *testing.T) { //nolint:paralleltest // gateways are killed, and this machine is small
	if *runFor < time.Minute { // among all other tests
		require.NoError(t, flag.Set("rapid.checks", "10"))
	}
	for _, engine := range []string{"MySQL", "MariaDB"} { //nolint:paralleltest // as above
		t.Run(engine, func(t *testing.T) {
			w := newWorld(t, engine, nemesisProgram(t))
			var users, asked atomic.Int64
			rapid.Check(t, func(rt *rapid.T) { w.follows(rt, fmt.Sprintf("p-%d", users.Add(1)), &asked) })
			t.Logf("%d sequences with %d answers agree with the model", users.Load(), asked.Load())
			w.heal()
			audited(t, w.sites[0].gateway)
		})
	}
}

// shopper is one user of a sequence.
type shopper struct {
	w            *world
	rt           *rapid.T
	user, bearer string
	model        model
	asked        *atomic.Int64
}

func (w *world) follows(rt *rapid.T, user string, asked *atomic.Int64) {
	s := &shopper{w: w, rt: rt, user: user, bearer: token(w.t, user), asked: asked, model: model{
		balance: rapid.SampledFrom([]int64{0, 4_00, 10_00, 100_00}).Draw(rt, "balance"),
		stock:   rapid.SampledFrom([]int64{0, 3, 8, 100}).Draw(rt, "stock"),
		first:   map[string]wish{}, said: map[string]answer{},
	}}
	for _, statement := range []string{
		fmt.Sprintf("INSERT INTO users (user_id, balance, credited, created_at) VALUES (?, %d / 100, %[1]d / 100, NOW(3))", s.model.balance),
		fmt.Sprintf("INSERT INTO stock (sku, available, supplied) VALUES (?, %d, %[1]d)", s.model.stock),
	} {
		_, err := w.admin.ExecContext(context.Background(), statement, user)
		require.NoError(rt, err)
	}
	rt.Repeat(map[string]func(*rapid.T){
		"":       func(*rapid.T) { s.w.revive() }, // after each: a busy database has a start given up
		"order":  func(rt *rapid.T) { s.order(rt, 1) },
		"again":  func(rt *rapid.T) { s.order(rt, 1) }, // twice as often as anything else
		"copies": func(rt *rapid.T) { s.order(rt, rapid.IntRange(2, 6).Draw(rt, "copies")) },
		"cancel": s.cancel,
		"pay":    s.pay,
		"crash": func(rt *rapid.T) {
			g := s.site(rt)
			g.kill()
			g.start()
		},
		"crash meanwhile": func(rt *rapid.T) {
			g := s.site(rt)
			after := time.Duration(rapid.IntRange(0, 40).Draw(rt, "milliseconds")) * time.Millisecond
			var crash sync.WaitGroup
			crash.Go(func() {
				<-time.After(after)
				g.kill()
				g.start()
			})
			defer crash.Wait()
			rapid.SampledFrom([]func(*rapid.T){
				func(rt *rapid.T) { s.order(rt, 1) }, func(rt *rapid.T) { s.order(rt, 3) }, s.cancel, s.pay,
			}).Draw(rt, "meanwhile")(rt)
		},
		"forget": func(*rapid.T) { w.cache.FlushAll(context.Background()) },
		"cut": func(rt *rapid.T) {
			g := s.site(rt)
			g.sql.Cut()
			g.redis.Cut()
		},
		"lose the next commit": func(rt *rapid.T) {
			action := rapid.SampledFrom([]faultproxy.Action{
				faultproxy.CutBefore, faultproxy.Swallow,
				faultproxy.AnswerError{Code: 1213, State: "40001", Message: "Deadlock found"},
				faultproxy.DelayForward{For: 50 * time.Millisecond},
			}).Draw(rt, "commit")
			var once atomic.Bool
			s.site(rt).sql.OnQuery(func(q string) faultproxy.Action {
				if q == "COMMIT" && !once.Swap(true) {
					return action
				}
				return faultproxy.Pass
			})
		},
	})
	s.requireState()
}

func (s *shopper) site(rt *rapid.T) *site { return rapid.SampledFrom(s.w.sites).Draw(rt, "gateway") }

// order wants something, in one or several copies at once, and compares every
// answer with the model's.
func (s *shopper) order(rt *rapid.T, copies int) {
	key := rapid.SampledFrom([]string{"a", "A", "b", "c", "d", "e", "f", "g", "h", "i"}).Draw(rt, "key")
	x := wish{
		rapid.SampledFrom([]int64{1_00, 2_50}).Draw(rt, "cents"), rapid.Int64Range(1, 2).Draw(rt, "quantity"),
		rapid.SampledFrom([]int{0, 0, 0, 1, 2, 3}).Draw(rt, "lines"),
	}
	deferred := x.lines > 0 && rapid.Bool().Draw(rt, "deferred")
	begin := rapid.IntRange(0, gatewayCount-1).Draw(rt, "first gateway")
	path, body := s.asks(key, x)
	answers, errs := make([]answer, copies), make([]error, copies)
	var all sync.WaitGroup
	for i := range copies {
		all.Go(func() { answers[i], errs[i] = s.insist(begin+i, path, key, body, deferred) })
	}
	all.Wait()
	s.asked.Add(int64(copies))
	require.NoError(s.rt, errors.Join(errs...))
	status, code, before := s.model.want(key, x)
	for _, a := range answers {
		require.Equal(s.rt, status, a.status, a.body)
		if code != "IDEMPOTENCY_KEY_REUSED" {
			require.Equal(s.rt, answers[0].body, a.body, "copies have the same bytes")
			require.True(s.rt, before.body == "" || before.body == a.body, "the first answer, again: %s", a.body)
		}
		require.Equal(s.rt, code, a.code())
	}
	if code != "IDEMPOTENCY_KEY_REUSED" {
		s.model.said[key] = answers[0]
	}
	if status == http.StatusCreated && before.body == "" {
		require.NoError(s.rt, s.model.buy(x, answers[0]))
	}
}

// asks is where and how to ask for it. Orders of a batch need a number each.
func (s *shopper) asks(key string, x wish) (path, body string) {
	line := fmt.Sprintf(`{"sku":%q,"quantity":%d,"amount":%q`, s.user, x.quantity, decimal.Text(x.cents))
	if x.lines == 0 {
		return "/api/orders", line + "}"
	}
	var lines []string
	for i := range x.lines {
		lines = append(lines, fmt.Sprintf(`%s,"external_order_no":"%s-%d"}`, line, key, i))
	}
	return "/api/order-batches", `{"orders":[` + strings.Join(lines, ",") + `]}`
}

// insist asks for orders until there is an answer. Of a deferred request the first
// gateway that accepts it says only that; then the answer itself is asked for.
func (s *shopper) insist(at int, path, key, body string, deferred bool) (answer, error) {
	return s.persist(at, func(g *gateway) (answer, error) {
		headers := map[string]string{"Authorization": "Bearer " + s.bearer, "Idempotency-Key": key}
		if deferred {
			headers["Prefer"] = "respond-async"
		}
		a, err := askWith(http.MethodPost, "http://"+g.addr+path, body, headers)
		deferred = deferred && a.status != http.StatusAccepted
		return a, err
	})
}

// persist asks one gateway after the other until there is an answer.
func (s *shopper) persist(at int, ask func(*gateway) (answer, error)) (last answer, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), readyTime)
	defer cancel()
	for tick := every(ctx, 20*time.Millisecond); tick(); at++ {
		last, err = ask(s.w.sites[at%gatewayCount].gateway)
		if err == nil && last.status != http.StatusAccepted && last.final() {
			return last, nil
		}
	}
	return last, fmt.Errorf("no answer in %v: %d %s %w", readyTime, last.status, last.body, err)
}

// requireState compares the database with the model.
func (s *shopper) requireState() {
	var cents, available, orders int64
	require.NoError(s.rt, s.w.admin.QueryRowContext(context.Background(), `SELECT ROUND(u.balance * 100), s.available,
		(SELECT COUNT(*) FROM orders o WHERE o.user_id = u.user_id) FROM users u JOIN stock s ON s.sku = u.user_id WHERE u.user_id = ?`,
		s.user).Scan(&cents, &available, &orders))
	require.Equal(s.rt, []int64{s.model.balance, s.model.stock, int64(len(s.model.bought))}, []int64{cents, available, orders}, "balance, stock, orders")
	s.requireChanges()
}
