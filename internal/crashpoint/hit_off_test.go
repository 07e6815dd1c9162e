//go:build !crashpoints

package crashpoint

import "testing"

func TestAProgramThatWasNotBuiltToCrashDoesNot(t *testing.T) {
	t.Setenv(Variable, string(BeforeCommit))
	t.Setenv(FreezeVariable, string(AfterCommit))
	Hit(BeforeCommit)
	Hit(AfterCommit)
}
