package gateway

import (
	"math"
	"net/http"
	"strings"
	"time"
)

// preferredWait reads Prefer: wait=n (RFC 7240): whole seconds, at most limit.
// The first wait counts. What cannot be understood is ignored, as the RFC asks.
func preferredWait(h http.Header, limit time.Duration) time.Duration {
	for _, line := range h["Prefer"] {
		for preference := range strings.SplitSeq(line, ",") {
			preference, _, _ = strings.Cut(preference, ";") // parameters are not for us
			name, value, _ := strings.Cut(preference, "=")
			if !strings.EqualFold(strings.TrimSpace(name), "wait") {
				continue
			}
			return waitOf(strings.Trim(strings.TrimSpace(value), `"`), limit)
		}
	}
	return 0
}

// prefersLater reads Prefer: respond-async (RFC 7240, section 4.1).
func prefersLater(h http.Header) bool {
	for _, line := range h["Prefer"] {
		for preference := range strings.SplitSeq(line, ",") {
			preference, _, _ = strings.Cut(preference, ";")
			if strings.EqualFold(strings.TrimSpace(preference), "respond-async") {
				return true
			}
		}
	}
	return false
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
