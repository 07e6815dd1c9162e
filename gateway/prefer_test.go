package gateway

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPreferredWait(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lines []string
		want  time.Duration
	}{
		{nil, 0},
		{[]string{"wait=3"}, 3 * time.Second},
		{[]string{"Wait = 3"}, 3 * time.Second},
		{[]string{`respond-async, wait="3"; foo=bar`}, 3 * time.Second},
		{[]string{"handling=lenient", "wait=4"}, 4 * time.Second},
		{[]string{"wait=1, wait=9"}, time.Second},
		{[]string{"wait=11"}, 10 * time.Second},
		{[]string{"wait=99999999999999999999999999"}, 10 * time.Second},
		{[]string{"wait=0"}, 0},
		{[]string{"wait=-1"}, 0},
		{[]string{"wait=1.5"}, 0},
		{[]string{"wait=0x10"}, 0},
		{[]string{"wait="}, 0},
		{[]string{"wait"}, 0},
		{[]string{"waiting=5"}, 0},
		{[]string{",,;=,"}, 0},
	} {
		require.Equal(t, c.want, preferredWait(http.Header{"Prefer": c.lines}, 10*time.Second+999*time.Millisecond), c.lines)
	}
}

func FuzzPreferredWait(f *testing.F) {
	for _, s := range []string{"wait=3", `wait="3";x`, "wait=99999999999999999999", ",;="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if d := preferredWait(http.Header{"Prefer": {s}}, 10*time.Second); d < 0 || d > 10*time.Second || d%time.Second != 0 {
			t.Fatalf("%q: %v", s, d)
		}
	})
}

// FuzzKeyHeader: what is taken as a key is one, and reads the same again.
func FuzzKeyHeader(f *testing.F) {
	for _, s := range []string{"k1", `"k1"`, "", `"`, `""`, "a,b", "a b", "{x}", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		key, p := idempotencyKey(http.Header{"Idempotency-Key": {s}}, true)
		if (p == nil) != (key != "") {
			t.Fatalf("%q: %q, %v", s, key, p)
		}
		if p != nil {
			return
		}
		again, p := idempotencyKey(http.Header{"Idempotency-Key": {`"` + string(key) + `"`}}, true)
		if p != nil || again != key {
			t.Fatalf("%q is not %q again", key, again)
		}
	})
}

func TestDeclaredTypes(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{
		"application/json": true, "application/json; charset=utf-8": true, `Application/JSON;charset="UTF-8"`: true,
		"application/json; charset=latin1": false, "text/json": false, "": false, "application/json;": true,
		"application/x-www-form-urlencoded": false, "application/problem+json": false, "multipart/form-data; boundary=x": false,
	} {
		require.Equal(t, want, jsonBody(http.Header{"Content-Type": {value}}), value)
	}
	require.False(t, jsonBody(http.Header{}))
	require.False(t, jsonBody(http.Header{"Content-Type": {jsonType, jsonType}}))
	require.False(t, jsonBody(http.Header{"Content-Type": {jsonType}, "Content-Encoding": {"gzip"}}))
	require.False(t, jsonBody(http.Header{"Content-Type": {jsonType}, "Content-Encoding": {"identity, gzip"}}))
	require.True(t, jsonBody(http.Header{"Content-Type": {jsonType}, "Content-Encoding": {"Identity"}}))
}
