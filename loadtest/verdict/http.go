package verdict

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/oncegate/oncegate/loadtest/decimal"
	"github.com/oncegate/oncegate/loadtest/history"
	"github.com/oncegate/oncegate/loadtest/wire"
)

const (
	httpReaders   = 8
	httpTries     = 8
	sampledKeys   = 500  // heard successes whose status is asked as well
	sampledUsers  = 2000 // who sent nothing, and so must have nothing
	pageSize      = 100
	pagesPerUser  = 100_000
	longestPause  = 5 * time.Second
	defaultPause  = 200 * time.Millisecond
	shortestPause = 10 * time.Millisecond
)

// Where orders and what became of requests are.
const (
	ordersPath   = "/api/orders/"
	requestsPath = "/api/requests/"
)

// FromHTTP reads what the users can see: their orders, and for every key in doubt
// what became of its request. Tokens maps users to tokens; of those who have no
// case a sample is read.
func FromHTTP(ctx context.Context, client *wire.Client, tokens map[string]string, cases []*history.Case) (*Truth, error) {
	r := &reader{client: client, tokens: tokens, truth: &Truth{Source: "http", Keys: map[KeyID]Recorded{}}, rows: map[string]int{}}
	users := map[string]bool{}
	for _, c := range cases {
		users[c.User] = true
	}
	list := make([]string, 0, len(users))
	for u := range users {
		list = append(list, u)
	}
	for u := range tokens {
		if len(list) >= len(users)+sampledUsers {
			break
		}
		if !users[u] {
			list = append(list, u)
		}
	}
	if err := each(ctx, len(list), func(ctx context.Context, i int) error { return r.orders(ctx, list[i]) }); err != nil {
		return nil, err
	}
	for i := range r.truth.Rows {
		r.rows[r.truth.Rows[i].ID] = i
	}
	asked := doubtful(cases)
	return r.truth, each(ctx, len(asked), func(ctx context.Context, i int) error { return r.request(ctx, asked[i]) })
}

// doubtful picks the keys that no answer settled, and some of the others.
func doubtful(cases []*history.Case) []*history.Case {
	var asked []*history.Case
	sampled := 0
	for _, c := range cases {
		var ignored Findings
		if cl := readCase(c, &ignored); cl.ids == nil {
			asked = append(asked, c)
		} else if sampled < sampledKeys {
			sampled++
			asked = append(asked, c)
		}
	}
	return asked
}

type reader struct {
	client *wire.Client
	tokens map[string]string
	mu     sync.Mutex
	truth  *Truth
	rows   map[string]int // by order id
}

// each runs n tasks, a few at a time, and stops at the first error.
func each(ctx context.Context, n int, task func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var wg sync.WaitGroup
	for range httpReaders {
		wg.Go(func() {
			for i := range next {
				if err := task(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	wg.Wait()
	return context.Cause(ctx)
}

func (r *reader) orders(ctx context.Context, user string) error {
	cursor := ""
	for range pagesPerUser {
		q := url.Values{"limit": {strconv.Itoa(pageSize)}}
		if cursor != "" {
			q.Set("cursor", cursor)
		}
		var page struct {
			Orders     []answered `json:"orders"`
			NextCursor string     `json:"next_cursor"`
		}
		if err := r.get(ctx, user, "/api/orders?"+q.Encode(), &page); err != nil {
			return err
		}
		for i := range page.Orders {
			o := &page.Orders[i]
			amount, err := decimal.Hundredths(fmt.Sprint(o.Amount))
			quantity, err2 := o.Quantity.Int64()
			if err := errors.Join(err, err2); err != nil {
				return fmt.Errorf("audit order %s: %w", o.ID, err)
			}
			r.mu.Lock()
			r.truth.Rows = append(r.truth.Rows, Row{ID: o.ID, User: user, SKU: o.SKU, Quantity: quantity, Hundredths: amount, ExternalOrderNo: o.ExternalOrderNo, Status: o.Status})
			r.mu.Unlock()
		}
		if cursor = page.NextCursor; cursor == "" {
			return nil
		}
	}
	return fmt.Errorf("audit the orders of %s: the pages do not end", user)
}

func (r *reader) request(ctx context.Context, c *history.Case) error {
	var got struct {
		State    string `json:"state"`
		Response struct {
			Location string          `json:"location"`
			Body     json.RawMessage `json:"body"`
		} `json:"response"`
	}
	if err := r.get(ctx, c.User, requestsPath+url.PathEscape(c.Intent.Key), &got); err != nil {
		return err
	}
	rec := Recorded{State: got.State}
	var ids []string
	if orders, err := parseOrders(got.Response.Body); err == nil && got.State == "succeeded" {
		for i := range orders {
			ids = append(ids, orders[i].ID)
		}
	} else if dir, id := path.Split(got.Response.Location); got.State == "succeeded" && strings.HasSuffix(dir, ordersPath) {
		ids = []string{id} // a batch whose answer is kept no longer names none
	}
	if len(ids) > 0 {
		rec.OrderID = ids[0]
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.truth.Keys[KeyID{c.User, c.Intent.Key}] = rec
	for line, id := range ids {
		if i, ok := r.rows[id]; ok {
			r.truth.Rows[i].Key, r.truth.Rows[i].Line = c.Intent.Key, line
		}
	}
	return nil
}

// get reads one resource; it waits where the server asks for it. A 404 leaves
// what it was to read into as it is.
func (r *reader) get(ctx context.Context, user, path string, into any) error {
	request := &wire.Request{Method: http.MethodGet, Path: path, Fields: []wire.Field{{Name: "Authorization", Value: "Bearer " + r.tokens[user]}}}
	var last error
	for range httpTries {
		x := r.client.Do(ctx, request, 0)
		switch {
		case x.Err != nil:
			last = x.Err
		case x.Status == http.StatusOK:
			if err := json.Unmarshal(x.Body, into); err != nil {
				return fmt.Errorf("audit %s: %w", path, err)
			}
			return nil
		case x.Status == http.StatusNotFound:
			return nil
		case x.Status == http.StatusTooManyRequests || x.Status >= 500:
			last = fmt.Errorf("HTTP %d", x.Status)
		default:
			return fmt.Errorf("audit %s: HTTP %d%s", path, x.Status, excerpt(x.Body))
		}
		if err := pause(ctx, x.Header.Get("Retry-After")); err != nil {
			return err
		}
	}
	return fmt.Errorf("audit %s: %w", path, last)
}

func pause(ctx context.Context, retryAfter string) error {
	d := defaultPause
	if s, err := strconv.Atoi(retryAfter); err == nil {
		d = min(max(time.Duration(s)*time.Second, shortestPause), longestPause)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
