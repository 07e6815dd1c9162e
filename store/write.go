package store

import (
	"maps"
	"slices"

	"github.com/oncegate/oncegate/internal/crashpoint"
	"github.com/oncegate/oncegate/order"
)

// write sends what the plan decided. Balances and stock are replaced, on the
// condition that they are what was read under the lock, and never counted down:
// it costs nothing, holds against whoever does not take the locks, and a
// statement that a middlebox sends twice takes once.
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
	crashpoint.Hit(crashpoint.BeforeInsertOrders)
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
	crashpoint.Hit(crashpoint.BeforeInsertRecords)
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
		q.add(", created_at = ")
		q.bind(t.d.instant(r.FirstSeen))
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
	crashpoint.Hit(crashpoint.BeforeUpdateBalances)
	return t.replace("users", "user_id", "balance", slices.Sorted(maps.Keys(w.spent)), func(user string, was bool) {
		left := w.balances[user]
		if was {
			left += w.spent[user]
		}
		t.q.amount(left)
	})
}

func (t *transaction) updateStock(w *writes) error {
	crashpoint.Hit(crashpoint.BeforeUpdateStock)
	return t.replace("stock", "sku", "available", slices.Sorted(maps.Keys(w.taken)), func(sku string, was bool) {
		left := w.stock[sku]
		if was {
			left += w.taken[sku]
		}
		t.q.bind(left)
	})
}

// replace sets a column of several rows in one statement, on the condition that
// each is what it was. write adds the value of a key: what it becomes, or what
// it was.
func (t *transaction) replace(table, key, column string, keys []string, write func(key string, was bool)) error {
	if len(keys) == 0 {
		return nil
	}
	each := func(was bool) {
		t.q.add("CASE " + key)
		for _, k := range keys {
			t.q.add(" WHEN ")
			t.q.bind(k)
			t.q.add(" THEN ")
			write(k, was)
		}
		t.q.add(" END")
	}
	t.q.reset("UPDATE " + table + " SET " + column + " = ")
	each(false)
	t.q.add(" WHERE " + key + " IN ")
	list(t.q, keys)
	t.q.add(" AND " + column + " = ")
	each(true)
	return t.exec(len(keys))
}
