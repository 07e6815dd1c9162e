package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Finding is one thing that ought not to be.
type Finding struct {
	Check   string `json:"check"`
	Subject string `json:"subject"` // which user, key or order
	Detail  string `json:"detail"`
}

// AuditReport is what an audit found.
type AuditReport struct {
	Users    int64     `json:"users"`
	Orders   int64     `json:"orders"`
	Findings []Finding `json:"findings"` // at most AuditOptions.MaxFindings
	Dropped  int64     `json:"dropped"`  // findings beyond that bound
}

// AuditOptions bound one audit.
type AuditOptions struct {
	// Chunk is the number of users looked at in one query. Default 500.
	Chunk int
	// MaxFindings bounds the list. Default 1000.
	MaxFindings int
	// Progress is told after each chunk; may be nil.
	Progress func(users, orders int64)
}

// auditUser are the checks of a range of users, each a query whose rows are
// findings: subject and detail. The range stands for (user_id > ? AND user_id <= ?).
func auditUser() []struct{ check, text string } {
	return []struct{ check, text string }{
		{"duplicate_key", `SELECT CONCAT(o.user_id, ' ', o.idempotency_key), CONCAT(COUNT(*), ' orders for row ', o.line_no)
		FROM orders o WHERE o.idempotency_key IS NOT NULL AND o.user_id > ? AND o.user_id <= ?
		GROUP BY o.user_id, o.idempotency_key, o.line_no HAVING COUNT(*) > 1`},
		{"duplicate_number", `SELECT CONCAT(o.user_id, ' ', o.external_order_no), CONCAT(COUNT(*), ' orders')
		FROM orders o WHERE o.external_order_no IS NOT NULL AND o.user_id > ? AND o.user_id <= ?
		GROUP BY o.user_id, o.external_order_no HAVING COUNT(*) > 1`},
		{"key_without_order", `SELECT CONCAT(r.user_id, ' ', r.idempotency_key), 'the record says succeeded and its order is not there'
		FROM idempotency_records r LEFT JOIN orders o
		ON o.order_id = r.order_id AND o.user_id = r.user_id AND o.idempotency_key = r.idempotency_key AND o.line_no = 0
		WHERE r.status = 2 AND o.order_id IS NULL AND r.user_id > ? AND r.user_id <= ?`},
		{"order_without_key", `SELECT CONCAT(o.user_id, ' ', o.idempotency_key), 'the order has a key and no record'
		FROM orders o LEFT JOIN idempotency_records r ON r.user_id = o.user_id AND r.idempotency_key = o.idempotency_key AND r.status = 2
		WHERE o.idempotency_key IS NOT NULL AND o.line_no = 0 AND r.user_id IS NULL AND o.user_id > ? AND o.user_id <= ?`},
		{"refused_with_order", `SELECT CONCAT(r.user_id, ' ', r.idempotency_key), 'the record says refused and there is an order'
		FROM idempotency_records r JOIN orders o ON o.user_id = r.user_id AND o.idempotency_key = r.idempotency_key
		WHERE r.status = 3 AND r.user_id > ? AND r.user_id <= ?`},
		{"incomplete_batch", `SELECT CONCAT(o.user_id, ' ', o.idempotency_key), CONCAT(COUNT(*), ' of ', MAX(o.line_no) + 1, ' rows')
		FROM orders o WHERE o.idempotency_key IS NOT NULL AND o.user_id > ? AND o.user_id <= ?
		GROUP BY o.user_id, o.idempotency_key HAVING COUNT(*) <> MAX(o.line_no) + 1`},
		{"balance_drift", `SELECT u.user_id, CONCAT('credited ', u.credited, ', balance ', u.balance, ', held by orders ', COALESCE(SUM(o.amount), 0))
		FROM users u LEFT JOIN orders o ON o.user_id = u.user_id AND o.status <> 'CANCELLED'
		WHERE u.user_id > ? AND u.user_id <= ?
		GROUP BY u.user_id, u.credited, u.balance HAVING u.credited <> u.balance + COALESCE(SUM(o.amount), 0)`},
		{"state_without_event", `SELECT CONCAT(o.user_id, ' ', o.status), 'no applied event explains the state'
		FROM orders o LEFT JOIN order_events e ON e.order_id = o.order_id AND e.effect = 'applied' AND e.event =
		CASE o.status WHEN 'PAID' THEN 'payment.succeeded' WHEN 'SHIPPED' THEN 'order.shipped' ELSE 'order.cancelled' END
		WHERE o.status <> 'PENDING' AND e.event_id IS NULL AND o.user_id > ? AND o.user_id <= ?`},
		{"event_without_state", `SELECT CONCAT(o.user_id, ' ', e.event), CONCAT('applied, but the order is ', o.status)
		FROM orders o JOIN order_events e ON e.order_id = o.order_id AND e.effect = 'applied'
		WHERE o.user_id > ? AND o.user_id <= ? AND (
		(e.event = 'payment.succeeded' AND o.status NOT IN ('PAID', 'SHIPPED')) OR
		(e.event = 'order.shipped' AND o.status <> 'SHIPPED') OR (e.event = 'order.cancelled' AND o.status <> 'CANCELLED'))`},
	}
}

// auditStock sums up the orders first: SKUs have no index on orders, and an engine
// without hash joins would compare each order with each of them.
const auditStock = `SELECT s.sku, CONCAT('supplied ', s.supplied, ', available ', s.available, ', taken by orders ', COALESCE(o.taken, 0))
	FROM stock s LEFT JOIN (SELECT sku, SUM(quantity) AS taken FROM orders WHERE stock_taken AND status <> 'CANCELLED' GROUP BY sku) AS o
	ON o.sku = s.sku WHERE s.supplied <> s.available + COALESCE(o.taken, 0)`

// Audit proves on a live database that no two orders share a key or a number,
// that keys and orders belong together, and that balances, stock and states are
// what the orders and events make of them. It only reads, with one statement for
// each check of a chunk of users, and one for all stock: a statement sees one
// moment, so traffic does not disturb it.
func (s *Store) Audit(ctx context.Context, o AuditOptions) (report AuditReport, err error) {
	setDefault(&o.Chunk, 500)
	setDefault(&o.MaxFindings, 1000)
	db, err := s.unlimited()
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	a := audit{s: s, db: db, o: o}
	a.report.Findings = []Finding{}
	from := ""
	for {
		to, users, orders, err := a.nextUsers(ctx, from)
		if err != nil {
			return a.report, s.translate("audit users", err)
		}
		if users == 0 {
			break
		}
		for _, c := range auditUser() {
			if err := a.run(ctx, c.check, c.text, from, to); err != nil {
				return a.report, s.translate("audit "+c.check, err)
			}
		}
		from = to
		a.report.Users += users
		a.report.Orders += orders
		if o.Progress != nil {
			o.Progress(a.report.Users, a.report.Orders)
		}
	}
	if err := a.run(ctx, "stock_drift", auditStock); err != nil {
		return a.report, s.translate("audit stock_drift", err)
	}
	return a.report, nil
}

type audit struct {
	s      *Store
	db     *sql.DB
	o      AuditOptions
	report AuditReport
}

// nextUsers returns the end of the next range of users, and what is in it.
func (a *audit) nextUsers(ctx context.Context, from string) (to string, users, orders int64, err error) {
	var last sql.NullString
	err = a.db.QueryRowContext(ctx, `SELECT MAX(user_id), COUNT(*) FROM
		(SELECT user_id FROM users WHERE user_id > ? ORDER BY user_id LIMIT ?) AS chunk`, from, a.o.Chunk).Scan(&last, &users)
	if err != nil || users == 0 {
		return "", 0, 0, err
	}
	err = a.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM orders WHERE user_id > ? AND user_id <= ?", from, last.String).Scan(&orders)
	return last.String, users, orders, err
}

func (a *audit) run(ctx context.Context, check, text string, args ...any) error {
	q := query{d: a.s.d, text: []byte(text), args: args}
	return scanRows(ctx, a.db, &q, func(rows *sql.Rows) error {
		f := Finding{Check: check}
		if err := rows.Scan(&f.Subject, &f.Detail); err != nil {
			return fmt.Errorf("read a finding: %w", err)
		}
		if len(a.report.Findings) >= a.o.MaxFindings {
			a.report.Dropped++
			return nil
		}
		a.report.Findings = append(a.report.Findings, f)
		return nil
	})
}
