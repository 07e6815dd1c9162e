//go:build !seededbugs

package consumer

// Mistakes that this package must not make, kept so that the tests can prove
// that they would be noticed. Without the build tag they do not exist.
const flawAcknowledgedFirst = false
