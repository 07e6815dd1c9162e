//go:build unix

// Package testserver gives tests real servers: MySQL, MariaDB and Redis.
//
// [MySQL], [MariaDB] and [Redis] return a server that all tests of one test
// binary share; [StartMySQL], [StartMariaDB] and [StartRedis] return a private
// one, to be frozen, killed and restarted. Servers come, in this order, from
// addresses in the environment (shared ones only), binaries on PATH, the cache
// directory, an installation made on the spot (Debian, as root) or a Docker
// engine. An engine that is not to be had skips the test, and fails it where
// CI=true; [Demand] says the same of whatever else a test needs.
//
// It promises private processes on free ports of 127.0.0.1, durable settings,
// and that nothing outlives the test process, however that ends. It must not
// know the product's tables or keys.
package testserver
