package deploytest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/oncegate/oncegate/configs"
)

// environment is what the container of a manifest gets, with the secrets of
// this machine in the place of those that are mounted.
func environment(t *testing.T, manifest string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy/kubernetes/base", manifest))
	require.NoError(t, err)
	var pod struct {
		Spec struct {
			Template struct {
				Spec struct {
					Containers []struct {
						Env []struct{ Name, Value string }
					}
				}
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &pod))
	dir := writeSecrets(t)
	var variables []string
	for _, v := range pod.Spec.Template.Spec.Containers[0].Env {
		if strings.HasPrefix(v.Name, "ONCEGATE_") {
			variables = append(variables, v.Name+"="+strings.Replace(v.Value, "/run/secrets/oncegate", dir, 1))
		}
	}
	require.NotEmpty(t, variables)
	return variables
}

func TestThePodsSettingsAreAccepted(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"base/oncegate.yaml", "overlays/production/oncegate.yaml"} {
		for _, manifest := range []string{"deployment.yaml", "migrate.yaml"} {
			loaded, err := configs.Load(configs.Sources{
				File: filepath.Join(root, "deploy/kubernetes", file), Environ: environment(t, manifest),
			})
			require.NoError(t, err, file)
			require.Equal(t, secrets["mysql_dsn"], loaded.Config.MySQL.DSN.Reveal())
			require.Equal(t, "0.0.0.0:8080", loaded.Config.HTTP.Listen, "the pod's port")
			require.Equal(t, "0.0.0.0:9090", loaded.Config.Admin.Listen, "the pod's port")
			require.False(t, loaded.Config.Admin.AllowLoopback)
			require.Contains(t, loaded.Config.Admin.AllowedHosts, "oncegate-admin", "the Service that operators call it by")
		}
	}
}
