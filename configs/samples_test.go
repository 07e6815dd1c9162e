package configs

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A file that gives a setting keeps it from being changed while a gateway runs:
// a sample gives those only that it means to be another.
func TestSamplesPinNoSettingToItsDefault(t *testing.T) {
	t.Parallel()
	for _, sample := range samples {
		loaded, err := Load(Sources{File: sample, Environ: sampleEnv[sample]})
		require.NoError(t, err, sample)
		for _, s := range loaded.Settings() {
			require.False(t, s.Live && s.Pinned && s.Value == s.Default, "%s gives %s what it has anyway, %s, and so pins it", sample, s.Name, s.Value)
		}
	}
}
