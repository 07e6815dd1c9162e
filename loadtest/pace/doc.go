// Package pace says when requests are due.
//
// A [Plan] is a rate over time, and the arrivals of a plan are a pure function
// of it: no clock, no goroutine, no feedback from the server. That is what makes
// an open model: a server that stalls does not slow down the customers who are
// still on their way, so every request can be measured from the instant at which
// it was due.
//
// It must not know what is sent, nor how long anything took.
package pace
