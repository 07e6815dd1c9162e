package gateway

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

// FuzzBody: a body is read as io.ReadAll would, in whatever pieces it comes, or
// not at all; and what is beyond its limit is not read.
func FuzzBody(f *testing.F) {
	f.Add([]byte("{}"), 1, uint8(0), true)
	f.Add([]byte("0123456789"), 9, uint8(1), true)
	f.Add([]byte("0123456789"), 10, uint8(2), false)
	f.Add([]byte{}, 0, uint8(3), true)
	f.Add([]byte("a"), placelessBody+1, uint8(4), false)
	f.Add([]byte("ab"), placelessBody/2, uint8(1), true)
	pool := &bodies{} // shared: what one body leaves must not be in another
	f.Fuzz(func(t *testing.T, piece []byte, limit int, how uint8, room bool) {
		limit = min(max(limit, 0), 2*placelessBody)
		sent := piece
		if how&4 != 0 && len(piece) > 0 { // a large one
			sent = bytes.Repeat(piece, 1+2*placelessBody/len(piece))
		}
		counted := &countingReader{from: bytes.NewReader(sent)}
		var from io.Reader = counted
		switch how & 3 {
		case 1:
			from = iotest.OneByteReader(from)
		case 2:
			from = iotest.HalfReader(from)
		case 3:
			from = iotest.DataErrReader(from)
		}
		asked := 0
		r := &http.Request{Body: io.NopCloser(from), ContentLength: -1}
		body, p, err := pool.read(r, limit, func() bool { asked++; return room })
		require.LessOrEqual(t, asked, 1)
		require.True(t, asked == 0 || len(sent) > placelessBody, "small ones need no room")
		switch {
		case p == nil:
			require.NoError(t, err)
			require.Equal(t, string(sent), body)
			require.LessOrEqual(t, len(sent), limit)
			require.True(t, room || len(sent) <= placelessBody)
		case p.code == CodeOverloaded:
			require.True(t, !room && len(sent) > placelessBody)
		default:
			require.Equal(t, CodeBodyTooLarge, p.code)
			require.Greater(t, len(sent), limit)
		}
		require.LessOrEqual(t, counted.n, 2*max(limit, placelessBody)+firstBuffer, "read beyond the limit")
	})
}

type countingReader struct {
	from io.Reader
	n    int
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.n += n
	return n, err
}

// FuzzDecodeSettingChange: what is taken means the same to encoding/json.
func FuzzDecodeSettingChange(f *testing.F) {
	for _, body := range []string{
		`{"value":"48h","reason":"sale tonight","dry_run":false}`, `{"value":null,"reason":" x "}`, `{"value":5,"reason":"x"}`, `{"value":true,"reason":"x","dry_run":true}`,
		`{"value":1e3,"reason":"x"}`, `{"value":-0.5,"reason":"x"}`, `{"value":"\u0031","reason":"x"}`, `{"value":[],"reason":"x"}`, `{"reason":"x"}`, `{}`, `[`, `{"value":1,"value":2,"reason":"x"}`, `{"value":1,"reason":"a\nb"}`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		c, err := decodeSettingChange(body)
		if err != nil {
			require.Equal(t, SettingChange{}, c)
			return
		}
		var want struct {
			Value  json.RawMessage `json:"value"`
			Reason string          `json:"reason"`
			DryRun bool            `json:"dry_run"`
		}
		d := json.NewDecoder(strings.NewReader(body))
		d.DisallowUnknownFields()
		require.NoError(t, d.Decode(&want), body)
		require.ErrorIs(t, d.Decode(&struct{}{}), io.EOF, "nothing follows")
		require.Equal(t, strings.TrimSpace(want.Reason), c.Reason)
		require.False(t, strings.ContainsFunc(c.Reason, unicode.IsControl))
		require.True(t, c.Reason != "" && utf8.RuneCountInString(c.Reason) <= maxSettingReason)
		require.Equal(t, want.DryRun, c.DryRun)
		text := string(want.Value)
		switch {
		case text == "null":
			require.Nil(t, c.Value)
		case text[0] == '"':
			require.NoError(t, json.Unmarshal(want.Value, &text))
			require.Equal(t, text, *c.Value)
		default:
			require.Equal(t, text, *c.Value, "a number, true or false, as it is written")
		}
	})
}

// FuzzClaims: a token that its issuer has signed is believed only for the user and
// the scopes that its exact claims name, for this service, and while it lasts.
func FuzzClaims(f *testing.F) {
	secret := []byte("a secret for fuzzing, 32 bytes long")
	now := time.Unix(1_800_000_000, 0)
	keys, err := HS256Keys(secret)
	require.NoError(f, err)
	v, err := NewTokenVerifier(TokenOptions{
		Keys: keys, Algorithms: []string{"HS256"}, Audience: "oncegate", Issuer: "fuzz", Now: func() time.Time { return now }, MaxLen: 1 << 20, CacheSize: 16,
	})
	require.NoError(f, err)
	for _, payload := range []string{
		`{"sub":"alice","aud":"oncegate","iss":"fuzz","exp":1800000060,"scope":"orders admin"}`,
		`{"sub":"alice","aud":["x","oncegate"],"iss":"fuzz","exp":1800000060.5,"scp":["orders"]}`,
		`{"Sub":"alice","sub":"bob","aud":"oncegate","iss":"fuzz","exp":1800000060}`,
		`{"sub":"alice","SUB":"bob","aud":"oncegate","iss":"fuzz","exp":1800000060}`,
		`{"sub":null,"aud":"oncegate","iss":"fuzz","exp":1800000060}`,
		`{"sub":"null","aud":"oncegate","iss":"fuzz","exp":1800000060}`,
		`{"sub":"alice","aud":"oncegate","iss":"fuzz","exp":1e300}`,
		`{"sub":"alice","aud":"oncegate","iss":"fuzz","exp":"1800000060"}`,
		`{"sub":"alice","aud":"oncegate","iss":"fuzz","exp":1799999999}`,
		`{"sub":"alice","aud":"oncegate","iss":"fuzz"}`,
		`{"sub":"alice","aud":{},"iss":"fuzz","exp":1800000060,"nbf":1800000030}`, `null`, `[]`, `{`,
	} {
		f.Add(payload)
	}
	f.Fuzz(func(t *testing.T, payload string) {
		signed := encodeSegment(`{"alg":"HS256","typ":"JWT"}`) + "." + encodeSegment(payload)
		sig, err := jwt.SigningMethodHS256.Sign(signed, secret)
		require.NoError(t, err)
		who, err := v.Authenticate(context.Background(), signed+"."+encodeSegment(string(sig)))
		if err != nil {
			require.ErrorIs(t, err, ErrTokenInvalid)
			return
		}
		var want map[string]any // names are exact in a map
		require.NoError(t, json.Unmarshal([]byte(payload), &want))
		require.Equal(t, want["sub"], who.UserID)
		require.True(t, ValidSubject(who.UserID))
		require.Equal(t, "fuzz", want["iss"])
		if list, several := want["aud"].([]any); several {
			require.Contains(t, list, "oncegate")
		} else {
			require.Equal(t, "oncegate", want["aud"])
		}
		exp := fmt.Sprint(want["exp"]) // an issuer may write it as a text
		until, err := strconv.ParseFloat(exp, 64)
		require.NoError(t, err)
		require.Greater(t, until, float64(now.Unix()))
		var scopes []string
		for _, name := range []string{"scope", "scp"} {
			switch s := want[name].(type) {
			case string:
				scopes = append(scopes, strings.Fields(s)...)
			case []any:
				for _, one := range s {
					text, _ := one.(string) // null is an empty one
					scopes = append(scopes, text)
				}
			}
		}
		require.ElementsMatch(t, scopes, who.Scopes)
	})
}

func encodeSegment(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
