//go:build !linux

package drive

import "time"

func sleepExact(d time.Duration) { time.Sleep(d) }
