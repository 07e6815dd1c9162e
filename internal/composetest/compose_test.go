package composetest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/configs"
)

const root = "../.."

// password is long, as "make up" makes it.
var password = strings.Repeat("p", 64)

// load reads the compose file as Docker does, with secrets in a directory.
func load(t *testing.T, environment map[string]string) (*types.Project, error) {
	t.Helper()
	return loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  root,
		ConfigFiles: []types.ConfigFile{{Filename: filepath.Join(root, "docker-compose.yml")}},
		Environment: environment,
	})
}

func loadComplete(t *testing.T) *types.Project {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"mysql_password": password,
		"mysql_dsn":      "oncegate:" + password + "@tcp(mysql:3306)/oncegate",
		"hs256_secret":   strings.Repeat("s", 64),
		"mac_key":        strings.Repeat("m", 64),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	project, err := load(t, map[string]string{"SECRETS": dir})
	require.NoError(t, err)
	return project
}

func TestServicesStartInOrder(t *testing.T) {
	t.Parallel()
	project := loadComplete(t)
	require.ElementsMatch(t, []string{"gateway", "migrate", "mysql", "redis"}, project.ServiceNames())

	conditions := func(service string) map[string]string {
		found := map[string]string{}
		for name, dependency := range project.Services[service].DependsOn {
			require.True(t, dependency.Required)
			found[name] = dependency.Condition
		}
		return found
	}
	require.Equal(t, map[string]string{
		"migrate": types.ServiceConditionCompletedSuccessfully,
		"mysql":   types.ServiceConditionHealthy,
		"redis":   types.ServiceConditionStarted,
	}, conditions("gateway"))
	require.Equal(t, map[string]string{"mysql": types.ServiceConditionHealthy}, conditions("migrate"))

	require.Equal(t, types.ShellCommand{"migrate", "up"}, project.Services["migrate"].Command)
	require.Equal(t, types.ShellCommand{"serve"}, project.Services["gateway"].Command)
	require.Equal(t, "mysql:9", project.Services["mysql"].Image)
	require.Equal(t, "redis:7", project.Services["redis"].Image)
}

func TestEveryServiceThatStaysHasAHealthCheck(t *testing.T) {
	t.Parallel()
	for name, service := range loadComplete(t).Services {
		if service.Restart == "no" {
			require.Equal(t, "migrate", name)
			continue
		}
		check := service.HealthCheck
		require.NotNil(t, check, name)
		require.False(t, check.Disable, name)
		require.Equal(t, "CMD", check.Test[0], "%s: there is no shell in a distroless image", name)
		require.NotNil(t, check.Interval, name)
		require.NotNil(t, check.Timeout, name)
		require.NotNil(t, check.Retries, name)
	}
}

func TestMissingSecretsAreAClearError(t *testing.T) {
	t.Parallel()
	_, err := load(t, nil)
	require.ErrorContains(t, err, "run make up, or name a directory with the secrets")
}

func TestNoSecretIsInAnEnvironment(t *testing.T) {
	t.Parallel()
	for name, service := range loadComplete(t).Services {
		for key, value := range service.Environment {
			require.NotNil(t, value, "%s: %s would be taken from whoever starts it", name, key)
			require.NotContains(t, *value, password, "%s: %s", name, key)
		}
	}
}

func TestPortsAreOpenToThisMachineOnly(t *testing.T) {
	t.Parallel()
	for name, service := range loadComplete(t).Services {
		for _, port := range service.Ports {
			require.Equal(t, "127.0.0.1", port.HostIP, name)
		}
	}
}

// The gateway's own loader judges the environment: it refuses variables that it
// does not know, values that it cannot read and combinations that are wrong.
func TestGatewayAcceptsItsEnvironment(t *testing.T) {
	t.Parallel()
	project := loadComplete(t)
	for _, name := range []string{"gateway", "migrate"} {
		loaded, err := configs.Load(configs.Sources{Environ: containerEnvironment(t, project, name)})
		require.NoError(t, err, name)
		require.Equal(t, "oncegate:"+password+"@tcp(mysql:3306)/oncegate", loaded.Config.MySQL.DSN.Reveal())
		require.True(t, loaded.Config.Auth.HS256Secret.IsSet())
		if name == "gateway" {
			require.Equal(t, []string{"redis:6379"}, loaded.Config.Redis.Addrs)
			require.True(t, loaded.Config.Cache.MACKey.IsSet())
			require.Less(t, loaded.Config.ShutdownGrace, time.Duration(*project.Services[name].StopGracePeriod))
		}
	}
}

// containerEnvironment is the environment as a service's process has it, with
// the files of this machine in the place of those that are mounted.
func containerEnvironment(t *testing.T, project *types.Project, name string) []string {
	t.Helper()
	service := project.Services[name]
	mounted := map[string]string{}
	for _, secret := range service.Secrets {
		mounted["/run/secrets/"+secret.Source] = project.Secrets[secret.Source].File
	}
	var environment []string
	for key, value := range service.Environment {
		require.True(t, strings.HasPrefix(key, "ONCEGATE_"), key)
		text := *value
		if strings.HasSuffix(key, "_FILE") {
			require.Contains(t, mounted, text)
			text = mounted[text]
		}
		environment = append(environment, key+"="+text)
	}
	return environment
}

func TestDockerfileBuildsWithTheGoOfTheModule(t *testing.T) {
	t.Parallel()
	module, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	version := regexp.MustCompile(`(?m)^toolchain go(\S+)$`).FindSubmatch(module)
	if version == nil { // where it is no newer than what the module needs, there is no such line
		version = regexp.MustCompile(`(?m)^go (\S+)$`).FindSubmatch(module)
	}
	require.NotNil(t, version)
	dockerfile, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	require.NoError(t, err)
	require.Contains(t, string(dockerfile), "FROM golang:"+string(version[1])+" AS build\n")
}
