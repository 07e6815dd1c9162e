package configs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDurationsAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	for text, d := range map[string]time.Duration{
		"0s": 0, "50ms": 50 * time.Millisecond, "1.5s": 1500 * time.Millisecond, "10s": 10 * time.Second,
		"1m": time.Minute, "1m30s": 90 * time.Second, "1h": time.Hour, "1h0m5s": time.Hour + 5*time.Second,
		"1d": day, "30d": 30 * day,
	} {
		got, err := ParseDuration(text)
		require.NoError(t, err, text)
		require.Equal(t, d, got)
		require.Equal(t, text, FormatDuration(d))
	}
	for _, text := range []string{"", "5", "1.5d", "-1d", "+1d", "d", "1w", "1h30", "-9999999h", "99999999999999999999"} {
		_, err := ParseDuration(text)
		require.ErrorIs(t, err, errDuration, text)
	}
	for _, text := range []string{"106752d", "4294967295d", "4294967296d", "99999999999999999999d", "9999999h", "2562047h47m16.854775807s", "1h9223372036854775807s"} {
		_, err := ParseDuration(text)
		require.ErrorIs(t, err, errLong, text)
	}
}

func TestSizesAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	for text, n := range map[string]Size{"0": 0, "1000": 1000, "16KiB": 16 << 10, "1MiB": 1 << 20, "2GiB": 2 << 30} {
		got, err := ParseSize(text)
		require.NoError(t, err, text)
		require.Equal(t, n, got)
		require.Equal(t, text, n.String())
	}
	for _, text := range []string{"", "-1", "1.5MiB", "1MB", "KiB", "+1", "99999999999999999999B"} {
		_, err := ParseSize(text)
		require.ErrorIs(t, err, errSize, text)
	}
	for _, text := range []string{"9223372036854775807KiB", "99999999999999999999", "99999999999999999999GiB"} {
		_, err := ParseSize(text)
		require.ErrorIs(t, err, errLarge, text)
	}
}

func FuzzParseDuration(f *testing.F) {
	f.Add("30d")
	f.Add("1h0m5s")
	f.Add("-24h")
	f.Add("2562047h47m16.854775807s")
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseDuration(s)
		if err != nil {
			return
		}
		again, err := ParseDuration(FormatDuration(d))
		require.NoError(t, err)
		require.Equal(t, d, again)
	})
}
