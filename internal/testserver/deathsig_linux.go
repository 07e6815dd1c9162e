package testserver

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// dieWithParent has the kernel send s to the child when the thread that starts
// it ends, whatever ends it.
func dieWithParent(attr *syscall.SysProcAttr, s syscall.Signal) {
	attr.Pdeathsig = s
}

// awaitStopped waits until every thread of the process has stopped: SIGSTOP
// takes effect a moment after it is sent, and a server may answer meanwhile.
func awaitStopped(ctx context.Context, pid int) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for {
		stopped, err := allStopped(pid)
		if err != nil {
			return err
		}
		if stopped {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for process %d to stop: %w", pid, ctx.Err())
		}
	}
}

func allStopped(pid int) (bool, error) {
	stats, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/stat")
	if err != nil {
		return false, fmt.Errorf("threads of process %d: %w", pid, err)
	}
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil { // the thread has just ended
			continue
		}
		// "12 (name) S ...": the name may hold anything, even brackets.
		_, state, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
		if !bytes.HasPrefix(state, []byte("T")) {
			return false, nil
		}
	}
	return true, nil
}
