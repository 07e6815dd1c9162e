package order

import "context"

// Deferrals accept commands that are carried out later (Prefer:
// respond-async). Safe for concurrent use.
type Deferrals interface {
	// Accept commits the command as Processing, together with its content, or
	// finds that its key is recorded already. The decision's kind is InProgress
	// when it will be (or is being) carried out, otherwise Replayed or Reused.
	// Errors are those of [Ledger.Decide].
	Accept(ctx context.Context, c *Command) (Decision, error)
}
