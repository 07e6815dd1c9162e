// Package ordertest helps to test against the domain: in-memory fakes of its
// ports ([Ledger], [Filter], [Observer], [PlainRenderer]) and the contracts that
// every implementation must pass, the fake included: [RunLedger], [RunFilter],
// [RunLifecycle] and [RunDeferrals].
//
// The fakes promise the full semantics of the ports, not a sketch of them: what
// holds against a fake holds against the real thing as far as one process can
// tell. They are for tests only and keep everything in memory. The package must
// not know HTTP, Redis or SQL.
package ordertest
