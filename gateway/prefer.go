package gateway

import (
	"math"
	"net/http"
	"strings"
	"time"
)

// preferredWait reads Prefer: wait=n (RFC 7240): whole seconds, at most limit. What
// cannot be understood is ignored, as the RFC asks.
func preferredWait(h http.Header, limit time.Duration) time.Duration {
	value, _ := preference(h, "wait")
	return waitOf(value, limit)
}

// prefersLater reads Prefer: respond-async (RFC 7240, section 4.1).
func prefersLater(h http.Header) bool {
	value, found := preference(h, "respond-async")
	return found && value == ""
}

// preference finds the first preference of a name, which is the one that counts.
func preference(h http.Header, name string) (value string, found bool) {
	for _, line := range h["Prefer"] {
		for line != "" {
			var one string
			one, line = cutUnquoted(line, ',')
			one, _ = cutUnquoted(one, ';') // parameters are not for us
			is, text, _ := strings.Cut(one, "=")
			if strings.EqualFold(strings.TrimSpace(is), name) {
				return strings.Trim(strings.TrimSpace(text), `"`), true
			}
		}
	}
	return "", false
}

// cutUnquoted cuts a text at the first separator that no quotes are around: what
// is between them is somebody's words.
func cutUnquoted(s string, separator byte) (before, after string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && quoted:
			i++ // the next character stands for itself
		case c == '"':
			quoted = !quoted
		case c == separator && !quoted:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

func waitOf(value string, limit time.Duration) time.Duration {
	if value == "" {
		return 0
	}
	var n int64
	for i := range len(value) {
		if !isDigit(value[i]) {
			return 0
		}
		if n < math.MaxInt32 { // far beyond any limit, and no overflow
			n = n*10 + int64(value[i]-'0')
		}
	}
	// Whole seconds, so that what was applied can be said.
	limit = limit.Truncate(time.Second)
	if n > int64(limit/time.Second) {
		return limit
	}
	return time.Duration(n) * time.Second
}
