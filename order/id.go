package order

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"time"
)

// ID identifies an order. It is a UUID version 7 (RFC 9562, section 5.7), made
// by the gateway before the insert, so that a retried transaction recognises
// its own work and so that ids sort by time.
type ID [16]byte

var errID = errors.New("must be a UUID in lower-case hexadecimal with hyphens")

// NewID makes an id for the given moment. It is safe for concurrent use.
func NewID(at time.Time) ID {
	var id ID
	// rand.Read never fails: it crashes the process instead (crypto/rand, Go 1.24).
	_, _ = rand.Read(id[6:])
	ms := at.UnixMilli()
	for i := range 6 {
		id[i] = byte(ms >> (8 * (5 - i))) //nolint:gosec // G115: one byte of it
	}
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id
}

// NewIDs makes the ids of the rows of one command, ascending in row order: the
// 12 bits after the version count up from a random start (RFC 9562, section
// 6.2, method 1). n is at most [MaxLines].
func NewIDs(at time.Time, n int) []ID {
	ids := make([]ID, n)
	for i := range ids {
		ids[i] = NewID(at)
		if i == 0 {
			ids[0][6] &^= 0x08 // room to count
			continue
		}
		counter := uint16(ids[0][6]&0x0f)<<8 | uint16(ids[0][7])
		counter += uint16(i)
		ids[i][6], ids[i][7] = 0x70|byte(counter>>8), byte(counter) //nolint:gosec // G115: one byte of it each
	}
	return ids
}

// ParseID reads the canonical text form. Other spellings of a UUID are refused,
// so that one order has one address.
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return id, errID
	}
	i := 0
	for n := range id {
		if i == 8 || i == 13 || i == 18 || i == 23 { // the hyphens, checked above
			i++
		}
		hi, lo := hexValue(s[i]), hexValue(s[i+1])
		if hi > 15 || lo > 15 {
			return ID{}, errID
		}
		id[n] = hi<<4 | lo
		i += 2
	}
	return id, nil
}

func hexValue(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	default:
		return 0xff
	}
}

// Append appends the canonical text form.
func (id ID) Append(b []byte) []byte {
	b = hex.AppendEncode(b, id[0:4])
	b = append(b, '-')
	b = hex.AppendEncode(b, id[4:6])
	b = append(b, '-')
	b = hex.AppendEncode(b, id[6:8])
	b = append(b, '-')
	b = hex.AppendEncode(b, id[8:10])
	b = append(b, '-')
	return hex.AppendEncode(b, id[10:16])
}

// String returns the canonical text form.
func (id ID) String() string { return string(id.Append(make([]byte, 0, 36))) }

// IsZero reports whether the id is unset.
func (id ID) IsZero() bool { return id == ID{} }
