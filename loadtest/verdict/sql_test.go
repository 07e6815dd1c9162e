package verdict

import (
	"context"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/oncegate/oncegate/loadtest/history"
	"github.com/oncegate/oncegate/loadtest/measure"
	"github.com/oncegate/oncegate/loadtest/scenario"
)

// schema is the part of the deployment's tables that the audit reads, without
// the constraints that would keep the seeded faults out.
const schema = `
CREATE TABLE users (user_id TEXT PRIMARY KEY, balance INTEGER NOT NULL, credited INTEGER NOT NULL, created_at INTEGER NOT NULL);
CREATE TABLE orders (order_id BLOB PRIMARY KEY, user_id TEXT, idempotency_key TEXT, line_no INTEGER, external_order_no TEXT,
	sku TEXT, quantity INTEGER, amount INTEGER, status TEXT);
CREATE TABLE idempotency_records (user_id TEXT, idempotency_key TEXT, status INTEGER, order_id BLOB);`

type base struct {
	*Database
	t *testing.T
}

func newBase(t *testing.T) *base {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.db")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	db, err := OpenDB("sqlite:" + path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	b := &base{db, t}
	require.ErrorContains(t, db.Ready(t.Context()), "orders")
	b.exec(schema)
	require.NoError(t, db.Ready(t.Context()))
	return b
}

func TestADatabaseThatIsNotThereIsNotMade(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	db, err := OpenDB("sqlite:" + path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	require.Error(t, db.Ready(t.Context()))
	require.NoFileExists(t, path)
}

func (b *base) exec(q string, args ...any) {
	b.t.Helper()
	_, err := b.ExecContext(b.t.Context(), q, args...)
	require.NoError(b.t, err)
}

func blob(t *testing.T, id string) []byte {
	t.Helper()
	raw, err := hex.DecodeString(strings.ReplaceAll(id, "-", ""))
	require.NoError(t, err)
	return raw
}

func (b *base) order(id, user string, key any, cents int64) {
	b.t.Helper()
	b.exec("INSERT INTO orders VALUES (?, ?, ?, 0, NULL, 'tea', 2, ?, 'PENDING')", blob(b.t, id), user, key, cents)
}

func (b *base) key(user, key string, status int, id string) {
	b.t.Helper()
	var order any
	if id != "" {
		order = blob(b.t, id)
	}
	b.exec("INSERT INTO idempotency_records VALUES (?, ?, ?, ?)", user, key, status, order)
}

const (
	id1 = "01990000-0000-7000-8000-000000000001"
	id2 = "01990000-0000-7000-8000-000000000002"
)

// heard is a case whose customer sent one order and got these answers.
func heard(user, key string, records ...history.Record) *history.Case {
	l := &history.Log{}
	c := l.Open(&scenario.Intent{
		Key: key, Behaviour: &scenario.Behaviour{Name: "b"},
		Lines: []scenario.Line{{SKU: "tea", Quantity: 2, Hundredths: 1234}},
	}, user)
	for _, r := range records {
		c.Add(r)
	}
	return c
}

func created(id string) history.Record {
	return history.Record{
		Outcome: measure.Created, Proof: history.Decided, HTTP: 201, Sent: 1, Done: 2, Location: "/api/orders/" + id,
		Body: []byte(`{"order_id":"` + id + `","user_id":"u","sku":"tea","quantity":2,"amount":"12.34","status":"PENDING"}`),
	}
}

// callback is a payment that was taken, with this answer.
func callback(body string) history.Record {
	return history.Record{Op: history.Callback, Outcome: measure.Accepted, Proof: history.Decided, HTTP: 200, Sent: 3, Done: 4, Body: []byte(body)}
}

// batch is a case whose customer sent two equal rows and was answered with these
// orders.
func batch(user, key string, ids ...string) *history.Case {
	rows := make([]string, len(ids))
	for i, id := range ids {
		rows[i] = string(created(id).Body)
	}
	r := created("")
	r.Body, r.Location = []byte(`{"orders":[`+strings.Join(rows, ",")+`]}`), "/api/requests/"+key
	c := heard(user, key, r)
	c.Intent.Behaviour.Endpoint = scenario.Batch
	c.Intent.Lines = append(c.Intent.Lines, c.Intent.Lines[0])
	return c
}

func timedOut() history.Record { return history.Record{Outcome: measure.Timeout, Sent: 1, Done: 2} }

func audit(t *testing.T, b *base, cases ...*history.Case) (Summary, map[Kind]int) {
	t.Helper()
	scope := Scope{KeyPrefix: "k", OwnUsers: true}
	truth, err := FromSQL(t.Context(), b.Database, []string{"u"}, scope)
	require.NoError(t, err)
	s, f := Audit(cases, truth, scope)
	return s, f.Counts
}

func TestSQLAuditPassesWhatIsRight(t *testing.T) {
	t.Parallel()
	b := newBase(t)
	b.order(id1, "u", "k1", 1234)
	b.key("u", "k1", 2, id1)
	b.order(id2, "u", "k2", 1234)
	b.key("u", "k2", 2, id2)
	s, counts := audit(t, b, heard("u", "k1", created(id1)), heard("u", "k2", timedOut()), heard("u", "k3", timedOut()))
	require.Empty(t, counts)
	require.Equal(t, Summary{Source: "sql", Keys: 3, Rows: 2, Acknowledged: 1, Unacknowledged: 1, Undelivered: 1}, s)
}

func TestSQLAuditFindsEachFault(t *testing.T) {
	t.Parallel()
	refusal := history.Record{Outcome: measure.Unavailable, Proof: history.NoEffect, Sent: 1, Done: 2}
	final := history.Record{Outcome: measure.Rejected, Proof: history.Decided, HTTP: 422, Sent: 3, Done: 4, Body: []byte(`{"safe_new_key":true}`)}
	for name, tc := range map[string]struct {
		seed func(*base)
		c    *history.Case
		want map[Kind]int
	}{
		"lost": {func(*base) {}, heard("u", "k1", created(id1)), map[Kind]int{Lost: 1}},
		"duplicate": {func(b *base) {
			b.order(id1, "u", "k1", 1234)
			b.order(id2, "u", "k1", 1234)
			b.key("u", "k1", 2, id1)
		}, heard("u", "k1", created(id1)), map[Kind]int{Duplicate: 2}}, // by key, and by GROUP BY
		"another order": {
			func(b *base) { b.order(id2, "u", "k1", 1234); b.key("u", "k1", 2, id2) },
			heard("u", "k1", created(id1)),
			map[Kind]int{Lost: 1, WrongState: 1},
		},
		"wrong amount": {
			func(b *base) { b.order(id1, "u", "k1", 1235); b.key("u", "k1", 2, id1) },
			heard("u", "k1", created(id1)),
			map[Kind]int{WrongRow: 1},
		},
		"no record":     {func(b *base) { b.order(id1, "u", "k1", 1234) }, heard("u", "k1", created(id1)), map[Kind]int{NoRecord: 1}},
		"no order":      {func(b *base) { b.key("u", "k1", 2, "") }, heard("u", "k1", timedOut()), map[Kind]int{NoOrder: 1}},
		"stray":         {func(b *base) { b.order(id1, "u", "k9", 1234) }, heard("u", "k1", timedOut()), map[Kind]int{Stray: 1}},
		"without a key": {func(b *base) { b.order(id1, "u", nil, 1234) }, heard("u", "k1", timedOut()), map[Kind]int{Stray: 1}},
		"denied": {
			func(b *base) { b.order(id1, "u", "k1", 1234); b.key("u", "k1", 2, id1) },
			heard("u", "k1", refusal),
			map[Kind]int{Denied: 1},
		},
		"denied after an attempt that nobody heard of": {
			func(b *base) { b.order(id1, "u", "k1", 1234); b.key("u", "k1", 2, id1) },
			heard("u", "k1", timedOut(), final),
			map[Kind]int{Denied: 1},
		},
		"a refusal that was forgotten":   {func(*base) {}, heard("u", "k1", final), map[Kind]int{WrongState: 1}},
		"a refusal on record":            {func(b *base) { b.key("u", "k1", 3, "") }, heard("u", "k1", timedOut(), final), nil},
		"lost after its status was told": {func(*base) {}, heard("u", "k1", timedOut(), status("succeeded")), map[Kind]int{Lost: 1}},
		"there after its refusal was told": {
			func(b *base) { b.order(id1, "u", "k1", 1234); b.key("u", "k1", 2, id1) },
			heard("u", "k1", timedOut(), status("failed")),
			map[Kind]int{Denied: 1},
		},
		"a record without its order's id": {
			func(b *base) { b.order(id1, "u", "k1", 1234); b.key("u", "k1", 2, "") },
			heard("u", "k1", created(id1)),
			map[Kind]int{WrongState: 1},
		},
		"a record of an order that nobody heard of": {
			func(b *base) { b.order(id1, "u", "k1", 1234); b.key("u", "k1", 2, id2) },
			heard("u", "k1", timedOut()),
			map[Kind]int{WrongState: 1},
		},
		"a record in a state that there is not": {
			func(b *base) { b.order(id1, "u", "k1", 1234); b.key("u", "k1", 9, id1) },
			heard("u", "k1", created(id1)),
			map[Kind]int{NoRecord: 1},
		},
		"a record that nobody asked for": {func(b *base) { b.key("u", "k9", 3, "") }, heard("u", "k1", timedOut()), map[Kind]int{Stray: 1}},
		"the key of one user with another": {
			func(b *base) {
				b.order(id1, "u", "k1", 1234)
				b.key("u", "k1", 2, id1)
				b.order(id2, "eve", "k1", 1234)
			},
			heard("u", "k1", created(id1)),
			map[Kind]int{Stray: 1},
		},
		"paid by nobody": {
			func(b *base) {
				b.order(id1, "u", "k1", 1234)
				b.key("u", "k1", 2, id1)
				b.exec("UPDATE orders SET status = 'PAID'")
			},
			heard("u", "k1", created(id1)),
			map[Kind]int{WrongStatus: 1},
		},
		"cancelled by nobody": {
			func(b *base) {
				b.order(id1, "u", "k1", 1234)
				b.key("u", "k1", 2, id1)
				b.exec("UPDATE orders SET status = 'CANCELLED'")
			},
			heard("u", "k1", created(id1), callback(`{"refund_owed":false}`)),
			map[Kind]int{PaymentLost: 1, WrongStatus: 1},
		},
		"the lines of a batch exchanged": {
			func(b *base) {
				b.order(id1, "u", "k1", 1234)
				b.order(id2, "u", "k1", 1234)
				b.exec("UPDATE orders SET line_no = 1 WHERE order_id = ?", blob(b.t, id1))
				b.key("u", "k1", 2, id1)
			},
			batch("u", "k1", id1, id2),
			map[Kind]int{WrongRow: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBase(t)
			tc.seed(b)
			_, counts := audit(t, b, tc.c)
			require.Equal(t, tc.want, counts)
		})
	}
}

func TestAnEarlierRunIsFound(t *testing.T) {
	t.Parallel()
	b := newBase(t)
	b.order(id1, "u", "lt-a-1", 1234)
	users := append(slices.Repeat([]string{"nobody"}, usersPerQuery), "u")
	for name, tc := range map[string]struct {
		scope Scope
		want  string
	}{
		"the same name":                 {Scope{KeyPrefix: "lt-a-"}, "u"},
		"another name":                  {Scope{KeyPrefix: "lt-b-"}, ""},
		"users who should have nothing": {Scope{KeyPrefix: "lt-b-", OwnUsers: true}, "u"},
	} {
		user, err := Earlier(t.Context(), b.Database, users, tc.scope)
		require.NoError(t, err, name)
		require.Equal(t, tc.want, user, name)
	}
}

func TestUsersAreCreatedOnce(t *testing.T) {
	t.Parallel()
	b := newBase(t)
	users := make([]string, 450)
	for i := range users {
		users[i] = "u" + strings.Repeat("x", i)
	}
	for range 2 {
		require.NoError(t, CreateUsers(context.Background(), b.Database, users, 5000))
	}
	var n, balance, credited int
	require.NoError(t, b.QueryRowContext(t.Context(), "SELECT COUNT(*), MAX(balance), MIN(credited) FROM users").Scan(&n, &balance, &credited))
	require.Equal(t, 450, n)
	require.Equal(t, 5000, balance)
	require.Equal(t, 5000, credited)
}
