package testserver

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A Go program reads the clock by a function that the kernel has put into its
// memory, the vDSO. No library is between them that could be replaced, so the
// function is, in this one process: it jumps to these instructions, which stand in
// the unused end of the vDSO's last page, and behind them the seconds to be added.
// The program itself is the one that is shipped.
const (
	clockFunction = "__vdso_clock_gettime"   // of amd64
	clockCode     = "\xb8\xe4\x00\x00\x00" + // mov  $228, %eax     clock_gettime
		"\x0f\x05" + // syscall
		"\x85\xff" + // test %edi, %edi
		"\x75\x0a" + // jne  ret                not the wall clock
		"\x48\x8b\x0d\x0e\x00\x00\x00" + // mov  offset(%rip), %rcx
		"\x48\x01\x0e" + // add  %rcx, (%rsi)   the seconds
		"\xc3" + // ret
		"\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
	offsetAt  = len(clockCode) // a multiple of eight: it changes at once
	caveSize  = 64
	jumpSize  = 5 // of a jump to the cave
	stopTries = 100
)

// ProgramClock is the wall clock of one running Go program: the machine's, moved.
// The monotonic clock, by which time-outs run, is left alone. Its functions must
// not be called at the same time.
type ProgramClock struct {
	memory *os.File // of the process
	offset int64    // address of the seconds
}

// NewProgramClock gives a running program a clock of its own, which shows the
// machine's time. The process is stopped for a moment, and must not be stopped by
// anybody else meanwhile. Where it cannot be, the error says so as [Excused]
// expects; a process that has ended gives [os.ErrProcessDone].
func NewProgramClock(pid int) (c *ProgramClock, err error) {
	if runtime.GOARCH != "amd64" {
		return nil, fmt.Errorf("a clock of a program: %w: on %s", ErrForbidden, runtime.GOARCH)
	}
	memory, err := os.OpenFile(taskFile(pid, "mem"), os.O_RDWR, 0)
	if err != nil {
		return nil, clockError(err)
	}
	defer func() {
		if err != nil {
			err = clockError(errors.Join(err, memory.Close()))
		}
	}()
	page, err := vdso(pid)
	if err != nil {
		return nil, err
	}
	function, cave, err := page.read(memory)
	if err != nil {
		return nil, err
	}
	// Nobody runs these yet.
	code := binary.LittleEndian.AppendUint64([]byte(clockCode), 0)
	if _, err := memory.WriteAt(code, cave); err != nil {
		return nil, err
	}
	jump := binary.LittleEndian.AppendUint32([]byte{0xe9}, uint32(cave-function-jumpSize)) //nolint:gosec // the distance within a page or two
	err = stopped(pid, func(counters []int64) (done bool, err error) {
		for _, at := range counters {
			if at > function && at < function+jumpSize {
				return false, nil
			}
		}
		_, err = memory.WriteAt(jump, function)
		return true, err
	})
	if err != nil {
		return nil, err
	}
	return &ProgramClock{memory, cave + int64(offsetAt)}, nil
}

// Move puts the clock so far before the machine's, or behind it, in whole seconds.
// It takes effect at once. A process that has ended gives [os.ErrProcessDone].
func (c *ProgramClock) Move(by time.Duration) error {
	seconds := binary.LittleEndian.AppendUint64(nil, uint64(by/time.Second)) //nolint:gosec // its bits, signed again on the other side
	_, err := c.memory.WriteAt(seconds, c.offset)
	return clockError(err)
}

// Close lets go of the process. Its clock stays as it is.
func (c *ProgramClock) Close() error { return c.memory.Close() }

func clockError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESRCH), errors.Is(err, io.ErrUnexpectedEOF): // its memory is gone
		return fmt.Errorf("a clock of a program: %w: %w", os.ErrProcessDone, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("a clock of a program: %w: %w", ErrForbidden, err)
	default:
		return fmt.Errorf("a clock of a program: %w", err)
	}
}

// span is a part of a process's memory.
type span struct{ from, to int64 }

// vdso finds the vDSO of a process.
func vdso(pid int) (s span, err error) {
	maps, err := os.ReadFile(taskFile(pid, "maps"))
	if err != nil {
		return s, err
	}
	for line := range strings.Lines(string(maps)) {
		if strings.HasSuffix(line, "[vdso]\n") {
			_, err = fmt.Sscanf(line, "%x-%x", &s.from, &s.to)
			return s, err
		}
	}
	if len(maps) == 0 {
		return s, os.ErrProcessDone
	}
	return s, fmt.Errorf("%w: the kernel gives programs no vDSO", ErrForbidden)
}

// read finds the function that tells the time, and room for another.
func (s span) read(memory io.ReaderAt) (function, cave int64, err error) {
	image := make([]byte, s.to-s.from)
	if _, err := memory.ReadAt(image, s.from); err != nil {
		return 0, 0, err
	}
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return 0, 0, err
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return 0, 0, err
	}
	for _, symbol := range symbols {
		if symbol.Name == clockFunction {
			function = s.from + int64(symbol.Value) //nolint:gosec // within the page
		}
	}
	if function == 0 {
		return 0, 0, fmt.Errorf("%w: the vDSO has no %s", ErrForbidden, clockFunction)
	}
	if tail := image[len(image)-caveSize:]; !bytes.Equal(tail, make([]byte, caveSize)) {
		return 0, 0, fmt.Errorf("%w: the end of the vDSO is not empty", ErrForbidden)
	}
	return function, s.to - caveSize, nil
}

// stopped stops a process and tells at which instructions its threads are, until
// the work is done.
func stopped(pid int, work func(counters []int64) (done bool, err error)) error {
	for range stopTries {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			return err
		}
		counters, err := atRest(pid)
		done := false
		if err == nil {
			done, err = work(counters)
		}
		if err = errors.Join(err, syscall.Kill(pid, syscall.SIGCONT)); err != nil || done {
			return err
		}
	}
	return errors.New("a thread is always in the function to be replaced")
}

// atRest waits until all threads of a process that is being stopped have, and
// returns where they are.
func atRest(pid int) ([]int64, error) {
	ticker, patience := time.NewTicker(time.Millisecond), time.After(30*time.Second)
	defer ticker.Stop()
	for {
		counters, err := programCounters(pid)
		if err != nil || counters != nil {
			return counters, err
		}
		select {
		case <-ticker.C:
		case <-patience:
			return nil, fmt.Errorf("process %d does not stop", pid)
		}
	}
}

// programCounters tells where the threads of a process are, and nothing while one
// of them runs.
func programCounters(pid int) (counters []int64, err error) {
	threads, err := filepath.Glob(taskFile(pid, "task/*"))
	if err != nil {
		return nil, err
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(filepath.Join(thread, "stat"))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil // it has ended meanwhile
		case err != nil:
			return nil, err
		}
		// The state follows the name, which may hold anything.
		if _, state, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')'):], []byte(" ")); state[0] != 'T' {
			return nil, nil
		}
		where, err := os.ReadFile(filepath.Join(thread, "syscall"))
		if err != nil {
			return nil, err
		}
		words := strings.Fields(string(where))
		at, err := strconv.ParseInt(words[len(words)-1], 0, 64)
		if err != nil {
			return nil, nil //nolint:nilerr // "running"
		}
		counters = append(counters, at)
	}
	return counters, nil
}

func taskFile(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}
