package verdict

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/oncegate/oncegate/loadtest/decimal"
	"github.com/oncegate/oncegate/loadtest/exact"
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
	list := readable(tokens, cases)
	if err := each(ctx, len(list), func(ctx context.Context, i int) error { return r.orders(ctx, list[i]) }); err != nil {
		return nil, err
	}
	asked := doubtful(cases)
	return r.truth, each(ctx, len(asked), func(ctx context.Context, i int) error { return r.request(ctx, asked[i]) })
}

// readable picks the users whose orders are read: who sent something, and some of
// those who did not.
func readable(tokens map[string]string, cases []*history.Case) []string {
	sent := map[string]bool{}
	for _, c := range cases {
		sent[c.User] = true
	}
	var silent []string
	for u := range tokens {
		if !sent[u] {
			silent = append(silent, u)
		}
	}
	slices.Sort(silent) // the same sample every time
	return append(slices.Sorted(maps.Keys(sent)), spread(silent, sampledUsers)...)
}

// doubtful picks the keys that no answer settled, and some of the others.
func doubtful(cases []*history.Case) []*history.Case {
	var asked, settled []*history.Case
	for _, c := range cases {
		var ignored Findings
		if cl := readCase(c, &ignored); cl.ids == nil {
			asked = append(asked, c)
		} else {
			settled = append(settled, c)
		}
	}
	return append(asked, spread(settled, sampledKeys)...)
}

// spread picks so many of all, at even distances from the first to the last: what
// went wrong in one part of a run must not lie outside the sample.
func spread[T any](all []T, most int) []T {
	if len(all) <= most {
		return all
	}
	some := make([]T, most)
	for i := range some {
		some[i] = all[i*(len(all)-1)/(most-1)]
	}
	return some
}

type reader struct {
	client *wire.Client
	tokens map[string]string
	mu     sync.Mutex
	truth  *Truth
	rows   map[string]int // by order id
}

// add keeps an order that a user was shown. One of somebody else's is a finding,
// and nothing that this user has.
func (r *reader) add(user string, row exact.Object) error {
	o, err := readOrder(row)
	if err != nil {
		return fmt.Errorf("audit the orders of %s: %w", user, err)
	}
	amount, err := decimal.Hundredths(fmt.Sprint(o.Amount))
	quantity, err2 := strconv.ParseInt(o.Quantity, 10, 64)
	if err := errors.Join(err, err2); err != nil {
		return fmt.Errorf("audit order %s: %w", o.ID, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if o.User != user {
		r.truth.Groups = append(r.truth.Groups, Finding{Kind: ForeignBody, User: user, Detail: fmt.Sprintf("order %s of %q was shown to %s", o.ID, o.User, user)})
		return nil
	}
	r.rows[o.ID] = len(r.truth.Rows)
	r.truth.Rows = append(r.truth.Rows, Row{ID: o.ID, User: user, SKU: o.SKU, Quantity: quantity, Hundredths: amount, ExternalOrderNo: o.ExternalOrderNo, Status: o.Status})
	return nil
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
		page, err := r.get(ctx, user, "/api/orders?"+q.Encode())
		if err != nil {
			return err
		}
		var rows []exact.Object
		cursor = ""
		if err := errors.Join(page.Read("orders", &rows), page.Read("next_cursor", &cursor)); err != nil {
			return fmt.Errorf("audit the orders of %s: %w", user, err)
		}
		for _, row := range rows {
			if err := r.add(user, row); err != nil {
				return err
			}
		}
		if cursor == "" {
			return nil
		}
	}
	return fmt.Errorf("audit the orders of %s: the pages do not end", user)
}

func (r *reader) request(ctx context.Context, c *history.Case) error {
	got, err := r.get(ctx, c.User, requestsPath+url.PathEscape(c.Intent.Key))
	if err != nil {
		return err
	}
	var response exact.Object
	rec := Recorded{}
	if err := errors.Join(got.Read("state", &rec.State), got.Read("response", &response)); err != nil {
		return fmt.Errorf("audit key %s: %w", c.Intent.Key, err)
	}
	var ids []string
	if orders, err := parseOrders(response["body"]); err == nil && rec.State == "succeeded" {
		for i := range orders {
			ids = append(ids, orders[i].ID)
		}
	} else if dir, id := path.Split(response.Text("location")); rec.State == "succeeded" && strings.HasSuffix(dir, ordersPath) {
		ids = []string{id} // a batch whose answer is kept no longer names none
	}
	if len(ids) > 0 {
		rec.OrderID = ids[0]
	}
	if err := r.late(ctx, c, ids); err != nil {
		return err
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

// late reads orders that nobody heard of and that were not there when the user's
// orders were read: what nobody waits for any more may have been made since.
func (r *reader) late(ctx context.Context, c *history.Case, ids []string) error {
	var ignored Findings
	if cl := readCase(c, &ignored); cl.ids != nil {
		return nil // it was answered before: now is too late
	}
	for _, id := range ids {
		r.mu.Lock()
		_, there := r.rows[id]
		r.mu.Unlock()
		if there {
			continue
		}
		o, err := r.get(ctx, c.User, ordersPath+url.PathEscape(id))
		if err != nil {
			return err
		}
		if o.Text("order_id") != id {
			continue
		}
		if err := r.add(c.User, o); err != nil {
			return err
		}
	}
	return nil
}

// get reads one resource; it waits where the server asks for it. A 404 has no
// members.
func (r *reader) get(ctx context.Context, user, path string) (exact.Object, error) {
	request := &wire.Request{Method: http.MethodGet, Path: path, Fields: []wire.Field{{Name: "Authorization", Value: "Bearer " + r.tokens[user]}}}
	var last error
	for range httpTries {
		x := r.client.Do(ctx, request, 0)
		switch {
		case x.Err != nil:
			last = x.Err
		case x.Status == http.StatusOK:
			o, err := exact.Parse(x.Body)
			if err != nil {
				return nil, fmt.Errorf("audit %s: %w", path, err)
			}
			return o, nil
		case x.Status == http.StatusNotFound:
			return exact.Object{}, nil
		case x.Status == http.StatusTooManyRequests || x.Status >= 500:
			last = fmt.Errorf("HTTP %d", x.Status)
		default:
			return nil, fmt.Errorf("audit %s: HTTP %d%s", path, x.Status, excerpt(x.Body))
		}
		if err := pause(ctx, x.Header.Get("Retry-After")); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("audit %s: %w", path, last)
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
