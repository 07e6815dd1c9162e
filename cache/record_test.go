package cache

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

func TestReceiptComesBackAsItWas(t *testing.T) {
	t.Parallel()
	c := newCodec(macKey())
	full := receipt()
	failed := receipt()
	failed.State, failed.Response = order.Failed, order.Response{Status: 422, ContentType: "application/problem+json"}
	empty := order.Receipt{State: order.Succeeded, FirstSeen: time.UnixMilli(0).UTC()}
	for _, r := range []order.Receipt{full, failed, empty} {
		e, err := c.decode(c.receipt("alice", "k", &r, maxBody), "alice", "k")
		require.NoError(t, err)
		require.EqualValues(t, kindReceipt, e.kind)
		if r.Response.Body == nil {
			r.Response.Body = []byte{}
		}
		require.Equal(t, r, e.receipt)
	}
}

func TestFirstSeenKeepsItsMillisecondAndIsUTC(t *testing.T) {
	t.Parallel()
	c := newCodec(macKey())
	r := receipt()
	r.FirstSeen = r.FirstSeen.In(time.FixedZone("elsewhere", 3600)).Add(456 * time.Microsecond)
	e, err := c.decode(c.receipt("alice", "k", &r, maxBody), "alice", "k")
	require.NoError(t, err)
	require.Equal(t, time.Date(2026, 11, 29, 12, 0, 0, 123e6, time.UTC), e.receipt.FirstSeen)
}

func TestLargeAnswerLeavesAPointer(t *testing.T) {
	t.Parallel()
	c := newCodec(macKey())
	r := receipt()
	limit := len(r.Response.Body)
	e, err := c.decode(c.receipt("alice", "k", &r, limit), "alice", "k")
	require.NoError(t, err)
	require.EqualValues(t, kindReceipt, e.kind)
	e, err = c.decode(c.receipt("alice", "k", &r, limit-1), "alice", "k")
	require.NoError(t, err)
	require.EqualValues(t, kindPointer, e.kind)
	require.Equal(t, r.Digest, e.digest)
	r.Response.Location = string(make([]byte, maxText+1))
	e, err = c.decode(c.receipt("alice", "k", &r, limit), "alice", "k")
	require.NoError(t, err)
	require.EqualValues(t, kindPointer, e.kind)
}

func TestMarkComesBackAndHasATokenOfItsOwn(t *testing.T) {
	t.Parallel()
	c := newCodec(macKey())
	a := attempt("alice", "k")
	start := time.Date(2026, 11, 29, 12, 0, 0, 5e6, time.UTC)
	one, two := c.mark(&a, start), c.mark(&a, start)
	require.NotEqual(t, one, two)
	e, err := c.decode(one, "alice", "k")
	require.NoError(t, err)
	require.Equal(t, entry{kind: kindMark, at: start, digest: a.Digest}, e)
}

func TestEveryAlteredBitIsNoticed(t *testing.T) {
	t.Parallel()
	c := newCodec(macKey())
	r, a := receipt(), attempt("alice", "k")
	for _, record := range [][]byte{c.receipt("alice", "k", &r, maxBody), c.receipt("alice", "k", &r, 0), c.mark(&a, time.Now())} {
		for i := range record {
			for bit := range 8 {
				altered := bytes.Clone(record)
				altered[i] ^= 1 << bit
				_, err := c.decode(altered, "alice", "k")
				require.Error(t, err)
			}
		}
		for n := range record {
			_, err := c.decode(record[:n], "alice", "k")
			require.Error(t, err)
		}
		_, err := c.decode(append(bytes.Clone(record), 0), "alice", "k")
		require.ErrorIs(t, err, errMAC)
	}
}

func TestRecordOfAnotherKeyUserOrSecretIsForged(t *testing.T) {
	t.Parallel()
	c := newCodec(macKey())
	r := receipt()
	record := c.receipt("ab", "c", &r, maxBody)
	for _, other := range []struct {
		user string
		key  order.Key
	}{{"ab", "d"}, {"b", "c"}, {"a", "bc"}, {"abc", ""}, {"", "abc"}} {
		_, err := c.decode(record, other.user, other.key)
		require.ErrorIs(t, err, errMAC)
	}
	_, err := newCodec([]byte("another key of sixteen bytes")).decode(record, "ab", "c")
	require.ErrorIs(t, err, errMAC)
}

func TestForeignBytesAreNotRead(t *testing.T) {
	t.Parallel()
	c := newCodec(macKey())
	r := receipt()
	other := c.receipt("alice", "k", &r, maxBody)
	other[0] = recordVersion + 1
	unfinished := receipt()
	unfinished.State = order.Processing
	for name, scene := range map[string]struct {
		record []byte
		want   error
	}{
		"nothing":            {nil, errUnreadable},
		"text":               {[]byte("1700000000000"), errUnreadable},
		"another version":    {other, errVersion},
		"too long":           {append([]byte{recordVersion}, make([]byte, maxRecord)...), errUnreadable},
		"a kind of nobody's": {c.macs.seal(appendHead(nil, 'X', time.Now(), &r.Digest), "alice", "k"), errUnreadable},
		"a mark without a token": {
			c.macs.seal(appendHead(nil, kindMark, time.Now(), &r.Digest), "alice", "k"), errUnreadable,
		},
		"a receipt that may change": {c.receipt("alice", "k", &unfinished, maxBody), errUnreadable},
	} {
		_, err := c.decode(scene.record, "alice", "k")
		require.ErrorIs(t, err, scene.want, name)
	}
}

// FuzzDecode reads bytes as they are, and again with a valid MAC: what is
// behind the MAC must be robust too, for another version may have written it.
// Whatever is accepted is written back as the same bytes.
func FuzzDecode(f *testing.F) {
	c := newCodec(macKey())
	f.Fuzz(func(t *testing.T, content []byte) {
		if _, err := c.decode(content, "alice", "k"); err == nil {
			t.Fatal("a MAC was guessed")
		}
		record := c.macs.seal(bytes.Clone(content), "alice", "k")
		e, err := c.decode(record, "alice", "k")
		if err != nil {
			return
		}
		switch e.kind {
		case kindReceipt:
			require.Equal(t, record, c.receipt("alice", "k", &e.receipt, maxBody))
		case kindPointer:
			require.Equal(t, record, c.receipt("alice", "k", &order.Receipt{
				FirstSeen: e.at, Digest: e.digest, Response: order.Response{Body: []byte{0}},
			}, 0))
		default:
			require.Equal(t, record[:headLen], appendHead(nil, kindMark, e.at, &e.digest))
		}
	})
}
