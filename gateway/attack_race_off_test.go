//go:build !race

package gateway_test

const idleConnections = 10_000
