package deploytest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/internal/testserver"
)

const root = "../.."

// secrets are what an operator puts into files.
var secrets = map[string]string{
	"mysql_dsn": "oncegate:secret@tcp(db.example.com:3306)/oncegate",
	"mac_key":   strings.Repeat("m", 64),
}

func writeSecrets(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, content := range secrets {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o400))
	}
	return dir
}

// unit returns the values of every setting of the unit, in order.
func unit(t *testing.T) (text string, values map[string][]string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "deploy/systemd/oncegate.service"))
	require.NoError(t, err)
	values = map[string][]string{}
	for line := range strings.Lines(string(content)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(line, "#") {
			values[name] = append(values[name], value)
		}
	}
	return string(content), values
}

func TestTheUnitFitsTheSettingsOfProduction(t *testing.T) {
	t.Parallel()
	_, values := unit(t)
	dir := writeSecrets(t)
	var environment []string
	for _, e := range values["Environment"] {
		environment = append(environment, strings.ReplaceAll(e, "%d", dir))
	}
	loaded, err := configs.Load(configs.Sources{File: filepath.Join(root, "configs/production.yaml"), Environ: environment})
	require.NoError(t, err)
	require.Equal(t, secrets["mysql_dsn"], loaded.Config.MySQL.DSN.Reveal())
	require.True(t, loaded.Config.Cache.MACKey.IsSet())

	for _, credential := range values["LoadCredential"] {
		name, _, ok := strings.Cut(credential, ":")
		require.True(t, ok)
		require.Contains(t, secrets, name)
	}
	require.Len(t, values["LoadCredential"], len(secrets))

	seconds := func(name string) time.Duration {
		d, err := time.ParseDuration(values[name][0])
		require.NoError(t, err, name)
		return d
	}
	require.Greater(t, seconds("TimeoutStopSec"), loaded.Config.ShutdownGrace)
	require.Greater(t, seconds("TimeoutStartSec"), loaded.Config.MySQL.StartTimeout)
	require.Equal(t, []string{"notify", "notify-reload"}, values["Type"], "serve tells when it is ready, and when it has read its settings again")
	require.Empty(t, values["ExecReload"], "systemd sends the signal itself")
}

func TestSystemdUnderstandsTheUnit(t *testing.T) {
	t.Parallel()
	testserver.Demand(t, testserver.InstallPackages(t.Context(), func() bool {
		_, err := exec.LookPath("systemd-analyze")
		return err == nil
	}, "systemd"))
	text, _ := unit(t)
	// It also looks for the programs, and there is no oncegate in /usr/bin here.
	program, err := os.Executable()
	require.NoError(t, err)
	text = strings.ReplaceAll(text, "/usr/bin/oncegate", program)
	path := filepath.Join(t.TempDir(), "oncegate.service")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", path).CombinedOutput()
	require.NoError(t, err, string(out))
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "notify-reload") { // a systemd before 253, for which the line above it is
			continue
		}
		require.NotContains(t, line, path, "a line of the unit is not understood")
	}

	out, err = exec.CommandContext(t.Context(), "systemd-analyze", "security", "--offline=yes", "--no-pager", "--threshold=20", path).CombinedOutput()
	require.NoError(t, err, string(out))
}
