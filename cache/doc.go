// Package cache is the prefilter: it turns duplicates away before they reach
// the ledger. It implements [order.Filter] in two tiers.
//
// The process tier joins requests that this process is deciding already and
// remembers receipts for a short while. The Redis guard marks a key with one
// command, SET NX GET, and keeps the receipts of all gateways.
//
// All of it is advice. Redis down, slow, flushed, full or lying makes the
// gateway slower, never wrong: every failure is counted and reads as "ask the
// ledger". What Redis returns is believed only with a valid MAC. The package
// must not know SQL or HTTP; of ours it imports only order and crash points.
package cache
