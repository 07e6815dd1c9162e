package cache

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

func openEmbedded(t *testing.T) (*Embedded, *Filter) {
	t.Helper()
	e, err := OpenEmbedded(patient)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	f, err := New(Options{Client: e.Client, MACKey: macKey(), Pipelining: true, DisableProcessTier: true, Tuning: func() Tuning {
		t := DefaultTuning()
		t.OpTimeout, t.InProgressTTL = patient, time.Second
		return t
	}})
	require.NoError(t, err)
	return e, f
}

func TestEmbeddedRedisGuards(t *testing.T) {
	t.Parallel()
	_, f := openEmbedded(t)
	adm := f.Admit(t.Context(), attempt("alice", "k"))
	require.Equal(t, order.Ours, adm.Advice)
	adm.Ticket.Finish(t.Context(), released())
	adm = f.Admit(t.Context(), attempt("alice", "k"))
	require.Equal(t, order.Ours, adm.Advice)
	adm.Ticket.Finish(t.Context(), created())
	require.Equal(t, order.Seen, f.Admit(t.Context(), attempt("alice", "k")).Advice)
	require.NoError(t, f.Health(t.Context()))
}

func TestEmbeddedRedisForgetsInTime(t *testing.T) {
	t.Parallel()
	e, f := openEmbedded(t)
	require.Equal(t, order.Ours, f.Admit(t.Context(), attempt("alice", "k")).Advice)
	e.advance(t.Context(), time.Now(), 2*time.Second, embeddedEntries)
	require.Equal(t, order.Ours, f.Admit(t.Context(), attempt("alice", "k")).Advice)
	// And by itself.
	require.Eventually(t, func() bool { return f.Admit(t.Context(), attempt("alice", "k")).Advice == order.Ours }, hung, 50*time.Millisecond)
}

func TestEmbeddedRedisIsBoundedAndClosedToOthers(t *testing.T) {
	t.Parallel()
	e, _ := openEmbedded(t)
	for i := range 11 { // without a time to live: its clock goes by itself
		require.NoError(t, e.Client.Set(t.Context(), fmt.Sprint(i), "", 0).Err())
	}
	e.advance(t.Context(), time.Now(), 0, 11)
	require.EqualValues(t, 11, e.Client.DBSize(t.Context()).Val())
	e.advance(t.Context(), time.Now(), 0, 10)
	require.Zero(t, e.Client.DBSize(t.Context()).Val())

	stranger := redis.NewClient(&redis.Options{Addr: e.server.Addr()})
	defer func() { require.NoError(t, stranger.Close()) }()
	require.ErrorContains(t, stranger.Get(t.Context(), "k").Err(), "NOAUTH")
}
