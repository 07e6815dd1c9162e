//go:build !seededbugs

package cache

import "github.com/redis/go-redis/v9"

// Mistakes that this package must not make, kept so that the tests can prove
// that they would be noticed. Without the build tag they do not exist.
const (
	flawNoOwnerToken    = false
	flawReleaseAnybodys = false
)

func resend(*redis.UniversalOptions) {}
