package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/oncegate/oncegate/order"
)

// record is a row of idempotency_records.
type record struct {
	operation order.Operation
	receipt   order.Receipt
	orderID   order.ID // the first order of the request; zero when it was refused
}

const recordColumns = "user_id, idempotency_key, operation, request_digest, status, order_id, " +
	"response_status, response_type, response_location, response_body, created_at"

// ownOrderIsThere tells whether a record's order is there, and is of its key.
const ownOrderIsThere = `EXISTS (SELECT 1 FROM orders WHERE orders.order_id = idempotency_records.order_id
	AND orders.user_id = idempotency_records.user_id AND orders.idempotency_key = idempotency_records.idempotency_key)`

// readRecords reads the records of the keys into the map, with the server that
// they were read from: it need not be the one that answered anybody else last. It
// returns the keys whose stored answer was compacted: rebuildRecords answers those.
func readRecords(ctx context.Context, from queryer, q *query, keys []pair, into map[pair]*record) (compacted []pair, err error) {
	q.reset("SELECT " + recordColumns + ", " + q.d.identity + ", " + ownOrderIsThere + " FROM idempotency_records WHERE ")
	q.pairs("idempotency_key", keys)
	err = scanRows(ctx, from, q, func(rows *sql.Rows) error {
		var key pair
		var digest, id []byte
		var created instant
		var server string
		var made bool
		rec := &record{}
		r := &rec.receipt
		if err := rows.Scan(&key.first, &key.second, &rec.operation, &digest, &r.State, &id, &r.Response.Status,
			&r.Response.ContentType, &r.Response.Location, &r.Response.Body, &created, &server, &made); err != nil {
			return fmt.Errorf("%w: a record: %w", errUnreadable, err)
		}
		if len(digest) != len(r.Digest) || (id != nil && len(id) != len(rec.orderID)) {
			return fmt.Errorf("%w: a record's digest or order id has the wrong length", errUnreadable)
		}
		copy(r.Digest[:], digest)
		copy(rec.orderID[:], id)
		r.FirstSeen, r.Server = created.Time, serverID(server)
		if !rec.sound(made) {
			return fmt.Errorf("%w: a record that nothing could have written", errUnreadable)
		}
		if r.Response.Body == nil && r.State == order.Succeeded {
			compacted = append(compacted, key)
		}
		into[key] = rec
		return nil
	})
	return compacted, err
}

// sound reports whether a record is one that this program writes, as far as that
// can be told: a text or bytes that became others are not seen. made says that its
// order is there. What is not sound is not answered with, and not decided anew.
func (rec *record) sound(made bool) bool {
	r := &rec.receipt
	resp := &r.Response
	if (rec.operation != order.CreateOrder && rec.operation != order.CreateBatch) || r.Digest == (order.Digest{}) || r.FirstSeen.IsZero() {
		return false
	}
	switch r.State {
	case order.Processing: // without an answer
		return rec.orderID.IsZero() && resp.Status == 0 && len(resp.Body) == 0
	case order.Succeeded:
		compacted := resp.Body == nil
		return made && resp.Status >= 200 && resp.Status <= 299 && (compacted || len(resp.Body) > 0) && headers(resp)
	case order.Failed:
		return rec.orderID.IsZero() && resp.Status >= 400 && resp.Status <= 599 && len(resp.Body) > 0 && headers(resp)
	default:
		return false
	}
}

// headers reports whether what goes into the head of an answer may stand there.
func headers(r *order.Response) bool {
	return r.ContentType != "" && !strings.ContainsFunc(r.ContentType+r.Location, func(c rune) bool { return c < ' ' || c > '~' })
}

// rebuildRecords answers from the order rows where the record's answer was
// compacted, or where there are orders of a key without a record: it was made
// by a writer that keeps none, and is nevertheless the one order of that key.
func rebuildRecords(ctx context.Context, from queryer, q *query, keys []pair, server order.ServerID, into map[pair]*record, r order.Renderer) error {
	made := map[pair][]order.Order{}
	q.reset("SELECT " + orderColumns + " FROM orders WHERE ")
	q.pairs("idempotency_key", keys)
	q.add(" ORDER BY user_id, idempotency_key, line_no")
	err := scanRows(ctx, from, q, func(rows *sql.Rows) error {
		o, err := scanOrder(rows)
		key := pair{o.UserID, string(o.Key)}
		made[key] = append(made[key], o)
		return err
	})
	if err != nil {
		return err
	}
	for key, orders := range made {
		rec := into[key]
		switch {
		case rec == nil:
			rec = recordOf(orders, server)
			into[key] = rec
		case rec.receipt.Response.Body != nil:
			continue // its answer is there, byte for byte
		case rec.receipt.Digest != digestOf(rec.operation, orders):
			return fmt.Errorf("%w: orders that are not what was answered", errUnreadable)
		}
		for i := range orders {
			orders[i].Status = order.Pending // as it was answered first
		}
		rec.receipt.Response = r.Created(rec.operation, orders)
	}
	return nil
}

// recordOf reconstructs the record of orders that have none.
func recordOf(orders []order.Order, server order.ServerID) *record {
	op := order.CreateOrder
	if len(orders) > 1 {
		op = order.CreateBatch
	}
	return &record{operation: op, orderID: orders[0].ID, receipt: order.Receipt{
		Digest: digestOf(op, orders), State: order.Succeeded, FirstSeen: orders[0].CreatedAt, Server: server,
	}}
}

// digestOf is the digest of the command that made the orders of one key. Rows that
// no command could have made have none that a command could have: whoever sends
// the key again is told that it is taken.
func digestOf(op order.Operation, orders []order.Order) order.Digest {
	lines := make([]order.Line, len(orders))
	for i := range orders {
		lines[i] = orders[i].Line
	}
	c, err := order.NewCommand(op, orders[0].UserID, orders[0].Key, lines)
	if err != nil {
		return order.Digest{}
	}
	return c.Digest
}

// Find implements [order.Ledger].
func (s *Store) Find(ctx context.Context, userID string, key order.Key) (order.Receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.ReadTimeout)
	defer cancel()
	r, err := s.find(ctx, s.reads, userID, key)
	return r, s.translate("find a record", err)
}

// Confirm implements [order.Ledger].
func (s *Store) Confirm(ctx context.Context, userID string, key order.Key) (r order.Receipt, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.ReadTimeout)
	defer cancel()
	t, err := s.beginBeside(ctx, userRow(userID))
	if err != nil {
		return r, s.translate("confirm a record", err)
	}
	defer t.end()
	t.q.reset("SELECT user_id FROM users WHERE user_id = ")
	t.q.bind(userID)
	t.q.add(s.d.forUpdate)
	if err := t.rows(func(rows *sql.Rows) error { return rows.Scan(&userID) }); err != nil {
		t.broken = s.d.classify(err) == faultUnavailable
		return r, s.translate("wait for the user's lock", err)
	}
	r, err = s.find(ctx, t.conn, userID, key)
	t.broken = err != nil && s.d.classify(err) == faultUnavailable
	return r, s.translate("confirm a record", err)
}

func (s *Store) find(ctx context.Context, from queryer, userID string, key order.Key) (order.Receipt, error) {
	q := query{d: s.d}
	keys := []pair{{userID, string(key)}}
	found := map[pair]*record{}
	compacted, err := readRecords(ctx, from, &q, keys, found)
	if err == nil && len(compacted) > 0 {
		err = rebuildRecords(ctx, from, &q, compacted, 0, found, s.o.Renderer) // all of them have a record, which names the server
	}
	if err != nil {
		return order.Receipt{}, err
	}
	if rec := found[keys[0]]; rec != nil {
		return rec.receipt, nil
	}
	return order.Receipt{}, sql.ErrNoRows
}
