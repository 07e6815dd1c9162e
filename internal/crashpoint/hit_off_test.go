//go:build !crashpoints

package crashpoint

import "testing"

func TestAProgramThatWasNotBuiltToCrashDoesNot(t *testing.T) {
	t.Setenv(Variable, string(BeforeCommit))
	Hit(BeforeCommit)
}
