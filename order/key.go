package order

import (
	"errors"
	"fmt"
)

// Key is the idempotency key of one intent, as the client chose it: 1 to
// [MaxKeyLen] visible ASCII characters without quote, comma and backslash.
// Case matters. The empty Key stands for a request without one.
type Key string

// MaxKeyLen is the longest key, in bytes.
const MaxKeyLen = 255

// KeyPattern is the regular expression that every key matches.
const KeyPattern = `^[!#-+\--\[\]-~]{1,255}$`

// ErrKeyInvalid says that a text is not an idempotency key.
var ErrKeyInvalid = errors.New("idempotency key is invalid")

// ParseKey reads the value of one Idempotency-Key header line, raw or as a
// quoted string (RFC 9651, section 3.3.3); both spell the same key. A comma is
// refused, for a proxy joins two header lines with it. The error wraps
// [ErrKeyInvalid] and never repeats the value.
func ParseKey(value string) (Key, error) {
	if n := len(value); n >= 2 && value[0] == '"' && value[n-1] == '"' {
		value = value[1 : n-1]
	}
	if value == "" {
		return "", fmt.Errorf("%w: it is empty", ErrKeyInvalid)
	}
	if len(value) > MaxKeyLen {
		return "", fmt.Errorf("%w: it is longer than %d characters", ErrKeyInvalid, MaxKeyLen)
	}
	for i := range len(value) {
		switch c := value[i]; {
		case c == '"' || c == ',' || c == '\\':
			return "", fmt.Errorf("%w: character %d is a quote, comma or backslash", ErrKeyInvalid, i+1)
		case c <= ' ' || c > '~':
			return "", fmt.Errorf("%w: character %d is not visible ASCII", ErrKeyInvalid, i+1)
		}
	}
	return Key(value), nil
}
