// Package wire sends HTTP/1.1 requests and tells exactly what became of each.
//
// It exists because a general client hides what a load test must see. net/http
// sends a request again, without a word, when it carries an Idempotency-Key and
// a reused connection breaks. Here one call of [Client.Do] writes to at most one
// connection, once; a broken connection is an answer; and running out of local
// ports or sockets is told apart from a fault of the server.
//
// It must not know what the requests mean.
package wire
