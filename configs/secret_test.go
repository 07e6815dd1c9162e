package configs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

func TestASecretPrintsNowhere(t *testing.T) {
	t.Parallel()
	s := NewSecret("hunter2")
	type hidden struct{ inner Secret }
	values := []any{s, &s, []Secret{s}, map[string]Secret{"k": s}, hidden{s}, &hidden{s}, MySQL{DSN: s}, Config{MySQL: MySQL{DSN: s}}}
	for _, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%p", "%T"} {
			out := fmt.Sprintf(verb, v)
			require.NotContains(t, out, "hunter2", verb)
			require.NotContains(t, out, "68756e746572", verb)
		}
		j, err := json.Marshal(v)
		require.NoError(t, err)
		require.NotContains(t, string(j), "hunter2")
		y, err := yaml.Marshal(v)
		require.NoError(t, err)
		require.NotContains(t, string(y), "hunter2")
		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "secret", v)
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "secret", v)
		require.NotContains(t, log.String(), "hunter2")
	}
	require.Equal(t, "[redacted]", s.String())
	require.Equal(t, "hunter2", s.Reveal())
	require.Equal(t, Secret{}, NewSecret(""))
	require.Empty(t, Secret{}.String())
}

// A secret that is not written as its place has it is in no error: not without
// quotes in the file, not in the place of the file, not with a character that
// its form gives a meaning.
func TestASecretThatIsMisreadIsInNoError(t *testing.T) {
	t.Parallel()
	refused := func(s Sources, want string) {
		t.Helper()
		_, err := Load(s)
		require.ErrorContains(t, err, want)
		said := err.Error()
		if s.File != "" { // the number of a test's directory is random
			said = strings.ReplaceAll(said, s.File, "the file")
		}
		for _, part := range []string{"hunter", "hun", "12345", "ss2"} {
			require.NotContains(t, said, part)
		}
	}
	for content, want := range map[string]string{
		"redis: {password: *hunter2}\n":              "a text that begins with * must be in quotes",
		"redis:\n  password: *hunter2\n":             "a text that begins with * must be in quotes",
		"redis: {password: !!int hunter2}\n":         "cannot decode !!str (a value) as a !!int",
		"cache: {mac_key: 0123456789012345}\n":       "line 1: a number must be written without a leading zero",
		"cache: {mac_key: 123456789012345678}\n":     "must be a text: put it in quotes",
		"redis: {password:hunter2}\n":                "redis.password… (in ",
		"mysql: {dsn u:hunter2@tcp(db)/o}\n":         "mysql.dsn… (in ",
		"hunter2hunter2\n":                           "cannot unmarshal !!str (a value) into",
		"u:hunter2@tcp(db:3306)/oncegate\n":          "cannot unmarshal !!str (a value) into",
		"|\n  hun\n  ter2\n":                         "cannot unmarshal !!str (a value) into",
		"redis: {password: !!int \"hun\\n12345\"}\n": "cannot decode !!str (a value) as a !!int",
		"- hunter2\n":                                "cannot unmarshal !!seq into",
		"{}\n---\nredis: {password: *hunter2}\n":     "must hold one YAML document",
	} {
		refused(Sources{File: write(t, content)}, want)
	}
	for _, dsn := range []string{"u:hunter/pass%ss2@tcp(db:3306)", "u:hunter/p?ss2=x&tls=ss2@tcp(db:3306)", "hunter2", "u:hunter/pa%ss2", "u:hunter@x/pa%ss2"} {
		refused(Sources{Environ: []string{"ONCEGATE_MYSQL__DSN=" + dsn}}, "mysql.dsn must be user:password@tcp(host:3306)/name: no @tcp(host:3306)/name is at its end")
	}
	refused(Sources{Environ: []string{"ONCEGATE_MYSQL__DSN=u:hunter2@tcp(db:3306)/o?tls=none"}}, "unknown config name: none")
}
