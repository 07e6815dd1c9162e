//go:build linux

package chaos

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

func databaseFaults() []fault {
	return []fault{
		{"database killed", inDatabase, func(w *world, _ event) func() {
			w.database.Kill()
			return w.database.Restart
		}},
		{"database frozen", inDatabase, func(w *world, _ event) func() {
			w.database.Stop()
			return w.database.Cont
		}},
		{"database restarted", inDatabase, func(w *world, _ event) func() {
			w.database.Restart()
			return func() {}
		}},
		{"database read-only", inDatabase, func(w *world, _ event) func() {
			_ = w.exec(context.Background(), "SET GLOBAL read_only = ON") // it may wait for a session that holds on
			return func() { w.restore("SET GLOBAL read_only = OFF") }
		}},
		{"too few connections", inDatabase, func(w *world, _ event) func() {
			// Whoever lets go of a session may not get another.
			conn, err := w.admin.Conn(context.Background())
			if err != nil {
				w.t.Errorf("an administrator's session: %v", err)
				return nil
			}
			w.restore("SET GLOBAL max_connections = 10") // the least that both engines take
			w.killSessions(context.Background(), "KILL", 1)
			return func() {
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
				defer cancel()
				_, err := conn.ExecContext(ctx, "SET GLOBAL max_connections = 500")
				_ = conn.Close()
				if err != nil { // it was killed, or the server started again
					w.restore("SET GLOBAL max_connections = 500")
				}
			}
		}},
		{"queries killed", inDatabase, func(w *world, e event) func() {
			d := e.dice()
			return repeatedly(20*time.Millisecond, func(ctx context.Context) { w.killSessions(ctx, "KILL QUERY", 1+d.pick(3)) })
		}},
		{"sessions killed", inDatabase, func(w *world, e event) func() {
			d := e.dice()
			return repeatedly(100*time.Millisecond, func(ctx context.Context) { w.killSessions(ctx, "KILL", 1+d.pick(3)) })
		}},
		{"users' rows locked", inDatabase, func(w *world, e event) func() {
			d := e.dice()
			return w.foreignSession(func(ctx context.Context, do func(string, ...any) error) {
				for range 5 {
					if do("SELECT 1 FROM users WHERE user_id = ? FOR UPDATE", w.anybody(d)) != nil {
						return
					}
				}
				pause(ctx, 1500*time.Millisecond) // longer than a lock is waited for
			})
		}},
		// Another program that refers to a user before it locks the user: the
		// gateway waits for the one lock and it for the other.
		{"deadlocks by a foreign writer", inDatabase, func(w *world, e event) func() {
			d := e.dice()
			return w.foreignSession(func(ctx context.Context, do func(string, ...any) error) {
				user := w.anybody(d)
				if do(`INSERT INTO idempotency_records (user_id, idempotency_key, operation, request_digest, status,
					response_status, response_type, response_location, created_at)
					VALUES (?, 'foreign', 'create_order', REPEAT('x', 32), 3, 422, '', '', NOW(3))`, user) != nil {
					return
				}
				pause(ctx, 50*time.Millisecond)
				_ = do("SELECT 1 FROM users WHERE user_id = ? FOR UPDATE", user)
			})
		}},
		{"slow disk", inDatabase, func(w *world, _ event) func() { return w.slowDisk() }},
		{"failing disk", inDatabase, func(w *world, e event) func() { return w.failingDisk(e) }},
	}
}

// anybody is a user, the busy ones more often than others.
func (w *world) anybody(d *dice) string {
	if d.one(2) {
		return fmt.Sprintf("user-%d", d.pick(3))
	}
	return fmt.Sprintf("user-%d", d.pick(userCount))
}

// killSessions kills one in n of the sessions of the gateways, or what they are
// doing. Whoever is gone already is not missed.
func (w *world) killSessions(ctx context.Context, how string, n int) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var list sql.NullString
	err := w.admin.QueryRowContext(ctx, "SELECT GROUP_CONCAT(id) FROM information_schema.processlist WHERE user = 'shop'").Scan(&list)
	if err != nil || !list.Valid {
		return
	}
	for i, id := range strings.Split(list.String, ",") {
		if i%n == 0 {
			_, _ = w.admin.ExecContext(ctx, how+" "+id)
		}
	}
}

// expected are the errors that other faults give a foreign writer: lock waits,
// deadlocks, interruption, shutdown, too many connections, a killed session.
func expected() []uint16 { return []uint16{1020, 1205, 1213, 1317, 1053, 1040, 1927} }

// foreignSession runs transactions of another program until the fault ends; each
// is rolled back. What goes wrong in them is that program's trouble.
func (w *world) foreignSession(work func(ctx context.Context, do func(string, ...any) error)) (end func()) {
	return repeatedly(5*time.Millisecond, func(ctx context.Context) {
		// Its end is not the statement's: a session whose statement was broken
		// off would be closed, and its locks held for as long as that takes.
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		tx, err := w.admin.BeginTx(limit, nil)
		if err != nil {
			return
		}
		defer func() { _ = tx.Rollback() }()
		work(ctx, func(statement string, args ...any) error {
			_, err := tx.ExecContext(limit, statement, args...)
			if e, ok := errors.AsType[*mysql.MySQLError](err); ok && !slices.Contains(expected(), e.Number) {
				w.t.Errorf("a foreign writer: %v", err)
			}
			return err
		})
	})
}
