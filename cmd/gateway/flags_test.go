package main

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// The last of two values is what programs take in silence, and of a list of
// addresses it is seldom meant.
func TestAFlagIsGivenOnce(t *testing.T) {
	t.Parallel()
	in := []string{"ONCEGATE_DATA_DIR=" + t.TempDir()}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"serve", "--redis.addrs=a:1", "--redis.addrs=b:1"}, `"--redis.addrs" flag: it is given twice: the values of a list are separated by commas`},
		{[]string{"serve", "--http.listen=:1", "--http.listen", ":1"}, `"--http.listen" flag: it is given twice`},
		{[]string{"config", "print", "--redis.tls", "--redis.tls=false"}, `"--redis.tls" flag: it is given twice`},
		{[]string{"serve", "-c", "a.yaml", "--config", "b.yaml"}, `"-c, --config" flag: it is given twice`},
		{[]string{"token", "--user", "alice", "--user", "bob"}, `"--user" flag: it is given twice`},
		{[]string{"compact", "--pause=1s", "--pause=1s"}, `"--pause" flag: it is given twice`},
	} {
		code, _, stderr := command(t, in, c.args...)
		require.Equal(t, exitUsage, code, c.args)
		require.Contains(t, stderr, c.says)
	}
	code, stdout, stderr := command(t, in, "token", "--user", "alice", "--scope", "orders", "--scope", "admin.read")
	require.Equal(t, exitOK, code, stderr)
	require.NotEmpty(t, stdout)
	code, stdout, stderr = command(t, in, "config", "print", "--mysql.read_conns=3", "--messages.broker=kafka", "--messages.addrs=a:1,b:1", "--redis.tls=false")
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, "addrs: ['a:1', 'b:1']")
}

// A shell that asks what may come next has the line read twice.
func TestAFlagIsCompletedAfterAnother(t *testing.T) {
	t.Parallel()
	for _, request := range []string{cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd} {
		code, stdout, stderr := command(t, nil, request, "token", "--user", "alice", "--sc")
		require.Equal(t, exitOK, code, stderr)
		require.Contains(t, stdout, "--scope")
	}
}
