package cache

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"time"

	"github.com/oncegate/oncegate/order"
)

// The entries of Redis, in binary. Integers are big-endian.
//
//	mark     1 'P' start(8, ms) digest(32) token(16) MAC(16)
//	receipt  1 'R' first seen(8, ms) digest(32) server(8) state(1) status(2)
//	         content type(2+n) location(2+n) body(4+n) MAC(16)
//	pointer  1 'L' first seen(8, ms) digest(32) MAC(16)
const (
	recordVersion = 1
	kindMark      = 'P'
	kindReceipt   = 'R'
	kindPointer   = 'L' // the answer is too large for Redis

	digestLen = len(order.Digest{})
	headLen   = 2 + 8 + digestLen
	tokenLen  = 16
	fixedLen  = 8 + 1 + 2 // server, state, status

	// maxBody is the upper bound of Options.MaxBody; what is longer than
	// maxRecord is not even hashed.
	maxBody   = 1 << 20
	maxText   = 1<<16 - 1 // content type, location
	maxRecord = headLen + fixedLen + 2 + maxText + 2 + maxText + 4 + maxBody + macLen
)

var (
	errVersion    = errors.New("another version's entry")
	errMAC        = errors.New("an entry with a wrong MAC")
	errUnreadable = errors.New("an unreadable entry")
)

// entry is a decoded record.
type entry struct {
	kind    byte
	at      time.Time // start of a mark, first seen of a receipt
	digest  order.Digest
	receipt order.Receipt // for kindReceipt
}

// codec writes and reads records. Safe for concurrent use.
type codec struct{ macs *macs }

func newCodec(macKey []byte) *codec { return &codec{newMACs(macKey)} }

func appendHead(b []byte, kind byte, at time.Time, d *order.Digest) []byte {
	b = append(b, recordVersion, kind)
	b = binary.BigEndian.AppendUint64(b, uint64(at.UnixMilli()))
	return append(b, d[:]...)
}

// mark makes an in-progress record with a fresh owner token.
func (c *codec) mark(a *order.Attempt, start time.Time) []byte {
	b := make([]byte, 0, headLen+tokenLen+macLen)
	b = appendHead(b, kindMark, start, &a.Digest)
	b = b[:headLen+tokenLen]
	_, _ = rand.Read(b[headLen:]) // never fails: it crashes the process instead (crypto/rand, Go 1.24)
	return c.macs.seal(b, a.UserID, a.Key)
}

// receipt makes the record of an answer, or a pointer to the database when its
// body is longer than limit.
func (c *codec) receipt(user string, key order.Key, r *order.Receipt, limit int) []byte {
	resp := &r.Response
	if len(resp.Body) > limit || len(resp.ContentType) > maxText || len(resp.Location) > maxText {
		b := make([]byte, 0, headLen+macLen)
		return c.macs.seal(appendHead(b, kindPointer, r.FirstSeen, &r.Digest), user, key)
	}
	texts := len(resp.ContentType) + len(resp.Location) + len(resp.Body)
	b := make([]byte, 0, headLen+fixedLen+2+2+4+texts+macLen)
	b = appendHead(b, kindReceipt, r.FirstSeen, &r.Digest)
	b = binary.BigEndian.AppendUint64(b, uint64(r.Server))
	b = append(b, byte(r.State))
	b = binary.BigEndian.AppendUint16(b, uint16(resp.Status)) //nolint:gosec // G115: an HTTP status
	b = appendText(b, resp.ContentType)
	b = appendText(b, resp.Location)
	b = binary.BigEndian.AppendUint32(b, uint32(len(resp.Body))) //nolint:gosec // G115: at most limit
	b = append(b, resp.Body...)
	return c.macs.seal(b, user, key)
}

func appendText(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(s))) //nolint:gosec // G115: at most maxText
	return append(b, s...)
}

// decode reads the record of a user's key. The body of a receipt is a part of
// b, which must not change any more.
func (c *codec) decode(b []byte, user string, key order.Key) (entry, error) {
	switch {
	case len(b) < headLen+macLen || len(b) > maxRecord:
		return entry{}, errUnreadable
	case b[0] != recordVersion:
		return entry{}, errVersion
	}
	content, mac := b[:len(b)-macLen], b[len(b)-macLen:]
	if !c.macs.holds(content, mac, user, key) {
		return entry{}, errMAC
	}
	e := entry{kind: content[1], at: time.UnixMilli(int64(binary.BigEndian.Uint64(content[2:]))).UTC()} //nolint:gosec // G115: a bit pattern
	copy(e.digest[:], content[2+8:])
	rest := content[headLen:]
	switch {
	case e.kind == kindMark && len(rest) == tokenLen, e.kind == kindPointer && len(rest) == 0:
		return e, nil
	case e.kind == kindReceipt && len(rest) >= fixedLen:
		if e.readReceipt(rest) {
			return e, nil
		}
	}
	return entry{}, errUnreadable
}

// readReceipt reads what follows the head, all of it.
func (e *entry) readReceipt(b []byte) bool {
	r := &e.receipt
	r.Digest, r.FirstSeen = e.digest, e.at
	r.Server = order.ServerID(binary.BigEndian.Uint64(b))
	r.State = order.State(b[8])
	r.Response.Status = int(binary.BigEndian.Uint16(b[9:]))
	contentType, b, ok1 := cut(b[fixedLen:], 2)
	location, b, ok2 := cut(b, 2)
	body, b, ok3 := cut(b, 4)
	if !ok1 || !ok2 || !ok3 || len(b) > 0 || !final(r) {
		return false
	}
	r.Response.ContentType, r.Response.Location = string(contentType), string(location)
	r.Response.Body = body
	return true
}

// final reports whether a receipt will never change. Only such a one is kept: a
// request that is still to be carried out has no answer yet.
func final(r *order.Receipt) bool { return r.State == order.Succeeded || r.State == order.Failed }

// cut takes a field that begins with its length in n bytes.
func cut(b []byte, n int) (field, rest []byte, ok bool) {
	if len(b) < n {
		return nil, nil, false
	}
	length := uint64(0)
	for _, c := range b[:n] {
		length = length<<8 | uint64(c)
	}
	if b = b[n:]; uint64(len(b)) < length {
		return nil, nil, false
	}
	return b[:length:length], b[length:], true
}
