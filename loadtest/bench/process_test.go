//go:build unix

package bench

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProgramThatDoesNotStartSaysWhy(t *testing.T) {
	t.Parallel()
	p, err := spawn(exec.Command("sh", "-c", "echo the port is taken >&2; exit 3"))
	require.NoError(t, err)
	err = p.awaitReady(t.Context(), "127.0.0.1:1")
	require.ErrorContains(t, err, "the port is taken")
	require.ErrorContains(t, err, "exit status 3")
	require.ErrorContains(t, p.stop(), "did not end well")

	_, err = spawn(exec.Command("/nowhere/oncegate"))
	require.ErrorContains(t, err, "start oncegate")
}

func TestStoppedProgramIsGone(t *testing.T) {
	t.Parallel()
	p, err := spawn(exec.Command("sh", "-c", "trap 'exit 0' TERM; echo up; while :; do read line; done"))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return p.log.String() == "up" }, testPatience, testTick)
	require.NoError(t, p.stop())
	require.ErrorIs(t, syscall.Kill(p.cmd.Process.Pid, 0), syscall.ESRCH)
}

func TestTailKeepsTheEnd(t *testing.T) {
	t.Parallel()
	var log tail
	for range 3 {
		_, err := log.Write([]byte(strings.Repeat("a", tailBytes/2)))
		require.NoError(t, err)
	}
	_, err := log.Write([]byte("last words\n"))
	require.NoError(t, err)
	require.Len(t, log.text, tailBytes)
	require.True(t, strings.HasSuffix(log.String(), "last words"))
}
