package cache

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"sync"

	"github.com/oncegate/oncegate/order"
)

// macLen is the length of a MAC in a record: HMAC-SHA256, cut.
const macLen = 16

// macs seals records, so that an entry cannot be forged, altered or copied to
// another key by whoever can write to Redis. Safe for concurrent use.
type macs struct{ pool sync.Pool }

// macState is one keyed hash and its scratch, used again and again.
type macState struct {
	h       hash.Hash
	scratch []byte
}

func newMACs(key []byte) *macs {
	m := &macs{}
	m.pool.New = func() any { return &macState{h: hmac.New(sha256.New, key)} }
	return m
}

// seal appends the MAC of a record that belongs to a user's key.
func (m *macs) seal(record []byte, user string, key order.Key) []byte {
	s := m.pool.Get().(*macState) //nolint:forcetypeassert // the pool holds nothing else
	record = append(record, s.sum(record, user, key)...)
	m.pool.Put(s)
	return record
}

// holds reports whether a MAC is that of a record.
func (m *macs) holds(record, mac []byte, user string, key order.Key) bool {
	s := m.pool.Get().(*macState) //nolint:forcetypeassert // the pool holds nothing else
	ok := hmac.Equal(s.sum(record, user, key), mac)
	m.pool.Put(s)
	return ok
}

// sum hashes user and key with their lengths in front, so that no bytes can
// move from one field to the next. The result is the scratch's.
func (s *macState) sum(record []byte, user string, key order.Key) []byte {
	b := binary.BigEndian.AppendUint32(s.scratch[:0], uint32(len(user))) //nolint:gosec // G115: at most 64
	b = append(b, user...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(key))) //nolint:gosec // G115: at most 255
	b = append(b, key...)
	s.h.Reset()
	_, _ = s.h.Write(b)
	_, _ = s.h.Write(record)
	s.scratch = s.h.Sum(b[:0])
	return s.scratch[:macLen]
}
