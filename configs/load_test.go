package configs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// write puts a YAML file into a directory of the test.
func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "oncegate.yaml")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func flags(t *testing.T, args ...string) *pflag.FlagSet {
	t.Helper()
	f := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.String("config", "", "not a setting")
	AddFlags(f)
	require.NoError(t, f.Parse(args))
	return f
}

// faults returns what Load complains of.
func faults(t *testing.T, s Sources) []string {
	t.Helper()
	_, err := Load(s)
	var invalid *InvalidError
	require.ErrorAs(t, err, &invalid)
	return invalid.Faults
}

func TestWithoutSourcesTheDefaultsAreInForce(t *testing.T) {
	t.Parallel()
	l, err := Load(Sources{})
	require.NoError(t, err)
	require.Equal(t, Default(), l.Config)
	require.Empty(t, l.Origins)
}

func TestAFlagBeatsTheEnvironmentBeatsTheFileBeatsTheDefault(t *testing.T) {
	t.Parallel()
	path := write(t, "http: {listen: '127.0.0.1:1', max_in_flight: 1, max_batch_rows: 1}\nrequest_budget: 5s\n")
	l, err := Load(Sources{
		File:    path,
		Environ: []string{"ONCEGATE_HTTP__LISTEN=127.0.0.1:2", "ONCEGATE_HTTP__MAX_IN_FLIGHT=2", "HOME=/"},
		Flags:   flags(t, "--http.listen=127.0.0.1:3", "--redis.tls", "--config=x"),
	})
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:3", l.Config.HTTP.Listen)
	require.Equal(t, 2, l.Config.HTTP.MaxInFlight)
	require.Equal(t, 1, l.Config.HTTP.MaxBatchRows)
	require.Equal(t, 5*time.Second, l.Config.RequestBudget)
	require.True(t, l.Config.Redis.TLS)
	require.Equal(t, map[string]string{
		"http.listen":         "flag --http.listen",
		"http.max_in_flight":  "env ONCEGATE_HTTP__MAX_IN_FLIGHT",
		"http.max_batch_rows": "file " + path,
		"request_budget":      "file " + path,
		"redis.tls":           "flag --redis.tls",
	}, l.Origins)
}

func TestUnknownNamesAreErrorsWithTheNearestName(t *testing.T) {
	t.Parallel()
	path := write(t, "http: {lisen: x}\nredus: {addrs: []}\nmysql: {dsn: {host: x}}\nledger: 5\n")
	got := faults(t, Sources{File: path, Environ: []string{"ONCEGATE_REDIS__ADRS=x", "ONCEGATE_DATADIR=x"}})
	require.ElementsMatch(t, []string{
		"http.lisen (in " + path + ") is not a setting: did you mean http.listen?",
		"redus.addrs (in " + path + ") is not a setting: did you mean redis.addrs?",
		"mysql.dsn.host (in " + path + ") is not a setting",
		"ledger (in " + path + ") is a section: its settings go below it",
		"ONCEGATE_REDIS__ADRS (in the environment) is not a setting: did you mean ONCEGATE_REDIS__ADDRS?",
		"ONCEGATE_DATADIR (in the environment) is not a setting: did you mean ONCEGATE_DATA_DIR?",
	}, got)
}

func TestVariablesOfOthersWithOurPrefixArePassedOver(t *testing.T) {
	t.Parallel()
	_, err := Load(Sources{Environ: []string{
		"ONCEGATE_SERVICE_HOST=10.0.0.1", "ONCEGATE_SERVICE_PORT=80", "ONCEGATE_SERVICE_PORT_HTTP=80",
		"ONCEGATE_PORT=tcp://10.0.0.1:80", "ONCEGATE_PORT_80_TCP=tcp://10.0.0.1:80", "ONCEGATE_PORT_80_TCP_ADDR=10.0.0.1",
		"ONCEGATE_REDIS_MASTER_SERVICE_HOST=10.0.0.2", "ONCEGATE_REDIS_MASTER_SERVICE_PORT=6379", "ONCEGATE_REDIS_MASTER_SERVICE_PORT_TCP_REDIS=6379",
		"ONCEGATE_REDIS_MASTER_PORT=tcp://10.0.0.2:6379", "ONCEGATE_REDIS_MASTER_PORT_6379_TCP_PROTO=tcp", "ONCEGATE_MYSQL_PORT_3306_TCP=tcp://10.0.0.3:3306",
		"ONCEGATE_CONFIG=x.yaml", "ONCEGATE_TEST_MYSQL_DSN=x", "ONCEGATE_HTTP__LISTEN=",
	}})
	require.NoError(t, err)
	require.Len(t, faults(t, Sources{Environ: []string{
		"ONCEGATE_PORT=8080", "ONCEGATE_REDIS_PORT=6379", "ONCEGATE_REDIS_HOST=redis", "ONCEGATE_SERVICE=x", "ONCEGATE_REDIS__PORT_6379=x",
		"ONCEGATE_HTTP__SERVICE_PORT=80", "ONCEGATE_REDIS__SERVICE_HOST=redis", "ONCEGATE_REDIS__PORT=tcp://redis:6379", "ONCEGATE_REDIS__PORT_6379_TCP=x",
	}}), 9)
}

func TestASecretFileIsReadWithoutItsLineEnd(t *testing.T) {
	t.Parallel()
	path := write(t, "0123456789abcdef0123456789abcdef\r\n")
	l, err := Load(Sources{Environ: []string{"ONCEGATE_AUTH__HS256_SECRET_FILE=" + path}})
	require.NoError(t, err)
	require.Equal(t, "0123456789abcdef0123456789abcdef", l.Config.Auth.HS256Secret.Reveal())
	require.Equal(t, "env ONCEGATE_AUTH__HS256_SECRET_FILE", l.Origins["auth.hs256_secret"])
}

func TestASecretFileThatCannotServeIsAnError(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing")
	empty, large := write(t, "\n"), write(t, strings.Repeat("x", maxSecretFile+1))
	require.ElementsMatch(t, []string{
		"ONCEGATE_AUTH__HS256_SECRET_FILE: open " + missing + ": no such file or directory",
		"ONCEGATE_CACHE__MAC_KEY_FILE: " + empty + " is empty",
		"ONCEGATE_REDIS__PASSWORD_FILE: " + large + " is larger than 64KiB",
		"ONCEGATE_HTTP__LISTEN_FILE (in the environment) is not a setting: did you mean ONCEGATE_HTTP__LISTEN?",
	}, faults(t, Sources{Environ: []string{
		"ONCEGATE_AUTH__HS256_SECRET_FILE=" + missing,
		"ONCEGATE_CACHE__MAC_KEY_FILE=" + empty,
		"ONCEGATE_REDIS__PASSWORD_FILE=" + large,
		"ONCEGATE_HTTP__LISTEN_FILE=" + empty,
	}}))
}

// Whoever puts a secret where a path belongs does not find it in the log.
func TestWhatIsNoPathIsNotQuoted(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{
		"app:hunter2@tcp(db:3306)/shop", "hunter2", "whsec_hunter2", strings.Repeat("hunter2", 1000), "hunter2\x00",
	} {
		found := faults(t, Sources{Environ: []string{"ONCEGATE_MYSQL__DSN_FILE=" + secret}})
		require.Len(t, found, 1)
		require.Contains(t, found[0], "ONCEGATE_MYSQL__DSN_FILE: names a file that cannot be opened: ")
		require.NotContains(t, found[0], "hunter2")
	}
	require.Equal(t, []string{"ONCEGATE_MYSQL__DSN_FILE: open ./secrets/dsn: no such file or directory"},
		faults(t, Sources{Environ: []string{"ONCEGATE_MYSQL__DSN_FILE=./secrets/dsn"}}))
}

func TestASecretGivenTwiceIsAnError(t *testing.T) {
	t.Parallel()
	path := write(t, "0123456789abcdef")
	require.Equal(t, []string{"ONCEGATE_CACHE__MAC_KEY and ONCEGATE_CACHE__MAC_KEY_FILE are both set: keep one"},
		faults(t, Sources{Environ: []string{"ONCEGATE_CACHE__MAC_KEY_FILE=" + path, "ONCEGATE_CACHE__MAC_KEY=0123456789abcdef"}}))
}

func TestSecretsHaveNoFlags(t *testing.T) {
	t.Parallel()
	f := flags(t)
	c := Default()
	for l := range leaves(&c) {
		require.Equal(t, l.isSecret(), f.Lookup(l.name) == nil, l.name)
	}
}

func TestAValueOfTheWrongTypeIsAnErrorThatNamesItsSource(t *testing.T) {
	t.Parallel()
	path := write(t, `
http: {listen: 8080, max_in_flight: 1.5, max_order_body: 3KB}
redis: {addrs: [1], tls: "yes", op_timeout: 50, password: 12345}
limits: {rate: .nan}
users: {provision_balance: 10.0}
`)
	in := " (file " + path + ") "
	require.Equal(t, []string{
		"http.listen" + in + "must be a text: put it in quotes",
		"http.max_order_body" + in + "must be a number of bytes, such as 16384, 16KiB or 1MiB",
		"http.max_in_flight" + in + "must be a whole number",
		"redis.addrs" + in + "must be a list of texts",
		"redis.password" + in + "must be a text: put it in quotes",
		"redis.tls" + in + "must be true or false",
		"redis.op_timeout" + in + "must be a duration with a unit, such as 50ms, 10s or 30d",
		"limits.rate" + in + "must be a number",
		"users.provision_balance" + in + "must be a text: put it in quotes",
	}, faults(t, Sources{File: path}))
}

func TestAFileIsOneDocumentWithoutDuplicates(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"two documents": "data_dir: a\n---\ndata_dir: b\n",
		"duplicates":    "data_dir: a\ndata_dir: b\n",
		"a list":        "- a\n",
		"no YAML":       "\t:",
	} {
		_, err := Load(Sources{File: write(t, content)})
		require.Error(t, err, name)
	}
	for name, content := range map[string]string{
		"empty": "", "comment": "# nothing\n", "empty section": "http:\nredis: {}\nledger: {queue: }\n",
	} {
		l, err := Load(Sources{File: write(t, content)})
		require.NoError(t, err, name)
		require.Equal(t, Default(), l.Config, name)
		require.Empty(t, l.Origins, name)
	}
}

func TestADottedNameIsTheNestedOne(t *testing.T) {
	t.Parallel()
	l, err := Load(Sources{
		File:    write(t, "http.listen: 127.0.0.1:1\nhttp: {max_in_flight: 1}\n"),
		Environ: []string{"ONCEGATE_HTTP__MAX_BATCH_ROWS=7"},
	})
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:1", l.Config.HTTP.Listen)
	require.Equal(t, 1, l.Config.HTTP.MaxInFlight)
	require.Equal(t, 7, l.Config.HTTP.MaxBatchRows)
}

func TestEverySettingCanBeGivenByTheEnvironment(t *testing.T) {
	t.Parallel()
	c := Default()
	for l := range leaves(&c) {
		value := l.text()
		if value == "" {
			value = "x"
		}
		loaded, err := Load(Sources{Environ: []string{l.env() + "=" + value}})
		if err != nil {
			var invalid *InvalidError
			require.ErrorAs(t, err, &invalid)
			for _, fault := range invalid.Faults {
				require.NotContains(t, fault, "is not a setting")
			}
			continue
		}
		require.Equal(t, "env "+l.env(), loaded.Origins[l.name])
	}
}

func TestEverySettingIsNamedAndDocumented(t *testing.T) {
	t.Parallel()
	c := Default()
	seen := map[string]bool{}
	for l := range leaves(&c) {
		require.Regexp(t, `^[a-z0-9_]+(\.[a-z0-9_]+)?$`, l.name)
		require.NotEmpty(t, l.doc, l.name)
		require.False(t, seen[l.env()], l.name)
		seen[l.env()] = true
	}
}

func FuzzLoadYAML(f *testing.F) {
	for _, name := range samples {
		content, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(content)
	}
	f.Add([]byte("http: {listen: 1}\n---\n"))
	f.Add([]byte("a.b: {c: [1]}\n? {x: y}\n: z\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		l := newLoader()
		if err := l.addYAML("fuzz.yaml", content); err != nil {
			return
		}
		if loaded, err := l.finish(); err == nil {
			require.NoError(t, loaded.Config.Validate())
		}
	})
}
