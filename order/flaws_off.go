//go:build !seededbugs

package order

// Mistakes that this package must not make, kept so that the tests can prove
// that they would be noticed. Without the build tag they do not exist.
const flawDigestIgnored = false
