// Package chaos is the test of the promise under faults: real gateways as
// processes, real databases and a real Redis, and whatever can happen to them.
//
// Its parts are tests:
//
//   - crash points: a gateway dies at each step of a decision, is started again,
//     and is asked again with the same key;
//   - frozen gateways: one stops at each step of a decision for longer than its
//     mark in Redis lives, another decides, and the first wakes and goes on;
//   - the nemesis: several gateways under traffic with retries, while faults are
//     drawn from a seed; what was answered is then judged against the database;
//   - random sequences of orders, batches, copies, cancellations, payments, crashes
//     and faults, against a model;
//   - a full log disk, which takes a minute by itself;
//   - a gateway with a network of its own, whose packets are lost;
//   - clocks that jump, and a disk that loses its power;
//   - a soak: hours of all this, and what grows;
//   - seeded bugs: mistakes that the product must not make are switched on one
//     by one, and a test that names it must fail.
//
// It drives the programs as anybody could and shares no code with them: it
// judges with package loadtest, which does not either. It must not know how an
// answer is decided.
//
// The tests run on Linux, and "make chaos" is how they are run for long.
package chaos
