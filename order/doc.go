// Package order is the domain of oncegate: one order per intent.
//
// It holds what an order request means ([Command], [Digest]), what may come of
// it ([Answer], [Receipt], [Rejection]) and the one place where that is decided
// ([Intake]). It names two ports: [Filter], which is advice and may be wrong,
// slow or away, and [Ledger], whose committed transaction is the truth.
//
// It promises that what it answers with a receipt was written by a committed
// transaction or decided under the user's lock, and that every error says what
// is known of the order. "In progress", and "reused" while an attempt is
// running, rest on the filter's word for a few seconds at most. It must not know
// HTTP, Redis or SQL, and it imports nothing but the standard library.
package order
