package gateway

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/oncegate/oncegate/order"
)

const hexDigits = "0123456789abcdef"

// appendString appends a JSON string. It escapes what RFC 8259 demands and
// nothing else, so that a text comes back as it was sent; what is not UTF-8 is
// replaced, for it cannot be said in JSON.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
			b = append(b, s[start:i]...)
			b = append(b, "\ufffd"...)
		} else {
			b = append(b, s[start:i]...)
			b = appendEscape(b, c)
		}
		i++
		start = i
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

func appendEscape(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	default:
		return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
	}
}

// appendMember appends a member's name, with a comma where one is needed. The
// name is ours and needs no escape.
func appendMember(b []byte, name string) []byte {
	if n := len(b); n > 0 && b[n-1] != '{' {
		b = append(b, ',')
	}
	b = append(b, '"')
	b = append(b, name...)
	return append(b, '"', ':')
}

func appendText(b []byte, name, value string) []byte {
	return appendString(appendMember(b, name), value)
}

func appendBool(b []byte, name string, value bool) []byte {
	b = appendMember(b, name)
	if value {
		return append(b, "true"...)
	}
	return append(b, "false"...)
}

func appendInt(b []byte, name string, value int64) []byte {
	return strconv.AppendInt(appendMember(b, name), value, 10)
}

func appendTime(b []byte, name string, at time.Time) []byte {
	b = append(appendMember(b, name), '"')
	b = at.UTC().AppendFormat(b, order.TimeFormat)
	return append(b, '"')
}
