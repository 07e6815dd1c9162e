//go:build unix && !linux

package testserver

import (
	"context"
	"syscall"
)

// dieWithParent does nothing: only Linux can. A killed test process leaves its
// servers behind here.
func dieWithParent(*syscall.SysProcAttr, syscall.Signal) {}

// awaitStopped does not wait: only Linux shows the state of threads.
func awaitStopped(context.Context, int) error { return nil }
