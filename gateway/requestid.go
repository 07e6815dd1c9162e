package gateway

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
)

// requestID returns the caller's own id if it is harmless, or makes one. It
// tells requests apart in logs; nothing rests on it. The key that the path names
// is given unescaped; "" if it names none.
func requestID(r *http.Request, keyInPath string) string {
	if v := r.Header["X-Request-Id"]; len(v) == 1 && harmlessID(v[0]) && !tellsKey(v[0], r, keyInPath) {
		return v[0]
	}
	var id [16]byte
	binary.LittleEndian.PutUint64(id[:8], rand.Uint64()) //nolint:gosec // G404: not a secret
	binary.LittleEndian.PutUint64(id[8:], rand.Uint64()) //nolint:gosec // G404: not a secret
	return hex.EncodeToString(id[:])
}

func harmlessID(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'z') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// tellingLen is from which length on a key is looked for inside of a text. A
// shorter one is there by chance.
const tellingLen = 8

// tellsKey reports whether a text of the caller's is the idempotency key of its
// request, or holds it: some clients have one UUID for everything, and a key is
// for no log.
func tellsKey(text string, r *http.Request, keyInPath string) bool {
	text = bare(text)
	tells := func(key string) bool {
		key = bare(key)
		return text == key || len(key) >= tellingLen && strings.Contains(text, key)
	}
	return keyInPath != "" && tells(keyInPath) || slices.ContainsFunc(r.Header["Idempotency-Key"], tells)
}

// bare leaves of a text what a reader needs to know it again, however a UUID is
// written.
func bare(text string) string {
	return strings.ToLower(strings.ReplaceAll(strings.Trim(text, `" `), "-", ""))
}
