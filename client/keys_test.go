package client_test

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/client"
)

func TestAKeyOutlivesTheProgram(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "keys")
	before, err := client.OpenFileKeys(dir)
	require.NoError(t, err)
	first, err := before.Claim(t.Context(), "cart/1 ⚠ any text", "k1")
	require.NoError(t, err)
	require.Equal(t, "k1", first)

	after, err := client.OpenFileKeys(dir)
	require.NoError(t, err)
	second, err := after.Claim(t.Context(), "cart/1 ⚠ any text", "k2")
	require.NoError(t, err)
	require.Equal(t, "k1", second)

	other, err := after.Claim(t.Context(), "cart/2", "k3")
	require.NoError(t, err)
	require.Equal(t, "k3", other)
}

func TestManyWhoClaimAtOnceGetOneKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const claims = 16
	got := make([]string, claims)
	var all sync.WaitGroup
	for i := range claims {
		keys, err := client.OpenFileKeys(dir) // as another process would
		require.NoError(t, err)
		all.Go(func() {
			key, err := keys.Claim(t.Context(), "cart", "k"+strconv.Itoa(i))
			if err != nil {
				t.Error(err)
			}
			got[i] = key
		})
	}
	all.Wait()
	for _, key := range got {
		require.Equal(t, got[0], key)
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "the losers' files are gone")
}

func TestAKeyIsReplacedOnlyOnce(t *testing.T) {
	t.Parallel()
	keys, err := client.OpenFileKeys(t.TempDir())
	require.NoError(t, err)
	_, err = keys.Claim(t.Context(), "cart", "k1")
	require.NoError(t, err)
	require.NoError(t, keys.Replace(t.Context(), "cart", "k1", "k2"))
	// Another window shows the same refusal, and its customer tries again too.
	require.NoError(t, keys.Replace(t.Context(), "cart", "k1", "k3"))
	key, err := keys.Claim(t.Context(), "cart", "k4")
	require.NoError(t, err)
	require.Equal(t, "k2", key)
}

func TestADamagedKeyIsNotReplacedInSilence(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keys, err := client.OpenFileKeys(dir)
	require.NoError(t, err)
	_, err = keys.Claim(t.Context(), "cart", "k1")
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.NoError(t, os.Truncate(files[0], 0))
	_, err = keys.Claim(t.Context(), "cart", "k2")
	require.ErrorContains(t, err, files[0])
}

func TestTheKeysAreNobodyElses(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "keys")
	keys, err := client.OpenFileKeys(dir)
	require.NoError(t, err)
	_, err = keys.Claim(t.Context(), "cart", "k1")
	require.NoError(t, err)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}
