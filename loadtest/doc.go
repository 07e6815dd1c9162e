// Package loadtest drives a deployment, judges it and says what it found.
//
// It is a black box: HTTP, and SQL for the audit; it shares no code with the
// server and can be pointed at any deployment that keeps the contract. What it
// promises is the truth about a run: times from when a request was due, starts
// that were not made, its own lag and limits, and a verdict on every key.
//
// [Run] puts the parts together: pace says when, scenario what, drive and wire
// send, measure and history keep, verdict judges, result and report tell.
//
// It must not import anything of the gateway.
package loadtest
