package gateway

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
)

// requestID returns the caller's own id if it is harmless, or makes one. It
// tells requests apart in logs; nothing rests on it.
func requestID(r *http.Request) string {
	if v := r.Header["X-Request-Id"]; len(v) == 1 && harmlessID(v[0]) {
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
