// Package insight remembers what operators ask about: how many requests each
// layer answered, how long that took, how old retries are, who sends conflicts,
// when the breaker moved; and it predicts what another TTL of receipts would do.
//
// It promises bounded memory whatever the traffic, and that being told of a
// decision costs two atomic additions and never waits. What it says is of this
// process only, and lost with it: the long memory is Prometheus. It holds no
// key, no body and no user, and it must not know HTTP, Redis or SQL: whoever
// wires it hands in what it needs of them as functions.
package insight
