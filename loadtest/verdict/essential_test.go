package verdict

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/oncegate/oncegate/loadtest/history"
	"github.com/oncegate/oncegate/loadtest/measure"
)

// What is left out of a history must never change what is said of it.
func TestWhatIsLeftOutDecidesNothing(t *testing.T) {
	t.Parallel()
	refusal := func(body string, again bool) history.Record {
		return history.Record{Outcome: measure.Rejected, Proof: history.Decided, HTTP: 422, Body: []byte(body), Replayed: again}
	}
	kinds := []history.Record{
		created(id1), created(id2), replayed(id1), replayed(id2), timedOut(),
		{Outcome: measure.Unexpected, HTTP: 500},
		plain(measure.Reused), plain(measure.InProgress), plain(measure.Limited), plain(measure.Unavailable),
		refusal(`{"safe_new_key":true}`, false), refusal(`{"safe_new_key":true}`, true),
		refusal("no", false), refusal("no", true), refusal("not now", true),
		status(""), status("in_progress"), status("succeeded"), status("failed"),
	}
	spec := specification()
	right, wrong := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		// Few kinds in one history, or hardly any is right, and hardly any has two alike.
		some := rapid.SliceOfN(rapid.SampledFrom(kinds), 1, 3).Draw(t, "some")
		records := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) history.Record {
			r := rapid.SampledFrom(some).Draw(t, "kind")
			if r.Op == history.Submit && rapid.IntRange(0, 3).Draw(t, "other") == 0 {
				r.Op = history.Other
			}
			r.Sent = time.Duration(rapid.IntRange(1, 8).Draw(t, "sent"))
			r.Done = r.Sent + time.Duration(rapid.IntRange(0, 8).Draw(t, "took"))
			return r
		}), 1, 7).Draw(t, "records")
		ops := operations(heard("u", "k", records...))
		whole := porcupine.CheckOperations(spec, ops)
		if whole {
			right++
		} else {
			wrong++
		}
		require.Equal(t, whole, porcupine.CheckOperations(spec, essential(ops)))
	})
	require.Positive(t, right)
	require.Positive(t, wrong)
}

// A storm in an outage, with one answer that must not be: each key has two
// seconds, and one that is not decided is not found out.
func TestAStormIsDecided(t *testing.T) {
	t.Parallel()
	storm := func(last ...history.Record) []history.Record {
		records := []history.Record{at(created(id1), 1, 900)}
		for i := range time.Duration(100) {
			records = append(records, at(replayed(id1), 2+i, 800+i), at(timedOut(), 2+i, 700+i), at(plain(measure.InProgress), 2+i, 600+i))
		}
		return append(records, last...)
	}
	for name, tc := range map[string]struct {
		last history.Record
		ok   bool
	}{
		"right":         {at(status("succeeded"), 1000, 1001), true},
		"forgotten":     {at(status(""), 1000, 1001), false},
		"refused":       {at(history.Record{Outcome: measure.Rejected, Proof: history.Decided, Body: []byte("no")}, 1000, 1001), false},
		"another order": {at(replayed(id2), 1000, 1001), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, f := Linearizable(t.Context(), []*history.Case{heard("u", "k", storm(tc.last)...)}, "")
			require.Zero(t, l.Unknown)
			require.Equal(t, tc.ok, f.Total() == 0, fmt.Sprint(f.Counts))
		})
	}
}

// The same of a refusal that nobody heard but as a repetition.
func TestAStormOfRefusalsIsDecided(t *testing.T) {
	t.Parallel()
	var records []history.Record
	for i := range time.Duration(200) {
		refused := history.Record{Outcome: measure.Rejected, Proof: history.Decided, HTTP: 422, Body: []byte("no"), Replayed: true}
		records = append(records, at(refused, 2+i, 800+i), at(timedOut(), 2+i, 700+i))
	}
	for name, tc := range map[string]struct {
		last history.Record
		ok   bool
	}{
		"right":     {at(status("failed"), 1100, 1101), true},
		"forgotten": {at(status(""), 1100, 1101), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, f := Linearizable(t.Context(), []*history.Case{heard("u", "k", append(slices.Clone(records), tc.last)...)}, "")
			require.Zero(t, l.Unknown)
			require.Equal(t, tc.ok, f.Total() == 0, fmt.Sprint(f.Counts))
		})
	}
}
