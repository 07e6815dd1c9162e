package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/oncegate/oncegate/order"
)

const orderColumns = "order_id, user_id, idempotency_key, line_no, external_order_no, sku, quantity, amount, status, created_at, updated_at"

// errUnreadable says that a row is not what this program wrote.
var errUnreadable = errors.New("unreadable row")

func scanOrder(rows *sql.Rows) (order.Order, error) {
	var o order.Order
	var id []byte
	var key, number sql.NullString
	var amount money
	var created, updated instant
	err := rows.Scan(&id, &o.UserID, &key, &o.LineNo, &number, &o.Line.SKU, &o.Line.Quantity, &amount, &o.Status, &created, &updated)
	switch {
	case err != nil:
		err = fmt.Errorf("%w: an order: %w", errUnreadable, err)
	case copy(o.ID[:], id) != len(o.ID):
		err = errUnreadable
	}
	o.Key, o.Line.ExternalOrderNo = order.Key(key.String), number.String
	o.Line.Amount, o.CreatedAt, o.UpdatedAt = amount.Amount, created.Time, updated.Time
	return o, err
}

// Order implements [order.Book].
func (s *Store) Order(ctx context.Context, userID string, id order.ID) (order.Order, error) {
	q := query{d: s.d}
	q.reset("SELECT " + orderColumns + " FROM orders WHERE order_id = ")
	q.bind(id[:])
	q.add(" AND user_id = ")
	q.bind(userID)
	orders, err := s.orders(ctx, &q)
	if err == nil && len(orders) == 0 {
		err = sql.ErrNoRows
	}
	if err != nil {
		return order.Order{}, s.translate("read an order", err)
	}
	return orders[0], nil
}

// ordersByUser is the index that lists of orders are read by.
const ordersByUser = "idx_orders_user"

// Orders implements [order.Book]. MySQL would rather go through everybody's orders,
// the newest first, until it has found enough of somebody who has many; or it would
// sort all of them.
func (s *Store) Orders(ctx context.Context, userID string, before order.ID, limit int) ([]order.Order, error) {
	q := query{d: s.d}
	q.reset("SELECT " + orderColumns + " FROM orders" + s.d.byIndex(ordersByUser) + " WHERE user_id = ")
	q.bind(userID)
	if !before.IsZero() {
		q.add(" AND order_id < ")
		q.bind(before[:])
	}
	q.add(" ORDER BY order_id DESC LIMIT ")
	q.bind(limit)
	orders, err := s.orders(ctx, &q)
	return orders, s.translate("list orders", err)
}

func (s *Store) orders(ctx context.Context, q *query) ([]order.Order, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.ReadTimeout)
	defer cancel()
	var orders []order.Order
	err := scanRows(ctx, s.reads, q, func(rows *sql.Rows) error {
		o, err := scanOrder(rows)
		orders = append(orders, o)
		return err
	})
	return orders, err
}
