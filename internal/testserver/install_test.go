//go:build unix

package testserver

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPolicyAgainstServicesIsRemovedAfterwards(t *testing.T) {
	t.Parallel()
	policy := filepath.Join(t.TempDir(), "policy-rc.d")
	allow, err := forbidServices(policy)
	require.NoError(t, err)
	require.FileExists(t, policy)
	require.ErrorContains(t, run(confined(t.Context(), "", policy)), "exit status 101")
	require.NoError(t, allow())
	require.NoFileExists(t, policy)
}

func TestPolicyOfTheMachineIsLeftAlone(t *testing.T) {
	t.Parallel()
	policy := filepath.Join(t.TempDir(), "policy-rc.d")
	require.NoError(t, os.WriteFile(policy, []byte("theirs"), 0o600))
	allow, err := forbidServices(policy)
	require.NoError(t, err)
	require.NoError(t, allow())
	content, err := os.ReadFile(policy)
	require.NoError(t, err)
	require.Equal(t, "theirs", string(content))
}
