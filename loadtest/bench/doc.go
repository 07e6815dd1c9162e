//go:build unix

// Package bench measures how fast a gateway is as ratios: against baselines that
// do less, on the same machine, in the same minutes.
//
// [Run] starts the gateway under test and what it is compared with as processes
// of their own, on a MySQL and a Redis that it is given, lets both sides take
// turns, and says for each path what was reached and what is asked for. The
// baselines are here (baseline_*.go) and are written to win. A run whose answers
// are wrong, or that came from another layer than its row says, is told as such.
//
// It must not import anything of the gateway, nor know how servers are found.
package bench
