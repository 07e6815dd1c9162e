package main

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
)

// bruno is the version of Bruno's command line that plays the collection.
const bruno = "@usebruno/cli@4.1.0"

// npx finds what runs programs of the npm registry, and installs it with Node.js
// where there is none.
func npx(t *testing.T) (path string) {
	t.Helper()
	err := testserver.InstallPackages(t.Context(), func() bool {
		var err error
		path, err = exec.LookPath("npx")
		return err == nil
	}, "nodejs", "npm")
	if err != nil && os.Getenv("CI") != "true" {
		t.Skipf("no npx, so no Bruno: %v", err)
	}
	require.NoError(t, err)
	return path
}

// nodeEnviron is the environment that Bruno runs in. It wants cryptography that
// Node.js 18, which Debian 12 has, only shows when it is asked to.
func nodeEnviron(ctx context.Context, t *testing.T) []string {
	t.Helper()
	version, err := exec.CommandContext(ctx, "node", "--version").Output()
	require.NoError(t, err)
	if !strings.HasPrefix(string(version), "v18.") {
		return os.Environ()
	}
	return append(os.Environ(), "NODE_OPTIONS=--experimental-global-webcrypto")
}

// brunoCLI is Bruno on this machine.
type brunoCLI struct {
	npx     string
	environ []string
}

// fetchBruno has it fetched, which takes half a minute the first time.
func fetchBruno(ctx context.Context, t *testing.T) brunoCLI {
	t.Helper()
	b := brunoCLI{npx: npx(t), environ: nodeEnviron(ctx, t)}
	out, err := b.command(ctx, "--version").CombinedOutput()
	if err != nil && os.Getenv("CI") != "true" {
		t.Skipf("Bruno cannot be had: %v", err)
	}
	require.NoError(t, err, "Bruno cannot be had: %s", out)
	return b
}

func (b brunoCLI) command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, b.npx, append([]string{"--yes", bruno}, args...)...)
	c.Dir, c.Env = "../../examples/bruno", b.environ
	return c
}

// play plays the collection against a gateway and returns what Bruno says.
func (b brunoCLI) play(ctx context.Context, r *running, token string) (string, error) {
	out, err := b.command(ctx, "run", "--env", "local", "--env-var", "base=http://"+r.Addr(), "--env-var", "token="+token).CombinedOutput()
	return string(out), err
}

func TestBrunoCollection(t *testing.T) {
	t.Parallel()
	cfg := embedded(t.TempDir())
	r := start(t, cfg)
	secret, err := signingSecret(&cfg)
	require.NoError(t, err)
	token, err := mint(&cfg, secret, tokenRequest{user: "bruno", scopes: []string{"orders"}, ttl: time.Hour})
	require.NoError(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	cli := fetchBruno(ctx, t)
	out, err := cli.play(ctx, r, token)
	require.NoError(t, err, out)
	require.Contains(t, out, "8 (8 Passed)", out)

	out, err = cli.play(ctx, r, "nonsense")
	require.Error(t, err, "a collection that cannot fail proves nothing\n%s", out)
}
