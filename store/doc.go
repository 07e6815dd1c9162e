// Package store is the final decision: the ledger that commits orders, and the
// reads, accounts and migrations beside it.
//
// One transaction decides a group of commands (group commit). Its first
// statement locks the users' rows, always in key order; that lock makes the
// look-ups after it true, keeps the transactions free of deadlocks and resolves
// an unknown commit: running the transaction again waits for the old session to
// be over and then sees what it left. The unique indexes have the last word.
//
// MySQL, MariaDB and SQLite share one ledger; what differs is in dialect*.go.
// The package must not know HTTP or Redis; of ours it imports only order and
// crash points.
package store
