package gateway

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a value that is skipped.
const maxDepth = 16

// scanner reads JSON (RFC 8259) strictly and without reflection. It works on a
// string, so that texts without escapes are parts of it and are not copied.
//
// The first syntax error ends it: fault holds the reason, and every method
// returns a zero value from then on.
type scanner struct {
	s     string
	i     int
	fault string
}

func (sc *scanner) fail(reason string) {
	if sc.fault == "" {
		sc.fault = reason
	}
	sc.i = len(sc.s)
}

func (sc *scanner) space() {
	for sc.i < len(sc.s) {
		switch sc.s[sc.i] {
		case ' ', '\t', '\n', '\r':
			sc.i++
		default:
			return
		}
	}
}

// peek skips white space and returns the next byte, 0 at the end.
func (sc *scanner) peek() byte {
	sc.space()
	if sc.i == len(sc.s) {
		return 0
	}
	return sc.s[sc.i]
}

// take skips white space and consumes c, which is not 0, if it is next.
func (sc *scanner) take(c byte) bool {
	if sc.peek() != c {
		return false
	}
	sc.i++
	return true
}

// item tells whether another element of an array or object that is closed by
// end follows, and consumes what stands before it.
func (sc *scanner) item(first bool, end byte) bool {
	switch {
	case sc.fault != "", sc.take(end):
		return false
	case first || sc.take(','):
		return true
	case sc.i == len(sc.s):
		sc.fail("is cut short")
	default:
		sc.fail("is not valid JSON: a comma or the end is missing")
	}
	return false
}

// name reads a member's name and the colon after it.
func (sc *scanner) name() string {
	if sc.peek() != '"' {
		sc.fail("is not valid JSON: a member name in quotes is missing")
		return ""
	}
	name := sc.text()
	if sc.fault == "" && !sc.take(':') {
		sc.fail("is not valid JSON: a colon is missing")
	}
	return name
}

// text reads a string that begins here.
func (sc *scanner) text() string {
	sc.i++
	start := sc.i
	ascii := true
	for sc.i < len(sc.s) {
		switch c := sc.s[sc.i]; {
		case c == '"':
			t := sc.s[start:sc.i]
			sc.i++
			return sc.utf8(t, ascii)
		case c == '\\':
			return sc.escapedText(start)
		case c < ' ':
			sc.fail("is not valid JSON: a control character in a string")
			return ""
		case c >= utf8.RuneSelf:
			ascii = false
		}
		sc.i++
	}
	sc.fail("is cut short")
	return ""
}

func (sc *scanner) utf8(t string, ascii bool) string {
	if !ascii && !utf8.ValidString(t) {
		sc.fail("is not valid UTF-8")
		return ""
	}
	return t
}

// escapedText goes on with a string that has an escape at the current position.
func (sc *scanner) escapedText(start int) string {
	var b strings.Builder
	b.WriteString(sc.s[start:sc.i])
	for sc.i < len(sc.s) {
		switch c := sc.s[sc.i]; {
		case c == '"':
			sc.i++
			return sc.utf8(b.String(), false)
		case c == '\\':
			r, ok := sc.escape()
			if !ok {
				return ""
			}
			b.WriteRune(r)
		case c < ' ':
			sc.fail("is not valid JSON: a control character in a string")
			return ""
		default:
			b.WriteByte(c)
			sc.i++
		}
	}
	sc.fail("is cut short")
	return ""
}

// escape reads one escape sequence. A surrogate without its other half names no
// character: two such texts must not become one, so they are refused.
func (sc *scanner) escape() (rune, bool) {
	if sc.i+1 >= len(sc.s) {
		sc.fail("is cut short")
		return 0, false
	}
	c := sc.s[sc.i+1]
	sc.i += 2
	switch c {
	case '"', '\\', '/':
		return rune(c), true
	case 'b':
		return '\b', true
	case 'f':
		return '\f', true
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	case 'u':
		r, ok := sc.hex4()
		if ok && utf16.IsSurrogate(r) {
			low := rune(0)
			if strings.HasPrefix(sc.s[sc.i:], `\u`) {
				sc.i += 2
				low, ok = sc.hex4()
			}
			if r = utf16.DecodeRune(r, low); ok && r == utf8.RuneError {
				sc.fail("has a lone surrogate")
				return 0, false
			}
		}
		return r, ok
	}
	sc.fail("is not valid JSON: an unknown escape")
	return 0, false
}

func (sc *scanner) hex4() (rune, bool) {
	if sc.i+4 > len(sc.s) {
		sc.fail("is cut short")
		return 0, false
	}
	var r rune
	for _, c := range []byte(sc.s[sc.i : sc.i+4]) {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			sc.fail("is not valid JSON: an unknown escape")
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	sc.i += 4
	return r, true
}

// number reads the characters of a number that begins here. It checks the
// grammar only: what they mean is the caller's to say.
func (sc *scanner) number() string {
	start := sc.i
	if sc.i < len(sc.s) && sc.s[sc.i] == '-' {
		sc.i++
	}
	ok := true
	if sc.i < len(sc.s) && sc.s[sc.i] == '0' {
		sc.i++
	} else {
		ok = sc.digits()
	}
	if ok && sc.i < len(sc.s) && sc.s[sc.i] == '.' {
		sc.i++
		ok = sc.digits()
	}
	if ok && sc.i < len(sc.s) && sc.s[sc.i]|0x20 == 'e' {
		sc.i++
		if sc.i < len(sc.s) && (sc.s[sc.i] == '+' || sc.s[sc.i] == '-') {
			sc.i++
		}
		ok = sc.digits()
	}
	// 01, 1a, 1.2.3: more of the same word follows.
	if !ok || sc.i < len(sc.s) && isWord(sc.s[sc.i]) {
		sc.fail("is not a valid JSON number")
		return ""
	}
	return sc.s[start:sc.i]
}

func (sc *scanner) digits() bool {
	start := sc.i
	for sc.i < len(sc.s) && sc.s[sc.i] >= '0' && sc.s[sc.i] <= '9' {
		sc.i++
	}
	return sc.i > start
}

func isWord(c byte) bool {
	return c == '_' || c == '.' || c == '+' || c == '-' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// literal consumes null, true or false.
func (sc *scanner) literal(word string) bool {
	end := sc.i + len(word)
	if !strings.HasPrefix(sc.s[sc.i:], word) || end < len(sc.s) && isWord(sc.s[end]) {
		return false
	}
	sc.i = end
	return true
}

// skip reads a value of any kind, for its grammar only.
func (sc *scanner) skip(depth int) {
	if depth > maxDepth {
		sc.fail("is nested too deeply")
		return
	}
	switch c := sc.peek(); {
	case c == '"':
		sc.text()
	case c == '-' || c >= '0' && c <= '9':
		sc.number()
	case c == '{':
		sc.i++
		for first := true; sc.item(first, '}'); first = false {
			sc.name()
			sc.skip(depth + 1)
		}
	case c == '[':
		sc.i++
		for first := true; sc.item(first, ']'); first = false {
			sc.skip(depth + 1)
		}
	case sc.i == len(sc.s):
		sc.fail("is cut short")
	case sc.literal("null"), sc.literal("true"), sc.literal("false"):
	default:
		sc.fail("is not valid JSON")
	}
}
