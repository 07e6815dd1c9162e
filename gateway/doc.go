// Package gateway is oncegate's HTTP side: routes, wire JSON, authentication,
// problem documents, health, metrics, and the admin listener.
//
// It promises that every request ends in exactly one answer of the OpenAPI
// document, that an error says what is known of the order and what to do next,
// that a body is read and checked whole before anything is claimed for it, that
// a replay is byte for byte what a committed transaction wrote, and that no
// answer and no log line tells a caller anything of another caller.
//
// It must not know how an order is decided: no Redis, no SQL, no rules of the
// domain. It asks [Submitter] and shows what it is told.
package gateway
