//go:build seededbugs

package order

import "os"

// flawDigestIgnored replays the answer of a key to whoever sends the key,
// whatever else was sent.
var flawDigestIgnored = os.Getenv("ONCEGATE_TEST_FLAW") == "digest-ignored"
