package main

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// bruno is the version of Bruno's command line that plays the collection.
const bruno = "@usebruno/cli@4.1.0"

// playBruno plays examples/bruno against a gateway and returns what it says. It
// needs Node.js, which is nothing that a test installs, and the registry of npm
// the first time.
func playBruno(t *testing.T, r *running, token string) (string, error) {
	t.Helper()
	npx, err := exec.LookPath("npx")
	if err != nil {
		t.Skip("no npx: Bruno needs Node.js")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, npx, "--yes", bruno, "--version").CombinedOutput(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("Bruno cannot be had: %v\n%s", err, out)
		}
		t.Skipf("Bruno cannot be had: %v", err)
	}
	play := exec.CommandContext(ctx, npx, "--yes", bruno, "run", "--env", "local",
		"--env-var", "base=http://"+r.Addr(), "--env-var", "token="+token)
	play.Dir = "../../examples/bruno"
	out, err := play.CombinedOutput()
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

	out, err := playBruno(t, r, token)
	require.NoError(t, err, out)
	require.Contains(t, out, "8 (8 Passed)", out)

	out, err = playBruno(t, r, "nonsense")
	require.Error(t, err, "a collection that cannot fail proves nothing\n%s", out)
}
