package order

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of a request.
const (
	MaxUserIDLen  = 64        // bytes
	MaxSKULen     = 64        // characters
	MaxOrderNoLen = 64        // characters
	MaxQuantity   = 1_000_000 // pieces in one line
	MaxLines      = 500       // lines of one command, and the upper bound of the setting
)

// Operation names what a command does. It is part of the digest: one key used
// for two operations is a key used for two things.
type Operation string

// The operations.
const (
	CreateOrder Operation = "orders.create"
	CreateBatch Operation = "order-batches.create"
)

// Line is what one order is for.
type Line struct {
	SKU             string
	Quantity        int64
	Amount          Amount // of the whole line
	ExternalOrderNo string // the caller's own business number; empty when absent
}

// Digest is the SHA-256 over the operation and the validated content of a
// command in canonical form. Spelling (key order, white space, 1.0 against
// 1.00, escapes) does not reach it.
type Digest [sha256.Size]byte

// Command is one validated intent: all lines become orders, or none does.
// It is immutable once made and safe to share.
type Command struct {
	UserID    string
	Key       Key // empty: an ordinary request that nothing protects
	Operation Operation
	Lines     []Line
	Digest    Digest
}

// NewCommand validates the lines and computes the digest. The error is an
// [*InvalidError] that lists every fault with its path.
func NewCommand(op Operation, userID string, key Key, lines []Line) (*Command, error) {
	if len(lines) > MaxLines {
		return nil, &InvalidError{Faults: []FieldFault{{"orders", "must have at most " + strconv.Itoa(MaxLines) + " rows"}}}
	}
	var faults []FieldFault
	for i := range lines {
		prefix := ""
		if op == CreateBatch {
			prefix = "orders[" + strconv.Itoa(i) + "]."
		}
		faults = lines[i].appendFaults(faults, prefix, op == CreateBatch)
	}
	switch {
	case op == CreateBatch && len(lines) == 0:
		faults = append(faults, FieldFault{"orders", "must have at least one row"})
	case op != CreateBatch && len(lines) != 1:
		faults = append(faults, FieldFault{"", "must be exactly one order"})
	}
	if len(faults) > 0 {
		return nil, &InvalidError{Faults: faults}
	}
	c := &Command{UserID: userID, Key: key, Operation: op, Lines: lines}
	c.Digest = digest(op, lines)
	return c, nil
}

// Guarded reports whether the command can be sent again and make no second order:
// it has a key, or each of its lines a business number.
func (c *Command) Guarded() bool {
	return c.Key != "" || !slices.ContainsFunc(c.Lines, func(l Line) bool { return l.ExternalOrderNo == "" })
}

func (l *Line) appendFaults(faults []FieldFault, prefix string, numbered bool) []FieldFault {
	if reason := textFault(l.SKU, MaxSKULen); reason != "" {
		faults = append(faults, FieldFault{prefix + "sku", reason})
	}
	if l.Quantity < 1 || l.Quantity > MaxQuantity {
		faults = append(faults, FieldFault{prefix + "quantity", "must be a whole number from 1 to " + strconv.Itoa(MaxQuantity)})
	}
	if l.Amount < 1 || l.Amount > MaxAmount {
		faults = append(faults, FieldFault{prefix + "amount", "must be from 0.01 to " + MaxAmount.String()})
	}
	if numbered || l.ExternalOrderNo != "" {
		if reason := textFault(l.ExternalOrderNo, MaxOrderNoLen); reason != "" {
			faults = append(faults, FieldFault{prefix + "external_order_no", reason})
		}
	}
	return faults
}

// textFault says why a text cannot be stored and compared byte for byte on
// every engine: collations pad with blanks, so none may stand at either end.
func textFault(s string, limit int) string {
	switch {
	case s == "":
		return "is required and must not be empty"
	case !utf8.ValidString(s):
		return "must be valid UTF-8"
	case utf8.RuneCountInString(s) > limit:
		return "must have at most " + strconv.Itoa(limit) + " characters"
	}
	for i, r := range s {
		if unicode.IsControl(r) {
			return "must not contain control characters"
		}
		if unicode.IsSpace(r) && (i == 0 || i+utf8.RuneLen(r) == len(s)) {
			return "must not begin or end with a blank"
		}
	}
	return ""
}

// ValidUserID reports whether a subject can be a user: 1 to [MaxUserIDLen]
// visible ASCII characters.
func ValidUserID(s string) bool {
	if s == "" || len(s) > MaxUserIDLen {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// ValidSKU reports whether a text may name a stock row.
func ValidSKU(s string) bool { return textFault(s, MaxSKULen) == "" }

// digest hashes length-prefixed fields, so that no two contents share a form.
// The leading version must change whenever the form does; a golden test pins it.
func digest(op Operation, lines []Line) Digest {
	var small [512]byte // enough for a single order, without an allocation
	b := appendDigestText(small[:0], "oncegate/1")
	b = appendDigestText(b, string(op))
	b = appendDigestNumber(b, int64(len(lines)))
	for i := range lines {
		l := &lines[i]
		b = appendDigestText(b, l.SKU)
		b = appendDigestNumber(b, l.Quantity)
		b = appendDigestNumber(b, int64(l.Amount))
		b = appendDigestText(b, l.ExternalOrderNo)
	}
	return sha256.Sum256(b)
}

func appendDigestText(b []byte, s string) []byte {
	return append(appendDigestNumber(b, int64(len(s))), s...)
}

func appendDigestNumber(b []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(n)) //nolint:gosec // G115: a bit pattern to be hashed, sign included
}

// TimePrecision is the precision of every stored and answered time, so that the
// first answer, a replay and a read agree to the character.
const TimePrecision = time.Millisecond

// TimeFormat is the form of every time in an answer: UTC, three decimals.
const TimeFormat = "2006-01-02T15:04:05.000Z"
