package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
)

// nobody is where nobody listens.
const nobody = "127.0.0.1:1"

// imageCheck is what the image asks for, without the program.
func imageCheck(t *testing.T) (args []string) {
	t.Helper()
	text, err := os.ReadFile("../../Dockerfile")
	require.NoError(t, err)
	found := regexp.MustCompile(`(?m)^HEALTHCHECK .* CMD (\[.*\])$`).FindSubmatch(text)
	require.NotNil(t, found)
	require.NoError(t, json.Unmarshal(found[1], &args))
	require.Equal(t, "/oncegate", args[0])
	return args[1:]
}

func TestTheImagesHealthCheckFitsAGatewayAndAConsumer(t *testing.T) {
	t.Parallel()
	cfg := embedded(t.TempDir())
	r := start(t, cfg)
	r.isWell(newCustomer(t, cfg, "alice"))
	vars := []string{"ONCEGATE_HTTP__LISTEN=" + r.Addr(), "ONCEGATE_ADMIN__LISTEN=" + r.AdminAddr()}
	check := imageCheck(t)
	says := func(part string) func() bool { // which it was before, and on a busy machine may seem not to be for a moment
		return func() bool {
			code, stdout, _ := command(t, vars, check...)
			return code == exitOK && strings.Contains(stdout, part)
		}
	}
	eventually(t, "a gateway is never healthy", says(`"redis":"ok"`))

	broker := testserver.StartRedis(t)
	c := consume(t, payments(t, broker))
	eventually(t, "it is never ready", func() bool { status, _ := c.ask("/readyz"); return status == http.StatusOK })
	vars = []string{"ONCEGATE_HTTP__LISTEN=" + nobody, "ONCEGATE_ADMIN__LISTEN=" + c.admin}
	eventually(t, "a consumer is never healthy", says(`"messages":"ok"`))
	broker.Kill()
	eventually(t, "a consumer without its broker is healthy", func() bool {
		code, _, stderr := command(t, vars, check...)
		return code == exitFailed && strings.Contains(stderr, "503") // no answer in time is a failure, too
	})
}

func TestWhoseHealthIsAskedIsSaid(t *testing.T) {
	t.Parallel()
	cfg := embedded(t.TempDir())
	r := start(t, cfg)
	c := consume(t, payments(t, testserver.StartRedis(t)))
	eventually(t, "it is never ready", func() bool { status, _ := c.ask("/readyz"); return status == http.StatusOK })
	r.isWell(newCustomer(t, cfg, "alice"))
	for _, ask := range []struct {
		public, admin, of string
		code              int
		says              string
	}{
		{r.Addr(), c.admin, "gateway", exitOK, `"redis":"ok"`},
		{r.Addr(), c.admin, "consumer", exitOK, `"messages":"ok"`},
		{r.Addr(), nobody, "either", exitOK, `"redis":"ok"`},
		{nobody, c.admin, "gateway", exitFailed, "connection refused"}, // and not the other one's health
		{r.Addr(), nobody, "consumer", exitFailed, "connection refused"},
		{nobody, "127.0.0.1:2", "either", exitFailed, "neither a gateway ("},
		{nobody, r.AdminAddr(), "either", exitFailed, "404"}, // a gateway that takes no orders
		{r.Addr(), "", "consumer", exitFailed, "admin.listen is empty"},
		{r.Addr(), "127.0.0.1:0", "consumer", exitFailed, "admin.listen (127.0.0.1:0) takes a port"},
		{r.Addr(), c.admin, "both", exitUsage, `--of must be gateway, consumer, either, not "both"`},
	} {
		eventually(t, fmt.Sprintf("%+v", ask), func() bool { // who is well may seem not to be for a moment
			code, stdout, stderr := command(t, nil, "healthcheck", "--http.listen="+ask.public, "--admin.listen="+ask.admin, "--of="+ask.of)
			return code == ask.code && strings.Contains(stdout+stderr, ask.says)
		})
	}
}

// A process keeps its settings when its file is refused, and its health with them.
func TestARefusedFileMakesNobodyIll(t *testing.T) {
	t.Parallel()
	cfg := embedded(t.TempDir())
	r := start(t, cfg)
	alice := newCustomer(t, cfg, "alice")
	for name, refused := range map[string]string{
		"a value":      "ttl: {receipt: 1ms}",
		"a setting":    "ttl: {recipt: 1h}",
		"half a file":  "http: {listen: ",
		"another type": "ledger: [1]",
		"a directory":  "",
	} {
		path := t.TempDir()
		vars := []string{"ONCEGATE_CACHE__MAC_KEY_FILE=/nonexistent"}
		if refused != "" {
			path = filepath.Join(path, "oncegate.yaml")
			require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, "http: {listen: %q}\n%s\n", r.Addr(), refused), 0o600))
		}
		if refused == "" || strings.HasPrefix(refused, "http") {
			vars = append(vars, "ONCEGATE_HTTP__LISTEN="+r.Addr())
		}
		code, _, _ := command(t, nil, "config", "check", path)
		require.Equal(t, exitFailed, code, name)
		r.isWell(alice)
		eventually(t, name, func() bool { // see isWell
			code, stdout, _ := command(t, vars, "healthcheck", "--config", path)
			return code == exitOK && strings.Contains(stdout, `"status":"ok"`)
		})
	}
	path := filepath.Join(t.TempDir(), "oncegate.yaml")
	require.NoError(t, os.WriteFile(path, []byte("http: {listen: "), 0o600))
	code, _, stderr := command(t, nil, "healthcheck", "--config", path, "--http.listen", nobody)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "connection refused")
	require.Contains(t, stderr, path, "why it may have asked the wrong one")
}
