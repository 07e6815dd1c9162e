//go:build seededbugs

package cache

import (
	"os"

	"github.com/redis/go-redis/v9"
)

// Mistakes that this package must not make. The environment switches one on.
var (
	// flawNoOwnerToken lets the client send a command again whose reply was
	// lost, and does not know its own mark by its token.
	flawNoOwnerToken = os.Getenv("ONCEGATE_TEST_FLAW") == "no-owner-token"
	// flawReleaseAnybodys deletes the mark of a key whoever wrote it.
	flawReleaseAnybodys = os.Getenv("ONCEGATE_TEST_FLAW") == "release-anybodys"
)

// resend has the client send commands again, as it does by default.
func resend(o *redis.UniversalOptions) {
	if flawNoOwnerToken {
		o.MaxRetries = 3
	}
}
