package configs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzParseSize: what is read is written, and read, as the same number.
func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"16384", "16KiB", "1MiB", "0", "007", "8589934591GiB", "9999999999GiB", "KiB", "1 KiB", "-1", "+1", "1_0", "1KiBKiB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseSize(s)
		if err != nil {
			require.Zero(t, n)
			return
		}
		require.GreaterOrEqual(t, n, Size(0))
		again, err := ParseSize(n.String())
		require.NoError(t, err)
		require.Equal(t, n, again)
	})
}

// FuzzEnvironment: a variable that passes sets the setting that has its name, to
// something valid, and nothing else; one that does not is named, and the value of
// a secret is in no fault.
func FuzzEnvironment(f *testing.F) {
	const password = "hunter2"
	for _, v := range [][2]string{
		{"HTTP__LISTEN", "127.0.0.1:1"},
		{"TTL__RECEIPT", "48h"},
		{"LIMITS__RATE", "1e3"},
		{"REDIS__ADDRS", "a:1, b:2"},
		{"HTTP__LISTENS", "x"},
		{"AUTH__HS256_SECRET", "short"},
		{"MYSQL__DSN", "u:" + password + "@tcp(db)/shop"},
		{"MYSQL__DSN", password},
		{"MYSQL__DSN", "u:" + password + "/@tcp(db/shop?x"},
		{"WEBHOOKS__SECRET", password},
		{"MESSAGES__AMQP_URI", "amqp://u:" + password + "@h:x/%"},
		{"HTTP.LISTEN", "x"},
		{"http__listen", "x"},
		{"MYSQL__DSN_FILE_FILE", "x"},
		{"", "x"},
		{"LEDGER__WORKERS", "010"},
	} {
		f.Add(v[0], v[1])
	}
	known := Default()
	secrets := map[string]bool{}
	for l := range leaves(&known) {
		if l.isSecret() {
			secrets[l.env()] = true
		}
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		if strings.HasSuffix(name, fileSuffix) {
			return // the path is the operator's, and not to be opened here
		}
		variable := envPrefix + name
		loaded, err := Load(Sources{Environ: []string{variable + "=" + value}})
		if err != nil {
			if secrets[variable] && strings.Contains(value, password) {
				require.NotContains(t, err.Error(), password)
			}
			return
		}
		require.NoError(t, loaded.Config.Validate())
		for setting, origin := range loaded.Origins {
			if origin == "env "+variable {
				require.Equal(t, settingName(variable), setting)
			}
		}
	})
}
