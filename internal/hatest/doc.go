// Package hatest runs the gateway on engines that are made to fail over: a
// Redis Cluster, a Redis with Sentinels, MySQL Group Replication, and MariaDB
// with a semi-synchronous replica.
//
// Each test starts the engines and a gateway as processes, sends customers who
// insist, kills the primary under them, and judges what was answered by what
// the engine that took over has. It prints what it counted, and fails when an
// answered order is lost, except where that loss is what is shown.
//
// It must not know how an answer is decided. The tests have the build tag "ha";
// "make ha" runs them.
package hatest
