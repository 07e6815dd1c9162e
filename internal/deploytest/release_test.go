package deploytest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

func TestAReleaseFindsItsFiles(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, ".goreleaser.yaml"))
	require.NoError(t, err)
	var release struct {
		Builds []struct {
			Main  string
			Flags []string
		}
		Archives []struct{ Files []string }
		NFPMs    []struct {
			Bindir   string
			Contents []struct{ Src, Dst string }
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &release))
	wanted := release.Archives[0].Files
	for _, build := range release.Builds {
		wanted = append(wanted, filepath.Join(build.Main, "main.go"))
		require.Contains(t, build.Flags, "-buildvcs=true", "a binary of a release says which commit it is of")
	}
	for _, content := range release.NFPMs[0].Contents {
		if content.Src != "" {
			wanted = append(wanted, content.Src)
		}
	}
	require.Greater(t, len(wanted), 6)
	for _, pattern := range wanted {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
	}
	_, values := unit(t)
	require.Contains(t, values["ExecStart"][0], release.NFPMs[0].Bindir+"/oncegate ", "the unit starts what the package installs")
}
