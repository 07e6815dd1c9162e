// Package faultproxy holds TCP proxies that do to a connection what networks
// and dying servers do, when a test says so.
//
// A [Proxy] knows bytes only: it passes, delays, holds, refuses and cuts. A
// [MySQLProxy] and a [RedisProxy] also know where a command begins and ends,
// count the commands that they see, and ask a hook what is to become of each
// one: see [Action]. So a test can lose exactly the reply to one COMMIT, or
// deliver it after its client has given up.
//
// A [Balancer] stands in front of several gateways and passes over those that
// refuse; one that is frozen keeps its connections.
//
// It promises that bytes are never reordered or invented (but for
// [AnswerError]), and that nothing is left running when the test ends. It must
// not know the product's statements or keys.
package faultproxy
