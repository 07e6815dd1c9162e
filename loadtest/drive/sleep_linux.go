package drive

import (
	"syscall"
	"time"
)

// sleepExact blocks the thread: the kernel wakes it within about 60 µs.
func sleepExact(d time.Duration) {
	ts := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&ts, nil) // a signal wakes it early, which is no harm
}
