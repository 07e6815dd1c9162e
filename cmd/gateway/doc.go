// Command oncegate is the gateway and its tools: one order per intent.
//
// This package joins the parts. It copies the configuration into their options,
// opens them from the inside out, and closes them from the outside in. It holds
// no rule about orders, HTTP, Redis or SQL. [App] is a value: several can run
// in one process, and a test can start, stop and inspect each.
package main
