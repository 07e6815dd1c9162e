package client_test

import (
	"errors"
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

// A process may end, or be slow, between making a key and syncing its name. Who
// finds the key sends it, and so must not rely on that process.
func TestAKeyThatIsReturnedIsDurableWhoeverMadeIt(t *testing.T) {
	t.Parallel()
	powerFails := errors.New("the power fails")
	for name, use := range map[string]func(*client.FileKeys) error{
		"claimed": func(keys *client.FileKeys) error {
			key, err := keys.Claim(t.Context(), "cart", "k9")
			if err == nil && key != "k1" {
				t.Errorf("the key is %s", key)
			}
			return err
		},
		"replaced already": func(keys *client.FileKeys) error { return keys.Replace(t.Context(), "cart", "k0", "k9") },
		"replaced":         func(keys *client.FileKeys) error { return keys.Replace(t.Context(), "cart", "k1", "k9") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			dying, err := client.OpenFileKeysWith(dir, func(string) error { return powerFails })
			require.NoError(t, err)
			_, err = dying.Claim(t.Context(), "cart", "k1")
			require.ErrorIs(t, err, powerFails, "a key that could be lost is not returned")

			var synced []string
			keys, err := client.OpenFileKeysWith(dir, func(d string) error {
				synced = append(synced, d)
				return nil
			})
			require.NoError(t, err)
			require.NoError(t, use(keys))
			require.Equal(t, []string{dir}, synced)
			require.ErrorIs(t, use(dying), powerFails, "nor is one that was found")
		})
	}
}

func TestTheDirectoryOfKeysIsDurableToo(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	var synced []string
	sync := func(d string) error {
		synced = append(synced, d)
		return nil
	}
	for range 2 { // the second finds it
		_, err := client.OpenFileKeysWith(filepath.Join(root, "shop", "keys"), sync)
		require.NoError(t, err)
	}
	require.Equal(t, []string{root, filepath.Join(root, "shop")}, synced)
	broken := errors.New("the disk is broken")
	_, err := client.OpenFileKeysWith(filepath.Join(root, "other"), func(string) error { return broken })
	require.ErrorIs(t, err, broken)
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
