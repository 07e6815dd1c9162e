//go:build !seededbugs

package store

// Mistakes that this package must not make, kept so that the tests can prove
// that they would be noticed. Without the build tag they do not exist.
const (
	flawPlainReread         = false
	flawStatementAfterError = false
	flawExpiredKeyIsNew     = false
)

func (w *worker) plainReread(*pending) {}

func (w *worker) answerEarly([]*pending, []outcome) {}

func lateLock(forUpdate string) string { return forUpdate }

func (t *transaction) forgetKeys([]pair) error { return nil }
