package cache

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/oncegate/oncegate/order"
)

// Records of version 1, as other gateways have written them and will read
// them. Where these bytes must change, recordVersion and keyVersion must too.
const (
	goldenMark = "0150000001a2272d267b010203000000000000000000000000000000000000000000000000000000000024d526d0d901" +
		"543ddc93915501dea3121789b1136a686f81135cb0b06e9a4295"
	goldenReceipt = "0152000001a2272d267b0102030000000000000000000000000000000000000000000000000000000000fedcba987654" +
		"32100200c900106170706c69636174696f6e2f6a736f6e000d2f6170692f6f72646572732f31000000107b226f726465" +
		"725f6964223a2231227dd2a367f8773a796b45850b9082144b87"
	goldenPointer = "014c000001a2272d267b0102030000000000000000000000000000000000000000000000000000000000c79b3a74bd1f" +
		"fab54a134360a1014188"
)

func TestFormatIsTheOneThatOtherGatewaysKnow(t *testing.T) {
	t.Parallel()
	c := newCodec(macKey())
	bytesOf := func(golden string) []byte {
		b, err := hex.DecodeString(golden)
		require.NoError(t, err)
		return b
	}
	r := receipt()
	require.Equal(t, goldenReceipt, hex.EncodeToString(c.receipt("alice", "k", &r, maxBody)))
	e, err := c.decode(bytesOf(goldenReceipt), "alice", "k")
	require.NoError(t, err)
	require.Equal(t, entry{kind: kindReceipt, at: r.FirstSeen, digest: r.Digest, receipt: r}, e)

	require.Equal(t, goldenPointer, hex.EncodeToString(c.receipt("alice", "k", &r, 0)))
	e, err = c.decode(bytesOf(goldenPointer), "alice", "k")
	require.NoError(t, err)
	require.Equal(t, entry{kind: kindPointer, at: r.FirstSeen, digest: r.Digest}, e)

	e, err = c.decode(bytesOf(goldenMark), "alice", "k") // its token is random
	require.NoError(t, err)
	require.Equal(t, entry{kind: kindMark, at: r.FirstSeen, digest: r.Digest}, e)
}

func TestWhatIsWrittenIsReadForItsOwnerOnly(t *testing.T) {
	t.Parallel()
	c := newCodec(macKey())
	name := rapid.StringMatching(`[!-~]{1,64}`)
	texts := rapid.StringN(0, 64, 200)
	rapid.Check(t, func(t *rapid.T) {
		user, key := name.Draw(t, "user"), order.Key(name.Draw(t, "key"))
		r := order.Receipt{
			State:     rapid.SampledFrom([]order.State{order.Succeeded, order.Failed}).Draw(t, "state"),
			FirstSeen: time.UnixMilli(rapid.Int64Range(0, 1<<42).Draw(t, "first seen")).UTC(),
			Server:    order.ServerID(rapid.Uint64().Draw(t, "server")),
			Response: order.Response{
				Status:      rapid.IntRange(100, 599).Draw(t, "status"),
				ContentType: texts.Draw(t, "content type"),
				Location:    texts.Draw(t, "location"),
				Body:        rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "body"),
			},
		}
		copy(r.Digest[:], rapid.SliceOfN(rapid.Byte(), digestLen, digestLen).Draw(t, "digest"))
		limit := rapid.IntRange(0, 300).Draw(t, "limit")

		record := c.receipt(user, key, &r, limit)
		e, err := c.decode(record, user, key)
		require.NoError(t, err)
		if len(r.Response.Body) <= limit {
			require.Equal(t, entry{kind: kindReceipt, at: r.FirstSeen, digest: r.Digest, receipt: r}, e)
		} else {
			require.Equal(t, entry{kind: kindPointer, at: r.FirstSeen, digest: r.Digest}, e)
		}

		otherUser, otherKey := name.Draw(t, "other user"), order.Key(name.Draw(t, "other key"))
		if otherUser != user || otherKey != key {
			_, err = c.decode(record, otherUser, otherKey)
			require.ErrorIs(t, err, errMAC)
		}
	})
}
