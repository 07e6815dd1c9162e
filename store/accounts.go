package store

import (
	"context"

	"github.com/oncegate/oncegate/order"
)

// SetBalance implements [order.Accounts].
func (s *Store) SetBalance(ctx context.Context, userID string, balance order.Amount) error {
	q := query{d: s.d}
	q.reset("INSERT INTO users (user_id, balance, credited, created_at) VALUES (")
	q.bind(userID)
	q.add(",")
	q.amount(balance)
	q.add(",")
	q.amount(balance)
	// The assignments are read from left to right: credited still sees the old balance.
	q.add("," + s.d.now + ")" + s.d.onDuplicate("user_id") + "credited = credited - balance + ")
	q.amount(balance)
	q.add(", balance = ")
	q.amount(balance)
	return s.change(ctx, "set a balance", &q)
}

// SetStock implements [order.Accounts].
func (s *Store) SetStock(ctx context.Context, sku string, available int64) error {
	q := query{d: s.d}
	q.reset("INSERT INTO stock (sku, available, supplied) VALUES (")
	q.bind(sku)
	q.add(",")
	q.bind(available)
	q.add(",")
	q.bind(available)
	q.add(")" + s.d.onDuplicate("sku") + "supplied = supplied - available + ")
	q.bind(available)
	q.add(", available = ")
	q.bind(available)
	return s.change(ctx, "set stock", &q)
}

func (s *Store) change(ctx context.Context, doing string, q *query) error {
	ctx, cancel := context.WithTimeout(ctx, s.o.ReadTimeout)
	defer cancel()
	_, err := s.reads.ExecContext(ctx, string(q.text), q.args...)
	return s.translate(doing, err)
}

// openAccounts gives users an account who have none. It takes them in their order.
func (t *transaction) openAccounts(users []string, balance order.Amount) error {
	q := t.q
	q.reset("INSERT INTO users (user_id, balance, credited, created_at) VALUES ")
	for i, user := range users {
		if i > 0 {
			q.add(",")
		}
		q.add("(")
		q.bind(user)
		q.add(",")
		q.amount(balance)
		q.add(",")
		q.amount(balance)
		q.add("," + t.d.now + ")")
	}
	q.add(t.d.onDuplicate("user_id") + "balance = balance")
	_, err := t.conn.ExecContext(t.ctx, string(q.text), q.args...)
	return err
}
