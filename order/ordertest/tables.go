package ordertest

import (
	"bytes"
	"slices"
	"sync"

	"github.com/oncegate/oncegate/order"
)

// firstServer is the identity of the fake server until a test sets another.
const firstServer order.ServerID = 0x0ce6a7e

type (
	keyOf    struct{ user, key string }
	numberOf struct{ user, number string }
)

// tables is the database of the fake.
type tables struct {
	mu       sync.Mutex
	server   order.ServerID
	balances map[string]order.Amount
	stock    map[string]int64
	records  map[keyOf]order.Receipt
	orders   map[order.ID]order.Order
	numbers  map[numberOf]order.ID
	limited  map[order.ID]bool // orders that took from a limited stock
	waiting  []*waiting        // in order of acceptance
	history  history
	commits  int
}

func newTables() *tables {
	return &tables{
		server:   firstServer,
		balances: map[string]order.Amount{},
		stock:    map[string]int64{},
		records:  map[keyOf]order.Receipt{},
		orders:   map[order.ID]order.Order{},
		numbers:  map[numberOf]order.ID{},
		limited:  map[order.ID]bool{},
		history:  newHistory(),
	}
}

func (t *tables) record(userID string, key order.Key) (order.Receipt, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, ok := t.records[keyOf{userID, string(key)}]
	if !ok {
		return order.Receipt{}, order.ErrNotFound
	}
	r.Server = t.server
	return r, nil
}

func (t *tables) order(userID string, id order.ID) (order.Order, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o, ok := t.orders[id]
	if !ok || o.UserID != userID {
		return order.Order{}, order.ErrNotFound
	}
	return o, nil
}

func (t *tables) list(userID string, before order.ID, limit int) []order.Order {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []order.Order
	for id, o := range t.orders {
		if o.UserID == userID && (before.IsZero() || bytes.Compare(id[:], before[:]) < 0) {
			list = append(list, o)
		}
	}
	slices.SortFunc(list, func(a, b order.Order) int { return bytes.Compare(b.ID[:], a.ID[:]) })
	return list[:min(len(list), limit)]
}

func (t *tables) lose(userID string, key order.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.records, keyOf{userID, string(key)})
	t.settle(userID, key)
	for id, o := range t.orders {
		if o.UserID != userID || o.Key != key {
			continue
		}
		delete(t.orders, id)
		delete(t.numbers, numberOf{userID, o.Line.ExternalOrderNo})
		t.balances[userID] += o.Line.Amount
		if _, limited := t.stock[o.Line.SKU]; limited {
			t.stock[o.Line.SKU] += o.Line.Quantity
		}
	}
}

func (t *tables) identity() order.ServerID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.server
}

func (t *tables) setIdentity(id order.ServerID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.server = id
}

func (t *tables) setBalance(userID string, balance order.Amount) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.balances[userID] = balance
}

func (t *tables) balance(userID string) (order.Amount, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b, ok := t.balances[userID]
	if !ok {
		return 0, order.ErrNotFound
	}
	return b, nil
}

func (t *tables) setStock(sku string, available int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stock[sku] = available
}

func (t *tables) available(sku string) (int64, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, limited := t.stock[sku]
	return n, limited
}

func (t *tables) commitCount() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.commits
}

func (t *tables) countOrders(userID string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, o := range t.orders {
		if o.UserID == userID {
			n++
		}
	}
	return n
}

func (t *tables) countRecords(userID string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for k := range t.records {
		if k.user == userID {
			n++
		}
	}
	return n
}
