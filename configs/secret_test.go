package configs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
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
