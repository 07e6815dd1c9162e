package order_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

var keyPattern = regexp.MustCompile(order.KeyPattern)

func TestParseKeyReadsRawAndQuotedAlike(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]order.Key{
		"a": "a", `"a"`: "a", "A": "A", "{}": "{}", "!#$%&'()*+-./:;<=>?@[]^_`{|}~": "!#$%&'()*+-./:;<=>?@[]^_`{|}~",
		"8e03978e-40d5-43dd-bc93-6894a57f9324": "8e03978e-40d5-43dd-bc93-6894a57f9324",
		strings.Repeat("k", 255):               order.Key(strings.Repeat("k", 255)),
		`"` + strings.Repeat("k", 255) + `"`:   order.Key(strings.Repeat("k", 255)),
	} {
		got, err := order.ParseKey(value)
		require.NoError(t, err, value)
		require.Equal(t, want, got)
		require.Regexp(t, keyPattern, string(got))
	}
}

func TestParseKeyRefusesWithoutRepeatingTheValue(t *testing.T) {
	t.Parallel()
	for _, value := range []string{
		"", `"`, `""`, `"""`, `""""`, `"secret`, `secret"`, `"sec"ret"`, "secret one", " secret", "secret ", "sec,ret",
		`"sec,ret"`, "secret, secret", `sec\ret`, `"sec\"ret"`, "secret\t", "secret\r\nx: y", "secret\x00", "secret\x7f",
		"secret\x80", "secreté", "secret\u200b", "秘密", "\xff\xfe", `"secret";p=1`,
		strings.Repeat("k", 256), `"` + strings.Repeat("k", 256) + `"`, strings.Repeat("k", 1<<20),
	} {
		key, err := order.ParseKey(value)
		require.ErrorIs(t, err, order.ErrKeyInvalid, "%.40q", value)
		require.Empty(t, key)
		require.NotContains(t, err.Error(), "secret")
		require.Less(t, len(err.Error()), 200)
	}
}

func TestKeyPatternCountsAsParseKeyDoes(t *testing.T) {
	t.Parallel()
	for c := range 256 {
		s := string([]byte{byte(c)})
		_, err := order.ParseKey(s)
		require.Equal(t, err == nil, keyPattern.MatchString(s), "%q", s)
	}
	require.False(t, keyPattern.MatchString("k\n"), "a trailing line feed is no end of a key")
}

func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{"a", `"a"`, `""`, `"`, "a,b", "a b", "{}", "é", "\x00", strings.Repeat("k", 256), `"a"b"`, `a\`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		key, err := order.ParseKey(value)
		bare := value
		if len(bare) >= 2 && strings.HasPrefix(bare, `"`) && strings.HasSuffix(bare, `"`) {
			bare = bare[1 : len(bare)-1]
		}
		require.Equal(t, keyPattern.MatchString(bare), err == nil, "%q", value)
		if err != nil {
			require.ErrorIs(t, err, order.ErrKeyInvalid)
			require.Empty(t, key)
			return
		}
		require.Equal(t, bare, string(key))
		for _, spelling := range []string{string(key), `"` + string(key) + `"`} {
			again, err := order.ParseKey(spelling)
			require.NoError(t, err)
			require.Equal(t, key, again)
		}
	})
}
