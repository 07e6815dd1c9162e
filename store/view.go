package store

import (
	"database/sql"
	"slices"
	"time"

	"github.com/oncegate/oncegate/order"
)

// view is what a transaction has read under its locks.
type view struct {
	server   order.ServerID
	now      time.Time
	balances map[string]order.Amount
	records  map[pair]*record         // by user and key
	byID     map[order.ID]order.Order // orders that an earlier attempt may have made
	numbers  map[pair]order.Order     // by user and business number
	stock    map[string]int64         // limited SKUs only
}

func newView() *view {
	return &view{
		balances: map[string]order.Amount{},
		records:  map[pair]*record{},
		byID:     map[order.ID]order.Order{},
		numbers:  map[pair]order.Order{},
		stock:    map[string]int64{},
	}
}

// lockUsers is always the first statement of a transaction. The row lock makes
// everything read after it final for these users. lock ends a locking read.
func (t *transaction) lockUsers(v *view, group []*pending, lock string) error {
	t.q.reset("SELECT user_id, balance, " + t.d.now + ", " + t.d.identity + " FROM users" + t.d.byKey + " WHERE user_id IN ")
	list(t.q, usersOf(group))
	t.q.add(" ORDER BY user_id" + lateLock(lock))
	return t.rows(func(rows *sql.Rows) error {
		var user, server string
		var balance money
		var now instant
		if err := rows.Scan(&user, &balance, &now, &server); err != nil {
			return err
		}
		v.balances[user] = balance.Amount
		v.now = now.Truncate(order.TimePrecision)
		v.server = serverID(server)
		return nil
	})
}

// readRecords reads the records of the group's keys, and the order rows where
// those alone can tell: of a record whose answer was compacted, of a command
// that a unique index refused, and of an unprotected command that is in doubt or
// was: one that is found would otherwise be refused for the sake of itself.
func (t *transaction) readRecords(v *view, group []*pending, r order.Renderer) error {
	var keys, bare []pair
	var ids []any
	for _, p := range group {
		switch {
		case p.cmd.Key != "":
			keys = append(keys, p.pair())
			if p.suspect {
				bare = append(bare, p.pair())
			}
		case p.unknown || p.found || p.suspect:
			ids = append(ids, p.ids[0][:])
		}
	}
	if len(keys) > 0 {
		compacted, err := readRecords(t.ctx, t.conn, t.q, sortedPairs(keys), v.records)
		if err != nil {
			return err
		}
		bare = append(bare, compacted...)
	}
	if len(bare) > 0 {
		if err := rebuildRecords(t.ctx, t.conn, t.q, sortedPairs(bare), v.server, v.records, r); err != nil {
			return err
		}
	}
	if len(ids) > 0 {
		t.q.reset("SELECT " + orderColumns + " FROM orders WHERE order_id IN ")
		list(t.q, ids)
		return t.rows(func(rows *sql.Rows) error {
			o, err := scanOrder(rows)
			v.byID[o.ID] = o
			return err
		})
	}
	return nil
}

// fresh is the part of a group that has to be decided now.
func (v *view) fresh(group []*pending) []*pending {
	fresh := make([]*pending, 0, len(group))
	for _, p := range group {
		_, account := v.balances[p.cmd.UserID]
		rec, recorded := v.records[p.pair()]
		recorded = recorded && !(p.deferred && rec.receipt.State == order.Processing)
		_, made := v.byID[p.ids[0]]
		if account && !made && (p.cmd.Key == "" || !recorded) {
			fresh = append(fresh, p)
		}
	}
	return fresh
}

func (t *transaction) readNumbers(v *view, fresh []*pending) error {
	var numbers []pair
	for _, p := range fresh {
		for i := range p.cmd.Lines {
			if no := p.cmd.Lines[i].ExternalOrderNo; no != "" {
				numbers = append(numbers, pair{p.cmd.UserID, no})
			}
		}
	}
	if len(numbers) == 0 {
		return nil
	}
	t.q.reset("SELECT " + orderColumns + " FROM orders WHERE ")
	t.q.pairs("external_order_no", sortedPairs(numbers))
	return t.rows(func(rows *sql.Rows) error {
		o, err := scanOrder(rows)
		v.numbers[pair{o.UserID, o.Line.ExternalOrderNo}] = o
		return err
	})
}

// lockStock locks the rows of the SKUs that are limited, in SKU order; the
// others have no row.
func (t *transaction) lockStock(v *view, fresh []*pending) error {
	var skus []string
	for _, p := range fresh {
		for i := range p.cmd.Lines {
			skus = append(skus, p.cmd.Lines[i].SKU)
		}
	}
	if len(skus) == 0 {
		return nil
	}
	slices.Sort(skus)
	t.q.reset("SELECT sku, available FROM stock" + t.d.byKey + " WHERE sku IN ")
	list(t.q, slices.Compact(skus))
	t.q.add(" ORDER BY sku" + t.d.forUpdate)
	return t.rows(func(rows *sql.Rows) error {
		var sku string
		var available int64
		err := rows.Scan(&sku, &available)
		v.stock[sku] = available
		return err
	})
}

func sortedPairs(pairs []pair) []pair {
	slices.SortFunc(pairs, comparePairs)
	return slices.Compact(pairs)
}
