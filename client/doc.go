// Package client sends orders to oncegate so that a customer is never charged
// twice and never left without an answer.
//
// The caller names its intents: one press of a button, one row of an import,
// one message. [Client.CreateOrder] takes the key of the intent from a
// [KeyStore], which keeps it over restarts, and sends the order with it as often
// as it takes: through lost connections, time-outs and "try later", with full
// jitter and never before the gateway's Retry-After. It ends in one of three
// ways:
//
//   - a receipt: the order exists, made by this call or by one before it
//     (Replayed);
//   - a [*Problem]: the gateway refuses, and this call has made nothing. A verdict
//     ([Problem.Verdict]) says that no call before it has, either;
//   - an [*UnsettledError]: there may be an order, and only sending the same intent
//     again can tell. Everything that is not the gateway's own word counts as no
//     answer: a proxy's error page, and a captive portal's 200 as well.
//
// The package never makes a second key for an intent on its own. [Client.Renew]
// does, when it is given a verdict that allows it.
//
// net/http sends a request with an Idempotency-Key again by itself when a kept
// connection breaks under it. With this gateway that is what the key is for, so
// it is left to do so; [Receipt] counts it in Sends.
//
// A [Client] may be used by any number of goroutines. The package imports
// nothing but the standard library and must not know how the gateway works,
// beyond its documented interface.
package client
