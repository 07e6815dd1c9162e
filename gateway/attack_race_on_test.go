//go:build race

package gateway_test

// idleConnections is smaller here: the race detector multiplies their memory.
const idleConnections = 2000
