package configs

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// samples are the files beside this one, and what production needs beside them.
var (
	samples   = []string{"embedded.yaml", "production.yaml", "sentinel.yaml", "cluster.yaml"}
	sampleEnv = map[string][]string{
		"production.yaml": {"ONCEGATE_MYSQL__DSN=" + someDSN, "ONCEGATE_CACHE__MAC_KEY=0123456789abcdef", "ONCEGATE_REDIS__PASSWORD=p"},
		"sentinel.yaml": {
			"ONCEGATE_MYSQL__DSN=" + someDSN, "ONCEGATE_CACHE__MAC_KEY=0123456789abcdef", "ONCEGATE_AUTH__HS256_SECRET=" + someSecret,
			"ONCEGATE_REDIS__SENTINEL_PASSWORD=p",
		},
		"cluster.yaml": {"ONCEGATE_MYSQL__DSN=" + someDSN, "ONCEGATE_CACHE__MAC_KEY=0123456789abcdef", "ONCEGATE_AUTH__HS256_SECRET=" + someSecret},
	}
)

func TestEverySampleFileIsValid(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	var found []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".yaml") {
			found = append(found, e.Name())
		}
	}
	require.ElementsMatch(t, samples, found)
	for _, name := range samples {
		_, err := Load(Sources{File: name, Environ: sampleEnv[name]})
		require.NoError(t, err, name)
	}
}

func TestPrintNamesTheOriginAndMasksSecrets(t *testing.T) {
	t.Parallel()
	l, err := Load(Sources{
		File:    "production.yaml",
		Environ: append([]string{"ONCEGATE_HTTP__LISTEN=127.0.0.1:0"}, sampleEnv["production.yaml"]...),
	})
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, l.Print(&out, true))
	require.Contains(t, out.String(), "  listen: 127.0.0.1:0  # env ONCEGATE_HTTP__LISTEN\n")
	require.Contains(t, out.String(), "  dsn: '[redacted]'  # env ONCEGATE_MYSQL__DSN\n")
	require.Contains(t, out.String(), "  addrs: ['redis:6379']  # file production.yaml\n")
	require.Contains(t, out.String(), "max_wait: 10s  # default\n")
	require.NotContains(t, out.String(), "hunter2")
}

func TestWhatIsPrintedCanBeLoaded(t *testing.T) {
	t.Parallel()
	l, err := Load(Sources{File: "embedded.yaml"})
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, l.Print(&out, false))
	again, err := Load(Sources{File: write(t, out.String())})
	require.NoError(t, err, out.String())
	require.Equal(t, l.Config, again.Config)
}

func TestANearNameIsSuggested(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"ttl.reciept": "ttl.receipt", "ttl_receipt": "ttl.receipt", "log.lvel": "log.level", "ttl.receipt": "ttl.receipt",
		"nothing.of.the.kind": "", "": "", strings.Repeat("ttl.receipt", 1000): "",
	} {
		require.Equal(t, want, NearestSetting(name), name)
	}
}

func TestTheManualHasTheTableOfEverySetting(t *testing.T) {
	t.Parallel()
	var table bytes.Buffer
	require.NoError(t, WriteReference(&table))
	manual, err := os.ReadFile("../docs/operating.md")
	require.NoError(t, err)
	require.Contains(t, string(manual), table.String(),
		"docs/operating.md is behind: put the output of 'oncegate config print --markdown' into it")
}
