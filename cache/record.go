package cache

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"sync"
	"time"

	"github.com/oncegate/oncegate/order"
)

// The entries of Redis, in binary. Integers are big-endian.
//
//	mark     1 'P' start(8, ms) digest(32) token(16) MAC(16)
//	receipt  1 'R' first seen(8, ms) digest(32) server(8) state(1) status(2)
//	         content type(2+n) location(2+n) body(4+n) MAC(16)
//	pointer  1 'L' first seen(8, ms) digest(32) MAC(16)
//
// The MAC is HMAC-SHA256, cut to 16 bytes, over user, key and all before it:
// an entry cannot be forged, altered or copied to another key.
const (
	recordVersion = 1
	kindMark      = 'P'
	kindReceipt   = 'R'
	kindPointer   = 'L' // the answer is too large for Redis
	headLen       = 2 + 8 + sha256.Size
	tokenLen      = 16
	macLen        = 16
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

// codec writes and reads entries. Safe for concurrent use.
type codec struct{ macs sync.Pool }

func newCodec(key []byte) *codec {
	c := &codec{}
	c.macs.New = func() any { return &macState{h: hmac.New(sha256.New, key)} }
	return c
}

type macState struct {
	h   hash.Hash
	buf [sha256.Size]byte
	pre [4]byte
}

// seal appends the MAC.
func (c *codec) seal(b []byte, user string, key order.Key) []byte {
	s := c.macs.Get().(*macState) //nolint:forcetypeassert // the pool holds nothing else
	sum := s.sum(b, user, key)
	b = append(b, sum[:macLen]...)
	c.macs.Put(s)
	return b
}

func (s *macState) sum(b []byte, user string, key order.Key) []byte {
	s.h.Reset()
	binary.BigEndian.PutUint16(s.pre[:2], uint16(len(user))) //nolint:gosec // G115: at most 64
	binary.BigEndian.PutUint16(s.pre[2:], uint16(len(key)))  //nolint:gosec // G115: at most 255
	s.h.Write(s.pre[:])
	s.h.Write([]byte(user))
	s.h.Write([]byte(key))
	s.h.Write(b)
	return s.h.Sum(s.buf[:0])
}

func appendHead(b []byte, kind byte, at time.Time, d order.Digest) []byte {
	b = append(b, recordVersion, kind)
	b = binary.BigEndian.AppendUint64(b, uint64(at.UnixMilli())) //nolint:gosec // G115: a bit pattern
	return append(b, d[:]...)
}

// mark makes an in-progress entry with a fresh owner token.
func (c *codec) mark(a order.Attempt, start time.Time) []byte {
	b := make([]byte, 0, headLen+tokenLen+macLen)
	b = appendHead(b, kindMark, start, a.Digest)
	b = b[:headLen+tokenLen]
	_, _ = rand.Read(b[headLen:]) // never fails (crypto/rand, Go 1.24)
	return c.seal(b, a.UserID, a.Key)
}

// receipt makes the entry of an answer, or a pointer when its body is longer
// than maxBody.
func (c *codec) receipt(user string, key order.Key, r *order.Receipt, maxBody int) []byte {
	resp := &r.Response
	if len(resp.Body) > maxBody || len(resp.ContentType) > 0xffff || len(resp.Location) > 0xffff {
		return c.seal(appendHead(make([]byte, 0, headLen+macLen), kindPointer, r.FirstSeen, r.Digest), user, key)
	}
	b := make([]byte, 0, headLen+19+len(resp.ContentType)+len(resp.Location)+len(resp.Body)+macLen)
	b = appendHead(b, kindReceipt, r.FirstSeen, r.Digest)
	b = binary.BigEndian.AppendUint64(b, uint64(r.Server))
	b = append(b, byte(r.State))
	b = binary.BigEndian.AppendUint16(b, uint16(resp.Status)) //nolint:gosec // G115: an HTTP status
	b = binary.BigEndian.AppendUint16(b, uint16(len(resp.ContentType)))
	b = append(b, resp.ContentType...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(resp.Location)))
	b = append(b, resp.Location...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(resp.Body))) //nolint:gosec // G115: at most maxBody
	b = append(b, resp.Body...)
	return c.seal(b, user, key)
}

// decode reads an entry of a user's key. The receipt's body does not alias b.
func (c *codec) decode(b []byte, user string, key order.Key) (entry, error) {
	if len(b) < headLen+macLen {
		return entry{}, errUnreadable
	}
	if b[0] != recordVersion {
		return entry{}, errVersion
	}
	content, mac := b[:len(b)-macLen], b[len(b)-macLen:]
	s := c.macs.Get().(*macState) //nolint:forcetypeassert // the pool holds nothing else
	ok := hmac.Equal(s.sum(content, user, key)[:macLen], mac)
	c.macs.Put(s)
	if !ok {
		return entry{}, errMAC
	}
	e := entry{kind: content[1], at: time.UnixMilli(int64(binary.BigEndian.Uint64(content[2:]))).UTC()} //nolint:gosec // G115: a bit pattern
	copy(e.digest[:], content[10:])
	rest := content[headLen:]
	switch {
	case e.kind == kindMark && len(rest) == tokenLen, e.kind == kindPointer && len(rest) == 0:
		return e, nil
	case e.kind == kindReceipt && len(rest) >= 11:
		return e, e.readReceipt(rest)
	default:
		return entry{}, errUnreadable
	}
}

func (e *entry) readReceipt(b []byte) error {
	r := &e.receipt
	r.Digest, r.FirstSeen = e.digest, e.at
	r.Server = order.ServerID(binary.BigEndian.Uint64(b))
	r.State = order.State(b[8])
	r.Response.Status = int(binary.BigEndian.Uint16(b[9:]))
	contentType, b, ok1 := cut(b[11:], 2)
	location, b, ok2 := cut(b, 2)
	body, b, ok3 := cut(b, 4)
	if !ok1 || !ok2 || !ok3 || len(b) > 0 {
		return errUnreadable
	}
	r.Response.ContentType, r.Response.Location = string(contentType), string(location)
	r.Response.Body = append([]byte(nil), body...)
	return nil
}

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
	return b[:length], b[length:], true
}
