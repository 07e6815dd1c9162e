//go:build unix

package bench

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/oncegate/oncegate/loadtest/drive"
)

// straight makes orders with a transaction for each, from Go to MySQL: the
// gateway's statements for one order, without HTTP and Redis.
type straight struct{ db *sql.DB }

// openStraight opens a pool as a careful program does: parameters are
// interpolated, so that a statement is one round trip, the session's settings
// come with the connection, and no connection is closed for being idle.
func openStraight(ctx context.Context, s *stage) (*target, error) {
	name, drop, err := s.database(ctx, s.c.Gateway, s.users)
	if err != nil {
		return nil, err
	}
	connector, err := s.connector(name, func(c *mysql.Config) {
		c.InterpolateParams = true
		c.ParseTime, c.Loc = true, time.UTC
		c.Params = map[string]string{"transaction_isolation": "'READ-COMMITTED'", "time_zone": "'+00:00'"}
	})
	if err != nil {
		return nil, errors.Join(err, drop())
	}
	b := &straight{db: sql.OpenDB(connector)}
	b.db.SetMaxOpenConns(s.c.most())
	b.db.SetMaxIdleConns(s.c.most())
	return &target{
		worker: func(context.Context, int) (worker, error) { return b.worker(s.users), nil },
		stop:   func() error { return errors.Join(b.db.Close(), drop()) },
	}, nil
}

func (b *straight) worker(users []drive.Identity) worker {
	next := fresh(users)
	return worker{
		step: func(ctx context.Context) error {
			who, key := next()
			return b.order(ctx, who.User, key)
		},
		close: func() {},
	}
}

const (
	lockUser   = "SELECT balance, UTC_TIMESTAMP(3) FROM users WHERE user_id = ? FOR UPDATE"
	readRecord = "SELECT request_digest, status, response_status, response_body FROM idempotency_records WHERE user_id = ? AND idempotency_key = ?"
	lockStock  = "SELECT available FROM stock WHERE sku = ? FOR UPDATE"
	putOrder   = "INSERT INTO orders (order_id, user_id, idempotency_key, line_no, external_order_no, sku, quantity, amount, status," +
		" created_at, updated_at, stock_taken) VALUES (?, ?, ?, 0, NULL, ?, ?, ?, 'PENDING', ?, ?, FALSE)"
	putRecord = "INSERT INTO idempotency_records (user_id, idempotency_key, operation, request_digest, status, order_id," +
		" response_status, response_type, response_location, response_body, created_at) VALUES (?, ?, 'orders.create', ?, 2, ?, 201, 'application/json', ?, ?, ?)"
	spend = "UPDATE users SET balance = balance - ? WHERE user_id = ? AND balance >= ?"
)

const (
	benchSKU      = "potsticker"
	benchQuantity = 2
	benchAmount   = "39.80"
)

func (b *straight) order(ctx context.Context, user, key string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	digest := sha256.Sum256([]byte(orderBody))
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing to do after a commit
	now, err := mayBuy(ctx, tx, user, key)
	if err != nil {
		return err
	}
	id, text := newOrderID(now)
	answer := fmt.Appendf(nil, `{"order_id":"%s","user_id":"%s","sku":"`+benchSKU+`","quantity":%d,"amount":"`+benchAmount+
		`","status":"PENDING","created_at":"%s"}`, text, user, benchQuantity, now.Format("2006-01-02T15:04:05.000Z"))
	if _, err := tx.ExecContext(ctx, putOrder, id[:], user, key, benchSKU, benchQuantity, benchAmount, now, now); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, putRecord, user, key, digest[:], id[:], ordersPath+"/"+text, answer, now); err != nil {
		return err
	}
	r, err := tx.ExecContext(ctx, spend, benchAmount, user, benchAmount)
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil {
		return err
	} else if n != 1 {
		return errTooPoor
	}
	return tx.Commit()
}

// mayBuy locks what the order takes from and says when that was. A key that was
// used is no part of this measurement.
func mayBuy(ctx context.Context, tx *sql.Tx, user, key string) (now time.Time, err error) {
	var balance string
	if err := tx.QueryRowContext(ctx, lockUser, user).Scan(&balance, &now); err != nil {
		return now, err
	}
	if have, err := strconv.ParseFloat(balance, 64); err != nil {
		return now, err
	} else if have < 39.80 {
		return now, errTooPoor
	}
	var digest, body []byte
	var state, status int
	if err := absent(tx.QueryRowContext(ctx, readRecord, user, key).Scan(&digest, &state, &status, &body)); err != nil {
		return now, err
	}
	var available int64 // no row: the SKU is not limited
	return now, absent(tx.QueryRowContext(ctx, lockStock, benchSKU).Scan(&available))
}

var (
	errTooPoor = errors.New("the balance does not suffice")
	errThere   = errors.New("there is a row where none was expected")
)

func absent(err error) error {
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err == nil:
		return errThere
	default:
		return err
	}
}

// newOrderID makes a UUIDv7.
func newOrderID(now time.Time) (id [16]byte, text string) {
	_, _ = rand.Read(id[6:]) // never fails
	binary.BigEndian.PutUint64(id[:8], uint64(now.UnixMilli())<<16|uint64(id[6])<<8|uint64(id[7]))
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id, uuidText(id)
}
