package cache

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/order"
)

// Somebody else may have put anything under our name.
func TestWhatCannotBeBelievedIsBypassedAndOverwritten(t *testing.T) {
	t.Parallel()
	now := newClock().Now // it stands still: neither an entry nor a line of the log grows old
	r := open(t, testserver.Redis(t).Addr, func(s *settings) {
		guardOnly(s)
		s.tuning.BreakerFailures = 2
		// A prefix of its own: what is planted here may be without a time to live,
		// for which the others look in the names that they share.
		s.options.Prefix, s.options.Now = "entries"+rand.Text(), now
	})
	user := somebody(t)
	c := r.guard.codec
	forger := newCodec([]byte("a key that the forger made up"))
	forged, proper := receipt(), receipt()
	forged.Response.Body = []byte(`{"order_id":"forged"}`)
	newer := c.receipt(user, "k", &proper, maxBody)
	newer[0]++
	a := attempt(user, "k")
	ctx := t.Context()
	name := r.names.name(user, "k")
	for scene, plant := range map[string]struct {
		put  any
		want reason
	}{
		"garbage":                  {"\x00\xff garbage", reasonUnreadable},
		"nothing":                  {"", reasonUnreadable},
		"a forged receipt":         {forger.receipt(user, "k", &forged, maxBody), reasonForged},
		"a receipt of another":     {c.receipt("bob", "k", &proper, maxBody), reasonForged},
		"a receipt of another key": {c.receipt(user, "k2", &proper, maxBody), reasonForged},
		"a forged mark":            {forger.mark(&a, now()), reasonForged},
		"a newer version":          {newer, reasonVersion},
		"a mark from the future":   {c.mark(&a, now().Add(time.Hour)), reasonFuture},
		"another type":             {nil, reasonWrongType},
	} {
		require.NoError(t, r.client.Del(ctx, name).Err())
		if plant.put == nil {
			require.NoError(t, r.client.LPush(ctx, name, "x").Err())
		} else {
			require.NoError(t, r.client.Set(ctx, name, plant.put, time.Minute).Err())
		}
		before := r.bypassed(t, plant.want)
		require.Empty(t, r.Peek(ctx, user, "k"), scene)
		adm := r.Admit(ctx, a)
		require.Equal(t, order.Bypassed, adm.Advice, scene)
		require.InDelta(t, before+1, r.bypassed(t, plant.want), 0, scene)
		adm.Ticket.Finish(ctx, created())
		require.EqualValues(t, kindReceipt, r.entry(t, user, "k").kind, scene)
	}
	require.Equal(t, 1, r.log.lines("bad_mac"), "what happens again and again is logged now and then")
	require.Equal(t, 5, r.log.lines("not believed"))
	require.Zero(t, r.log.lines("left alone"), "a bad entry is no outage")
	require.Zero(t, r.log.lines(user))

	// A clock that is a little ahead is not from the future.
	require.NoError(t, r.client.Set(ctx, name, c.mark(&a, now().Add(futureTolerance/2)), time.Minute).Err())
	adm := r.admit(t, a, order.Running)
	require.Equal(t, time.Nanosecond, adm.Age)
	adm.Ticket.Finish(ctx, order.End{})
}
