package testserver

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// clockEnv makes the test below play the program whose clock is moved.
const clockEnv = "ONCEGATE_TESTSERVER_CLOCK"

func TestAProgramGoesByItsOwnClock(t *testing.T) {
	t.Parallel()
	if os.Getenv(clockEnv) != "" {
		tellTheTime()
		return
	}
	self, err := os.Executable()
	require.NoError(t, err)
	child := exec.CommandContext(t.Context(), self, "-test.run=^TestAProgramGoesByItsOwnClock$")
	child.Env = append(os.Environ(), clockEnv+"=1")
	asked, err := child.StdinPipe()
	require.NoError(t, err)
	told, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	answers := bufio.NewReader(told)
	// ask returns by how much the program's clock is off, at least and at most, and
	// how long it says that it has run.
	ask := func() (least, most, ran time.Duration) {
		before := time.Now()
		_, err := fmt.Fprintln(asked)
		require.NoError(t, err)
		var wall int64
		_, err = fmt.Fscanln(answers, &wall, &ran)
		require.NoError(t, err)
		now := time.Unix(0, wall)
		return now.Sub(time.Now().Round(0)), now.Sub(before.Round(0)), ran
	}
	_, _, last := ask() // it has begun

	clock, err := NewProgramClock(child.Process.Pid)
	Demand(t, err)
	for _, by := range []time.Duration{0, time.Minute, -25 * time.Hour, 25 * time.Hour, -time.Second, 0} {
		require.NoError(t, clock.Move(by))
		least, most, ran := ask()
		require.LessOrEqual(t, least, by)
		require.GreaterOrEqual(t, most, by)
		require.GreaterOrEqual(t, ran, last, "the monotonic clock does not go back")
		require.Less(t, ran, time.Hour, "and does not jump")
		last = ran
	}
	require.NoError(t, asked.Close())
	require.NoError(t, child.Wait())
	require.ErrorIs(t, clock.Move(time.Hour), os.ErrProcessDone)
	require.NoError(t, clock.Close())
	_, err = NewProgramClock(child.Process.Pid)
	require.ErrorIs(t, err, os.ErrProcessDone)
}

// The layout of the vDSO is the kernel's: another one is no fault of the program.
func TestAKernelWithAnotherVDSOIsExcused(t *testing.T) {
	t.Parallel()
	where, err := vdso(os.Getpid())
	Demand(t, err)
	memory, err := os.Open(taskFile(os.Getpid(), "mem"))
	require.NoError(t, err)
	defer func() { require.NoError(t, memory.Close()) }()
	image := make([]byte, where.to-where.from)
	_, err = memory.ReadAt(image, where.from)
	require.NoError(t, err)
	where = span{0, int64(len(image))}
	_, _, err = where.read(bytes.NewReader(bytes.ReplaceAll(image, []byte(clockFunction), []byte("__vdso_of_anotherone"))))
	require.ErrorIs(t, err, ErrForbidden)
	image[len(image)-1] = 1
	_, _, err = where.read(bytes.NewReader(image))
	require.ErrorIs(t, err, ErrForbidden)
}

// tellTheTime tells it once per line, while others look at the clock all the time,
// and are interrupted.
func tellTheTime() {
	started := time.Now()
	var over atomic.Bool
	var looking sync.WaitGroup
	for range 4 {
		looking.Go(func() {
			for !over.Load() {
				_ = time.Now()
			}
		})
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Fprintln(os.Stdout, time.Now().UnixNano(), int64(time.Since(started)))
	}
	over.Store(true)
	looking.Wait()
}
