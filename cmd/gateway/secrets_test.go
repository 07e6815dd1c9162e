package main

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/configs"
)

func TestAGeneratedSecretIsMadeOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "secrets")
	var made sync.Map
	var makers sync.WaitGroup
	for range 16 {
		makers.Go(func() {
			secret, err := keptSecret(filepath.Join(dir, "hs256"))
			if err != nil {
				t.Error(err)
			}
			made.Store(string(secret), true)
		})
	}
	makers.Wait()
	count := 0
	made.Range(func(secret, _ any) bool {
		require.GreaterOrEqual(t, len(secret.(string)), 32)
		count++
		return true
	})
	require.Equal(t, 1, count)

	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing is left beside it")
	info, err := entries[0].Info()
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestASecretThatOthersCanReadIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := keptSecret(filepath.Join(dir, "hs256"))
	require.NoError(t, err)
	require.NoError(t, os.Chmod(filepath.Join(dir, "hs256"), 0o644))
	_, err = keptSecret(filepath.Join(dir, "hs256"))
	require.ErrorContains(t, err, "chmod 600")
}

func TestAFileThatHoldsNoSecretIsNamed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "hs256")
	require.NoError(t, os.WriteFile(path, []byte("short\n"), 0o600))
	_, err := keptSecret(path)
	require.ErrorContains(t, err, path+" has 5 bytes of a secret")
}

func TestAConfiguredSecretIsUsedAsItIs(t *testing.T) {
	t.Parallel()
	c := configs.Default()
	c.DataDir = filepath.Join(t.TempDir(), "never made")
	c.Auth.HS256Secret = configs.NewSecret("0123456789abcdef0123456789abcdef")
	secret, err := signingSecret(&c)
	require.NoError(t, err)
	require.Equal(t, "0123456789abcdef0123456789abcdef", string(secret))
	require.NoDirExists(t, c.DataDir)

	c.Auth.JWKSURL = "https://login.example.com/keys"
	_, err = signingSecret(&c)
	require.ErrorIs(t, err, errNoSigning)
}
