//go:build unix

package bench

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"
	"time"
)

// past is what customers ordered before the bench: a pure function of the
// order's number, so that both tables can be written in the order of their
// primary keys without anything being kept. Orders are even over a month, the
// users take turns.
type past struct {
	count, users int64
	start        time.Time
	step         time.Duration
}

func newPast(records int64, users int, now time.Time) *past {
	const month = 30 * 24 * time.Hour
	return &past{
		count: records, users: int64(users),
		start: now.Add(-month).UTC(), step: month / time.Duration(records),
	}
}

// bygone is one order of the past.
type bygone struct {
	id, key [16]byte
	digest  [32]byte
	at      time.Time
}

func (p *past) order(i int64) bygone {
	o := bygone{at: p.start.Add(time.Duration(i) * p.step)}
	var seed [8]byte
	binary.BigEndian.PutUint64(seed[:], uint64(i)) //nolint:gosec // G115: a count
	o.digest = sha256.Sum256(seed[:])
	copy(o.key[:], o.digest[:16])
	// UUIDv7: the time, then enough of the number to ascend within a millisecond.
	binary.BigEndian.PutUint64(o.id[:8], uint64(o.at.UnixMilli())<<16|0x7000|uint64(i)&0xfff) //nolint:gosec // G115: after 1970
	copy(o.id[8:], o.digest[16:24])
	o.id[8] = o.id[8]&0x3f | 0x80
	return o
}

func (o *bygone) sku() string { return "sku-" + strconv.Itoa(int(o.digest[24])) }

const timeColumn = "2006-01-02 15:04:05.000"

// orders writes the rows of the orders by their ids.
func (p *past) orders() rowSource {
	var i int64
	return func(b []byte) ([]byte, bool) {
		if i == p.count {
			return b, false
		}
		o := p.order(i)
		b = hex.AppendEncode(b, o.id[:])
		b = append(b, '\t')
		b = append(b, userName(int(i%p.users))...)
		b = append(b, '\t')
		b = append(b, uuidText(o.key)...)
		b = append(b, '\t')
		b = append(b, o.sku()...)
		b = append(b, "\t2\t39.80\t"...)
		b = o.at.AppendFormat(b, timeColumn)
		i++
		return append(b, '\n'), true
	}
}

// records writes the rows of the records by user and key.
func (p *past) records() rowSource {
	var user int64
	var mine []bygone // of that user, still to be written
	return func(b []byte) ([]byte, bool) {
		for len(mine) == 0 {
			if user == min(p.users, p.count) {
				return b, false
			}
			for i := user; i < p.count; i += p.users {
				mine = append(mine, p.order(i))
			}
			slices.SortFunc(mine, func(a, b bygone) int { return bytes.Compare(a.key[:], b.key[:]) })
			user++
		}
		o := &mine[0]
		mine = mine[1:]
		return o.record(b, userName(int(user-1))), true
	}
}

func (o *bygone) record(b []byte, user string) []byte {
	id := uuidText(o.id)
	b = append(b, user...)
	b = append(b, '\t')
	b = append(b, uuidText(o.key)...)
	b = append(b, '\t')
	b = hex.AppendEncode(b, o.digest[:])
	b = append(b, '\t')
	b = hex.AppendEncode(b, o.id[:])
	b = append(b, "\t"+ordersPath+"/"+id+"\t"...)
	b = append(b, `{"order_id":"`+id+`","user_id":"`+user+`","sku":"`+o.sku()+`","quantity":2,"amount":"39.80","status":"PENDING","created_at":"`...)
	b = o.at.AppendFormat(b, "2006-01-02T15:04:05.000Z")
	b = append(b, "\"}\t"...)
	b = o.at.AppendFormat(b, timeColumn)
	return append(b, '\n')
}
