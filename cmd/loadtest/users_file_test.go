package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/loadtest/stub"
)

// What a file of users cannot be used for is said before the first order, and is no
// broken promise of the target.
func TestAUsersFileThatCannotLastIsRefused(t *testing.T) {
	t.Parallel()
	token := func(claims string, args ...any) string {
		return "h." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, claims, args...)) + ".s"
	}
	target := serve(t, stub.Flaws{}, 0)
	for name, tc := range map[string]struct {
		line string
		code int
		said string
	}{
		"it lasts":           {"ann " + token(`{"sub":"ann","exp":%d}`, time.Now().Add(time.Hour).Unix()), exitOK, ""},
		"ends in the middle": {"ann " + token(`{"sub":"ann","exp":%d}`, time.Now().Unix()), exitUsage, "the token of ann ends at"},
		"somebody else's":    {"ann " + token(`{"sub":"bob"}`), exitUsage, `the token of ann is that of "bob"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "users")
			require.NoError(t, os.WriteFile(file, []byte(tc.line+"\n"), 0o600))
			code, out, err := command("run", "--target", target, "--users-file", file, "--scenario", "unique", "--rate", "20/s", "--duration", "1s", "--max-lag", "1m",
				"--timeout", "30s", "--settle", "0s", "--out", filepath.Join(dir, "run"), "--marks", filepath.Join(dir, "marks"))
			require.Equal(t, tc.code, code, out+err)
			require.Contains(t, err, tc.said)
		})
	}
}
