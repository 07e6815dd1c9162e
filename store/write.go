package store

import (
	"maps"
	"slices"

	"github.com/oncegate/oncegate/order"
)

// write sends what the plan decided. Balances and stock keep their condition
// although both were checked under the lock: a guard costs nothing and holds
// against whoever does not take the locks.
func (t *transaction) write(w *writes) error {
	steps := []func(*writes) error{t.insertOrders, t.insertRecords, t.settleRecords, t.updateBalances, t.updateStock}
	for _, step := range steps {
		if err := step(w); err != nil && !flawStatementAfterError {
			return err
		}
	}
	return nil
}

func (t *transaction) insertOrders(w *writes) error {
	if len(w.orders) == 0 {
		return nil
	}
	q := t.q
	q.reset("INSERT INTO orders (" + orderColumns + ", stock_taken) VALUES ")
	at := t.d.instant(w.now.Time)
	for i := range w.orders {
		o := &w.orders[i]
		if i > 0 {
			q.add(",")
		}
		q.add("(")
		q.bind(o.ID[:])
		q.add(",")
		q.bind(o.UserID)
		q.add(",")
		q.bind(nullable(string(o.Key)))
		q.add(",")
		q.bind(o.LineNo)
		q.add(",")
		q.bind(nullable(o.Line.ExternalOrderNo))
		q.add(",")
		q.bind(o.Line.SKU)
		q.add(",")
		q.bind(o.Line.Quantity)
		q.add(",")
		q.amount(o.Line.Amount)
		q.add(",")
		q.bind(string(o.Status))
		q.add(",")
		q.bind(at)
		q.add(",")
		q.bind(at)
		q.add(",")
		q.bind(w.stocked[i])
		q.add(")")
	}
	return t.exec(len(w.orders))
}

func (t *transaction) insertRecords(w *writes) error {
	if len(w.records) == 0 {
		return nil
	}
	q := t.q
	q.reset("INSERT INTO idempotency_records (" + recordColumns + ") VALUES ")
	at := t.d.instant(w.now.Time)
	for i := range w.records {
		rec := &w.records[i]
		r := &rec.receipt
		if i > 0 {
			q.add(",")
		}
		q.add("(")
		for _, v := range []any{rec.user, string(rec.key), string(rec.operation), r.Digest[:], int64(r.State)} {
			q.bind(v)
			q.add(",")
		}
		if rec.orderID.IsZero() {
			q.add("NULL")
		} else {
			q.bind(rec.orderID[:])
		}
		for _, v := range []any{r.Response.Status, r.Response.ContentType, r.Response.Location, r.Response.Body, at} {
			q.add(",")
			q.bind(v)
		}
		q.add(")")
	}
	return t.exec(len(w.records))
}

// settleRecords turns the records of deferred requests into answers and takes
// the requests off the list.
func (t *transaction) settleRecords(w *writes) error {
	q := t.q
	for _, rec := range w.settled {
		r := &rec.receipt
		q.reset("UPDATE idempotency_records SET status = ")
		q.bind(int64(r.State))
		q.add(", order_id = ")
		if rec.orderID.IsZero() {
			q.add("NULL")
		} else {
			q.bind(rec.orderID[:])
		}
		q.add(", response_status = ")
		q.bind(r.Response.Status)
		q.add(", response_type = ")
		q.bind(r.Response.ContentType)
		q.add(", response_location = ")
		q.bind(r.Response.Location)
		q.add(", response_body = ")
		q.bind(r.Response.Body)
		q.add(" WHERE user_id = ")
		q.bind(rec.user)
		q.add(" AND idempotency_key = ")
		q.bind(string(rec.key))
		q.add(" AND status = ")
		q.bind(int64(order.Processing))
		if err := t.exec(1); err != nil {
			return err
		}
		q.reset("DELETE FROM deferred_requests WHERE user_id = ")
		q.bind(rec.user)
		q.add(" AND idempotency_key = ")
		q.bind(string(rec.key))
		if err := t.exec(1); err != nil {
			return err
		}
	}
	return nil
}

func (t *transaction) updateBalances(w *writes) error {
	if len(w.spent) == 0 {
		return nil
	}
	users := slices.Sorted(maps.Keys(w.spent))
	t.q.reset("UPDATE users SET balance = balance - ")
	write := func() {
		t.q.add("CASE user_id")
		for _, user := range users {
			t.q.add(" WHEN ")
			t.q.bind(user)
			t.q.add(" THEN ")
			t.q.amount(w.spent[user])
		}
		t.q.add(" END")
	}
	write()
	t.q.add(" WHERE user_id IN ")
	list(t.q, users)
	t.q.add(" AND balance >= ")
	write()
	return t.exec(len(users))
}

func (t *transaction) updateStock(w *writes) error {
	if len(w.taken) == 0 {
		return nil
	}
	skus := slices.Sorted(maps.Keys(w.taken))
	t.q.reset("UPDATE stock SET available = available - ")
	write := func() {
		t.q.add("CASE sku")
		for _, sku := range skus {
			t.q.add(" WHEN ")
			t.q.bind(sku)
			t.q.add(" THEN ")
			t.q.bind(w.taken[sku])
		}
		t.q.add(" END")
	}
	write()
	t.q.add(" WHERE sku IN ")
	list(t.q, skus)
	t.q.add(" AND available >= ")
	write()
	return t.exec(len(skus))
}
