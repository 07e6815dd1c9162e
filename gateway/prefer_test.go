package gateway

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
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
		{[]string{`foo="a, wait=5, b", wait=3`}, 3 * time.Second},
		{[]string{`foo="\", wait=5, \\", wait=3`}, 3 * time.Second},
		{[]string{`foo; bar="a, wait=5, b"`}, 0},
		{[]string{`foo="a, wait=5`}, 0},
		{[]string{`foo="a, b`, "wait=3"}, 3 * time.Second},
	} {
		require.Equal(t, c.want, preferredWait(http.Header{"Prefer": c.lines}, 10*time.Second+999*time.Millisecond), c.lines)
	}
}

func TestPrefersLater(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"respond-async":                       true,
		"Respond-Async":                       true,
		"wait=3,respond-async;foo":            true,
		`respond-async=""`:                    true, // is no value
		"respond-async=1":                     false,
		"respond-asynchronously":              false,
		"foo; respond-async":                  false,
		`foo="a, respond-async, b"`:           false,
		`foo="a, respond-async", b`:           false,
		`foo="\", respond-async, b"`:          false,
		`foo; bar="a, b", respond-async`:      true,
		`foo="a; b, \"c\"" , respond-async`:   true,
		`foo="a; respond-async, b"; bar="c,"`: false,
	} {
		require.Equal(t, want, prefersLater(http.Header{"Prefer": {line}}), line)
	}
	require.False(t, prefersLater(http.Header{}))
	require.True(t, prefersLater(http.Header{"Prefer": {"foo", "wait=3, respond-async"}}))
}

// FuzzPrefer: what is preferred is found in every order, on one line or on several,
// whatever else is preferred that is not for us, and whatever comes behind it.
func FuzzPrefer(f *testing.F) {
	f.Add("handling=lenient", "", uint16(3), uint8(0b000))
	f.Add("wait=9, respond-async", "a, respond-async, wait=5", uint16(0), uint8(0b011))
	f.Add(`foo="`, `\", wait=5; respond-async, "\`, uint16(11), uint8(0b110))
	f.Fuzz(func(t *testing.T, behind, text string, seconds uint16, how uint8) {
		const limit = 10 * time.Second
		last := http.Header{"Prefer": {behind}}
		wait, later := preferredWait(last, limit), prefersLater(last)
		require.True(t, wait >= 0 && wait <= limit && wait%time.Second == 0, wait)

		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
		preferences := []string{"foo=" + quoted + "; bar; baz=" + quoted}
		if how&1 != 0 {
			value := strconv.Itoa(int(seconds))
			if how&2 != 0 {
				value = `"` + value + `"`
			}
			preferences, wait = append(preferences, "wait="+value), min(time.Duration(seconds)*time.Second, limit)
		}
		if how&4 != 0 {
			preferences, later = append(preferences, "respond-async"), true
		}
		for range preferences {
			preferences = append(preferences[1:], preferences[0])
			for range 2 {
				slices.Reverse(preferences)
				for _, lines := range [][]string{preferences, {strings.Join(preferences, ", ")}, {strings.Join(preferences, ",")}} {
					h := http.Header{"Prefer": append(slices.Clone(lines), behind)}
					require.Equal(t, wait, preferredWait(h, limit), "%q", h)
					require.Equal(t, later, prefersLater(h), "%q", h)
				}
			}
		}
	})
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
