package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// checkServer looks at what the decision rests on. A setting that breaks an
// invariant refuses the start; one that weakens durability is a loud warning
// and a metric.
func (s *Store) checkServer(ctx context.Context) error {
	if s.d.name == "sqlite" {
		return nil // every setting is pinned by the DSN of the session
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.ReadTimeout)
	defer cancel()
	if err := s.checkLocks(ctx); err != nil {
		return err
	}
	vars, err := s.variables(ctx)
	if err != nil {
		return s.translate("read the server's settings", err)
	}
	for setting, why := range weaknesses(vars) {
		s.metrics.weak.WithLabelValues(setting).Set(1)
		s.o.Logger.WarnContext(ctx, "the database server may lose committed orders", "setting", setting, "why", why)
	}
	if strings.EqualFold(vars["binlog_format"], "STATEMENT") && isOn(vars["log_bin"]) {
		return errors.New("binlog_format is STATEMENT: READ COMMITTED cannot write with it, set it to ROW")
	}
	return errors.Join(s.checkColumns(ctx), s.checkIndexes(ctx))
}

// checkLocks refuses a server that does not know the locking reads of this program:
// it would be found out by the first user whose row somebody has. What it knows it
// tells by itself, whatever its version is called.
func (s *Store) checkLocks(ctx context.Context) error {
	q := query{d: s.d}
	q.reset("SELECT user_id FROM users WHERE 1 = 0" + s.d.skipLocked)
	err := scanRows(ctx, s.reads, &q, func(*sql.Rows) error { return nil })
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok && e.Number == erSyntax {
		return fmt.Errorf("the database server (version %s) does not know SELECT … FOR UPDATE SKIP LOCKED:"+
			" MySQL 8.0 or later is needed, or MariaDB 10.6 or later: %w", s.version, err)
	}
	return s.translate("try to lock rows", err)
}

func (s *Store) variables(ctx context.Context) (map[string]string, error) {
	names := []string{
		"innodb_flush_log_at_trx_commit", "sync_binlog", "log_bin", "binlog_format",
		"rpl_semi_sync_master_wait_point", "rpl_semi_sync_source_wait_point",
		"rpl_semi_sync_master_enabled", "rpl_semi_sync_source_enabled", "innodb_doublewrite",
		"rpl_semi_sync_master_timeout", "rpl_semi_sync_source_timeout",
	}
	q := query{d: s.d}
	q.reset("SHOW GLOBAL VARIABLES WHERE Variable_name IN ")
	list(&q, names)
	vars := map[string]string{}
	err := scanRows(ctx, s.reads, &q, func(rows *sql.Rows) error {
		var name, value string
		err := rows.Scan(&name, &value)
		vars[name] = value
		return err
	})
	return vars, err
}

func isOn(v string) bool { return strings.EqualFold(v, "ON") || v == "1" }

// weakSettings are the settings that weaknesses may name.
func weakSettings() []string {
	return []string{
		"innodb_flush_log_at_trx_commit", "sync_binlog", "innodb_doublewrite",
		"rpl_semi_sync_master_wait_point", "rpl_semi_sync_source_wait_point",
		"rpl_semi_sync_master_timeout", "rpl_semi_sync_source_timeout",
	}
}

// longSemiSync is a time-out of semi-synchronous replication that no outage of
// a replica is expected to outlast.
const longSemiSync = time.Hour

// weaknesses names the settings with which a crash or a failover may lose
// orders that were answered.
func weaknesses(vars map[string]string) map[string]string {
	found := map[string]string{}
	if v := vars["innodb_flush_log_at_trx_commit"]; v != "1" {
		found["innodb_flush_log_at_trx_commit"] = "it is " + v + ": the log is not on disk when a commit is answered"
	}
	if v := vars["sync_binlog"]; isOn(vars["log_bin"]) && v != "1" {
		found["sync_binlog"] = "it is " + v + ": the binary log is not on disk when a commit is answered"
	}
	if v := vars["innodb_doublewrite"]; strings.EqualFold(v, "OFF") {
		found["innodb_doublewrite"] = "it is off: a torn page cannot be repaired"
	}
	for _, role := range []string{"master", "source"} {
		if !isOn(vars["rpl_semi_sync_"+role+"_enabled"]) {
			continue
		}
		if name := "rpl_semi_sync_" + role + "_wait_point"; vars[name] == "AFTER_COMMIT" {
			found[name] = "it is AFTER_COMMIT: an order is visible, and replayed, before a replica has it"
		}
		name := "rpl_semi_sync_" + role + "_timeout"
		if ms, err := strconv.ParseInt(vars[name], 10, 64); err == nil && ms < longSemiSync.Milliseconds() {
			found[name] = "it is " + vars[name] + " ms: after that, commits are answered that no replica has"
		}
	}
	return found
}

// checkColumns refuses key columns that are not compared byte for byte.
func (s *Store) checkColumns(ctx context.Context) error {
	want := map[string]string{
		"users.user_id": "ascii_bin", "orders.user_id": "ascii_bin", "orders.idempotency_key": "ascii_bin",
		"orders.external_order_no": "utf8mb4_bin", "orders.sku": "utf8mb4_bin", "stock.sku": "utf8mb4_bin",
		"idempotency_records.user_id": "ascii_bin", "idempotency_records.idempotency_key": "ascii_bin",
		"deferred_requests.user_id": "ascii_bin", "deferred_requests.idempotency_key": "ascii_bin",
		"consumed_messages.consumer": "ascii_bin", "consumed_messages.message_id": "utf8mb4_bin",
		"parked_messages.consumer": "ascii_bin", "parked_messages.message_id": "utf8mb4_bin",
		"order_events.claimed_reference": "utf8mb4_bin", "order_events.provider_reference": "utf8mb4_bin",
	}
	q := query{d: s.d}
	q.reset("SELECT CONCAT(TABLE_NAME, '.', COLUMN_NAME), COLLATION_NAME FROM information_schema.COLUMNS" +
		" WHERE TABLE_SCHEMA = DATABASE() AND COLLATION_NAME IS NOT NULL")
	var faults []error
	err := scanRows(ctx, s.reads, &q, func(rows *sql.Rows) error {
		var column, collation string
		if err := rows.Scan(&column, &collation); err != nil {
			return err
		}
		if w, ok := want[column]; ok && w != collation {
			faults = append(faults, fmt.Errorf("%s has the collation %s, which takes different keys for one: it must be %s", column, collation, w))
		}
		delete(want, column)
		return nil
	})
	if err != nil {
		return s.translate("read the columns", err)
	}
	for column := range want {
		faults = append(faults, fmt.Errorf("the column %s is missing", column))
	}
	return errors.Join(faults...)
}

// checkIndexes refuses a schema without the unique indexes that have the last word,
// or without those that a statement names.
func (s *Store) checkIndexes(ctx context.Context) error {
	indexes, err := s.indexes(ctx)
	if err != nil {
		return err
	}
	var faults []error
	for _, want := range []struct{ table, columns, second string }{
		{"orders", "user_id,idempotency_key,line_no", "order"},
		{"orders", "user_id,external_order_no", "order"},
		{"idempotency_records", "user_id,idempotency_key", "order"},
		{"consumed_messages", "consumer,message_id", "effect of a message"},
		{"order_events", "claimed_reference", "effect of a payment"},
	} {
		if !slices.ContainsFunc(indexes, func(i index) bool { return i.table == want.table && i.unique && i.columns == want.columns }) {
			faults = append(faults, fmt.Errorf("the table %s has no unique index on (%s): nothing would stop a second %s", want.table, want.columns, want.second))
		}
	}
	for _, want := range []struct{ table, name, without string }{
		{"orders", ordersByUser, "no list of orders could be read"},
		{"idempotency_records", recordsByAge, "no record could be compacted"},
	} {
		if !slices.ContainsFunc(indexes, func(i index) bool { return i.table == want.table && i.name == want.name }) {
			faults = append(faults, fmt.Errorf("the table %s has no index %s: %s", want.table, want.name, want.without))
		}
	}
	return errors.Join(faults...)
}

type index struct {
	table, name, columns string
	unique               bool
}

func (s *Store) indexes(ctx context.Context) (indexes []index, err error) {
	q := query{d: s.d}
	q.reset("SELECT TABLE_NAME, INDEX_NAME, GROUP_CONCAT(COLUMN_NAME ORDER BY SEQ_IN_INDEX), MAX(NON_UNIQUE) = 0" +
		" FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE() GROUP BY TABLE_NAME, INDEX_NAME")
	err = scanRows(ctx, s.reads, &q, func(rows *sql.Rows) error {
		var i index
		err := rows.Scan(&i.table, &i.name, &i.columns, &i.unique)
		indexes = append(indexes, i)
		return err
	})
	return indexes, s.translate("read the indexes", err)
}
