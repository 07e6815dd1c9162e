package composetest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// observed loads the compose file with Prometheus and Grafana.
func observed(t *testing.T) *types.Project {
	t.Helper()
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  root,
		ConfigFiles: []types.ConfigFile{{Filename: filepath.Join(root, "docker-compose.yml")}},
		Environment: map[string]string{"SECRETS": t.TempDir()},
	}, func(o *loader.Options) { o.Profiles = []string{"observe"} })
	require.NoError(t, err)
	return project
}

func TestObserversComeOnlyWhenTheyAreAskedFor(t *testing.T) {
	t.Parallel()
	require.ElementsMatch(t, []string{"gateway", "migrate", "mysql", "redis", "prometheus", "grafana"}, observed(t).ServiceNames())
	require.NotContains(t, loadComplete(t).ServiceNames(), "prometheus")
}

func TestObserversFindTheirFiles(t *testing.T) {
	t.Parallel()
	project := observed(t)
	for _, name := range []string{"prometheus", "grafana"} {
		service := project.Services[name]
		require.Equal(t, "CMD", service.HealthCheck.Test[0])
		require.Regexp(t, `:v?\d+\.\d+\.\d+$`, service.Image, "one version, not whatever is newest")
		for _, port := range service.Ports {
			require.Equal(t, "127.0.0.1", port.HostIP)
		}
		for _, volume := range service.Volumes {
			if volume.Type == types.VolumeTypeBind {
				_, err := os.Stat(volume.Source)
				require.NoError(t, err)
				require.True(t, volume.ReadOnly, volume.Source)
			}
		}
	}
}

func TestPrometheusScrapesTheGatewayUnderTheNameOfTheRules(t *testing.T) {
	t.Parallel()
	var settings struct {
		RuleFiles     []string `yaml:"rule_files"`
		ScrapeConfigs []struct {
			JobName       string                       `yaml:"job_name"`
			StaticConfigs []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	text, err := os.ReadFile(filepath.Join(root, "deploy/compose/prometheus.yml"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &settings))
	require.Equal(t, "oncegate", settings.ScrapeConfigs[0].JobName)
	require.Equal(t, []string{"gateway:9090"}, settings.ScrapeConfigs[0].StaticConfigs[0].Targets)
	gateway := observed(t).Services["gateway"].Environment
	require.True(t, strings.HasSuffix(*gateway["ONCEGATE_ADMIN__LISTEN"], ":9090"))
	require.Contains(t, gateway, "ONCEGATE_ADMIN__ALLOWED_HOSTS")
	require.Equal(t, "gateway", *gateway["ONCEGATE_ADMIN__ALLOWED_HOSTS"], "the listener refuses names that it does not go by")
	for _, file := range settings.RuleFiles {
		require.FileExists(t, filepath.Join(root, "deploy/observability", strings.TrimPrefix(file, "oncegate/")))
	}
}
