package main

import "runtime/debug"

// gcPercent lets the heap grow to five times what is live before it is
// collected. A gateway keeps little and makes much garbage: with Go's default
// of 100 and a few megabytes live it collects dozens of times a second, and an
// eighth of its processor time goes there (docs/performance.md). What it costs
// is memory, about four times the receipts that the process remembers; a
// GOMEMLIMIT bounds it all the same.
const gcPercent = 400

// easeCollector sets it, unless the environment has the word: GOGC is how
// operators of Go programs say what they want.
func easeCollector(env environment) {
	if env.lookup("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
