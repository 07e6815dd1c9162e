//go:build unix

package testserver

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOutputIsReadWhileAProcessWritesIt(t *testing.T) {
	t.Parallel()
	var out Output
	writing := exec.CommandContext(t.Context(), "cat")
	writing.Stdout = &out
	in, err := writing.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, writing.Start())
	for i := range 50 {
		_, err := fmt.Fprintln(in, i)
		require.NoError(t, err)
		// The race detector notices a buffer that has no lock.
		require.LessOrEqual(t, len(out.String()), 150)
	}
	require.NoError(t, in.Close())
	require.NoError(t, writing.Wait())
	require.Equal(t, "48\n49", out.Tail(2))
}

func TestOutputKeepsItsEnd(t *testing.T) {
	t.Parallel()
	var out Output
	line := []byte(strings.Repeat("x", 1<<16) + "\n")
	for range 100 {
		_, err := out.Write(line)
		require.NoError(t, err)
	}
	_, err := out.Write([]byte("the end\n"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(out.String()), keptOutput)
	require.Less(t, len(out.String()), 3*keptOutput)
	require.Equal(t, "the end", out.Tail(1))
}
