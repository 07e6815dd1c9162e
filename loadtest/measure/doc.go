// Package measure counts outcomes and keeps their times.
//
// Every request has two times: the response time, from when it was due, which is
// what the customer waited; and the service time, from when it was sent, which is
// what the server saw. Both are kept for every outcome, those without an answer
// included: a request that timed out took as long as it took. No sample is ever
// made up.
//
// It must not know how requests are made or paced.
package measure
