package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A unit whose commands are not understood starts nothing.
func TestTheCommandsOfTheSystemdUnitAreUnderstood(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/systemd/oncegate.service")
	require.NoError(t, err)
	commands := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if arguments, ours := strings.CutPrefix(value, "/usr/bin/oncegate "); ok && ours {
			commands[name] = strings.Fields(strings.ReplaceAll(arguments, "/etc/oncegate/oncegate.yaml", "../../configs/embedded.yaml"))
		}
	}
	require.Contains(t, commands, "ExecStart")
	require.Contains(t, commands, "ExecStartPre")

	code, _, stderr := command(t, nil, commands["ExecStartPre"]...)
	require.Equal(t, exitOK, code, stderr)
	code, _, stderr = command(t, nil, append(commands["ExecStart"], "--help")...)
	require.Equal(t, exitOK, code, stderr)
	code, _, _ = command(t, nil, append(commands["ExecStart"], "--of-no-use", "--help")...)
	require.Equal(t, exitUsage, code, "help would hide a flag that is not understood")
}
