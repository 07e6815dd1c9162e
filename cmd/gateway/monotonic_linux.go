package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// monotonic is the time of the clock that a service manager compares with.
func monotonic() time.Duration {
	var now unix.Timespec
	// It cannot fail: the clock is there on every Linux (clock_gettime(2)).
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return time.Duration(now.Nano())
}
