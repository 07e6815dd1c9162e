package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/base64"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/insight"
)

// FuzzKeySet: whatever an issuer publishes, a token is believed only if its key is
// there and for signatures; and no other key takes it along.
func FuzzKeySet(f *testing.F) {
	scalar := make([]byte, 32)
	scalar[31] = 7
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), scalar)
	require.NoError(f, err)
	point, err := key.PublicKey.Bytes()
	require.NoError(f, err)
	ours := published(f, "one", "sig", key)
	token := signed(f, jwt.SigningMethodES256, "one", key)
	believes := jwt.NewParser(jwt.WithValidMethods([]string{"ES256"}), jwt.WithoutClaimsValidation())
	for _, more := range []string{
		ours, published(f, "one", "enc", key), published(f, "one", "", key), published(f, "two", "sig", key),
		strings.Replace(ours, `"use":"sig"`, `"key_ops":["verify"]`, 1), strings.Replace(ours, "ES256", "RS256", 1), strings.Replace(ours, `P-256`, "P-384", 1),
		`{"kty":"oct","kid":"one","k":"AAAA"},` + ours, `null,` + ours, `{"kty":"RSA","kid":"one","n":"AQAB","e":"AQAB"}`,
		`{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`, `{"kty":"EC","crv":"P-521","x":"AA==","y":"AA","d":"AA"}`,
	} {
		f.Add(`{"keys":[` + more + `]}`)
	}
	for _, document := range []string{`{}`, `{"keys":null}`, `{"keys":[],"keys":[{}]}`, `{"error":"x"}`, `[]`, ``, `{"keys":[]} x`} {
		f.Add(document)
	}
	f.Fuzz(func(t *testing.T, document string) {
		known, useless, err := parseKeys([]byte(document))
		if err != nil {
			require.ErrorIs(t, err, errNoKeySet)
			require.Nil(t, known)
			return
		}
		var set struct{ Keys []json.RawMessage }
		require.NoError(t, json.Unmarshal([]byte(document), &set))
		require.LessOrEqual(t, len(useless), len(set.Keys))
		if _, err := believes.Parse(token, known.Keyfunc); err == nil {
			require.True(t, anyIs(set.Keys, point), "believed by no key of it")
		}
		all, err := json.Marshal(map[string]any{"keys": append([]json.RawMessage{json.RawMessage(ours)}, set.Keys...)})
		require.NoError(t, err)
		known, uselessNow, err := parseKeys(all)
		require.NoError(t, err)
		require.Len(t, uselessNow, len(useless))
		_, err = believes.Parse(token, known.Keyfunc)
		require.NoError(t, err, "taken along by another key")
	})
}

// anyIs reports whether one of the keys is this point of P-256, called one and for
// signatures of ES256.
func anyIs(keys []json.RawMessage, point []byte) bool {
	for _, text := range keys {
		var k struct {
			Kty, Crv, Kid, Alg, Use, X, Y string
			KeyOps                        []string `json:"key_ops"`
		}
		if json.Unmarshal(text, &k) != nil {
			continue
		}
		coordinate := func(text string) []byte {
			b, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
			if err != nil {
				return nil
			}
			return bytes.TrimLeft(b, "\x00")
		}
		if k.Kty == "EC" && k.Crv == "P-256" && k.Kid == "one" && (k.Alg == "" || k.Alg == "ES256") && (k.Use == "" || k.Use == "sig") &&
			(len(k.KeyOps) == 0 || strings.Contains(strings.Join(k.KeyOps, " "), "verify")) &&
			bytes.Equal(coordinate(k.X), point[1:33]) && bytes.Equal(coordinate(k.Y), point[33:]) {
			return true
		}
	}
	return false
}

// isCommand reports whether a terminal takes a character of a line for a command.
func isCommand(r rune) bool {
	return r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
}

// FuzzExplanation: what a listener says of a refusal is told on lines of its own,
// and commands nothing.
func FuzzExplanation(f *testing.F) {
	for _, body := range []string{
		`{"detail":"Send a valid bearer token."}`, `{"detail":"x","errors":[{"path":"ttl[0]","reason":"must be a duration"},{"path":"?"}]}`, `{"detail":"\u001b[2J\u009b\n\u202e"}`,
		`{"detail":"x","errors":[{"path":"a\nb","reason":"\u0007"}]}`, `{"detail":""}`, `{"errors":[]}`, `<html>`, ``, `{"detail":1}`, "{\"detail\":\"\xff\"}",
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		said := explanation(body)
		require.False(t, strings.ContainsFunc(said, isCommand), "%q", said)
		var p struct {
			Detail string
			Errors []struct{ Path, Reason string }
		}
		if json.Unmarshal(body, &p) != nil || p.Detail == "" {
			require.Empty(t, said)
			return
		}
		require.Equal(t, len(p.Errors), strings.Count(said, "\n"))
		require.False(t, strings.ContainsFunc(printable(string(body)), func(r rune) bool { return isCommand(r) || r == '\n' }))
	})
}

// FuzzRunningSettings: what is in force in a gateway is printed a setting a line,
// or not at all.
func FuzzRunningSettings(f *testing.F) {
	for _, body := range []string{
		`{"version":1,"settings":[{"name":"data_dir","value":"./data","type":"text","origin":"default"},{"name":"http.listen","value":"127.0.0.1:8080","type":"text","origin":"file x"}]}`,
		`{"settings":[{"name":"a.b","value":"1\nc: 2","type":"int","origin":"x\ny"}]}`, `{"settings":[{"name":"a\nb.c","value":"\u001b[2J","type":"size"}]}`,
		`{"settings":[{"name":"a","value":"soon","type":"duration"}]}`, `{"settings":[{"name":"a","value":"1,2, 3","type":"list"},{"name":"b","value":"***","type":"secret"},{"name":"c","value":"1e3","type":"number"}]}`,
		`{"settings":[{"name":"a.b","value":"- x: [\u2028\"'#","type":"text"},{"name":"c"},{"name":"a.d"}]}`, `{}`, `[]`, ``, `{"settings":[null]}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		all, err := settingsIn(body)
		if err != nil {
			require.Empty(t, all)
			return
		}
		var out strings.Builder
		if err := configs.PrintSettings(&out, all, true); err != nil {
			require.Empty(t, out.String())
			return
		}
		text := out.String()
		require.False(t, strings.ContainsFunc(text, isCommand), "%q", text)
		settings := 0
		for line := range strings.Lines(text) {
			if strings.Contains(line, "  # ") {
				settings++
			}
		}
		require.GreaterOrEqual(t, settings, len(all))
		require.GreaterOrEqual(t, strings.Count(text, "\n"), len(all))
		require.LessOrEqual(t, strings.Count(text, "\n"), 2*len(all), "lines that are no setting's")
	})
}

// FuzzAdvice: whatever a gateway forecasts is a row each, one of them in force, and
// no time that has not passed is negative.
func FuzzAdvice(f *testing.F) {
	knee := insight.Forecast{TTLSeconds: 60, Known: true, Share: .99, ShareLow: .9, ShareHigh: 1, MySQLPerSecond: .1, RedisBytes: 1e6}
	for _, advice := range []insight.TTL{
		{},
		{CurrentTTLSeconds: 60, Current: knee, Knee: &knee, Forecasts: []insight.Forecast{{TTLSeconds: 1}, knee, {TTLSeconds: 3600}}, BytesPerKey: &insight.Footprint{BytesPerKey: 300, Entries: 7}, Target: .99},
		{CurrentTTLSeconds: 1, KneeRaised: true, Knee: &knee, LongerThanSeconds: 10, Retries: insight.Retries{Count: 1, P50: .001, Oldest: 1e9}, Forecasts: []insight.Forecast{{TTLSeconds: 1e300}, {TTLSeconds: math.MaxFloat64}}},
	} {
		body, err := json.Marshal(advice)
		require.NoError(f, err)
		f.Add(body, true)
	}
	for _, body := range []string{`{"forecasts":[{"ttl_seconds":9223372036.854776}]}`, `{"forecasts":null}`, `{"knee":{},"target":1e308}`, `[]`, ``} {
		f.Add([]byte(body), false)
	}
	f.Fuzz(func(t *testing.T, body []byte, away bool) {
		advice, err := adviceIn(body)
		if err != nil {
			require.Nil(t, advice)
			return
		}
		var out strings.Builder
		require.NoError(t, printAdvice(&out, advice, away))
		text := out.String()
		require.Equal(t, away, strings.HasPrefix(text, "Redis is away"))
		require.False(t, strings.ContainsFunc(text, isCommand), "%q", text)
		require.NotContains(t, text, "NaN")
		_, table, _ := strings.Cut(text, "REDIS")
		_, table, _ = strings.Cut(table, "\n")
		table, _, _ = strings.Cut(table, "\n\n")
		rows := strings.Split(table, "\n")
		require.GreaterOrEqual(t, len(rows), max(1, len(advice.Forecasts)))
		require.LessOrEqual(t, len(rows), len(advice.Forecasts)+1)
		inForce, negative := 0, advice.Current.TTLSeconds < 0
		for _, forecast := range advice.Forecasts {
			negative = negative || forecast.TTLSeconds < 0
		}
		for _, row := range rows {
			if strings.Contains(row, "in force") {
				inForce++
			}
			require.True(t, negative || !strings.HasPrefix(row, "-"), row)
		}
		require.Equal(t, 1, inForce)
	})
}
