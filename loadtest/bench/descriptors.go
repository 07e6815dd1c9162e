//go:build unix

package bench

import (
	"fmt"
	"syscall"
)

// spareDescriptors are for all that is no connection of a measurement.
const spareDescriptors = 200

// allowDescriptors makes room for so many connections in this process, and in
// those that it starts from now on. A program in Go takes what its hard limit
// allows by itself; where that is too low, only an administrator may raise it.
func allowDescriptors(connections int) error {
	need := connections + spareDescriptors
	var have syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &have); err != nil {
		return fmt.Errorf("ask for the limit of open files: %w", err)
	}
	want := have
	want.Cur, want.Max = atLeast(have.Cur, need), atLeast(have.Max, need)
	if want == have {
		return nil
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &want); err != nil {
		return fmt.Errorf("%d connections need %d open files, the hard limit (ulimit -Hn) is %d: %w", connections, need, have.Max, err)
	}
	return nil
}

// atLeast is for limits, which are signed on some systems.
func atLeast[T int64 | uint64](have T, need int) T { return max(have, T(need)) }
