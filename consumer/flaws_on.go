//go:build seededbugs

package consumer

import "os"

// flawAcknowledgedFirst acknowledges a message before its effect is committed.
var flawAcknowledgedFirst = os.Getenv("ONCEGATE_TEST_FLAW") == "acknowledged-first"
