package verdict

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/loadtest/history"
	"github.com/oncegate/oncegate/loadtest/measure"
)

// at gives a record its interval.
func at(r history.Record, sent, done time.Duration) history.Record {
	r.Sent, r.Done = sent, done
	return r
}

func replayed(id string) history.Record {
	r := created(id)
	r.Outcome = measure.Replayed
	return r
}

func plain(o measure.Outcome) history.Record {
	return history.Record{Outcome: o, Proof: history.NoEffect, HTTP: 409}
}

func status(state string) history.Record {
	return history.Record{Op: history.Status, Outcome: measure.Read, Proof: history.NoEffect, State: state}
}

func other(r history.Record) history.Record {
	r.Op = history.Other
	return r
}

func TestHistoriesAreJudged(t *testing.T) {
	t.Parallel()
	refused := history.Record{Outcome: measure.Rejected, Proof: history.Decided, HTTP: 422, Body: []byte("no")}
	for name, tc := range map[string]struct {
		records []history.Record
		ok      bool
	}{
		"created, then replayed":                 {[]history.Record{at(created(id1), 1, 2), at(replayed(id1), 3, 4)}, true},
		"replayed before created was heard":      {[]history.Record{at(created(id1), 1, 9), at(replayed(id1), 3, 4)}, true},
		"replayed before created was sent":       {[]history.Record{at(created(id1), 5, 9), at(replayed(id1), 3, 4)}, false},
		"replayed and never created":             {[]history.Record{at(replayed(id1), 3, 4)}, false},
		"replayed after an unknown attempt":      {[]history.Record{at(timedOut(), 1, 2), at(replayed(id1), 3, 4)}, true},
		"created after an unknown attempt":       {[]history.Record{at(timedOut(), 1, 2), at(created(id1), 3, 4)}, true},
		"the unknown attempt came late":          {[]history.Record{at(timedOut(), 1, 2), at(status(""), 3, 4), at(replayed(id1), 5, 6)}, true},
		"replayed after a proven no":             {[]history.Record{at(plain(measure.Unavailable), 1, 2), at(replayed(id1), 3, 4)}, false},
		"created twice":                          {[]history.Record{at(created(id1), 1, 2), at(created(id2), 3, 4)}, false},
		"another answer":                         {[]history.Record{at(created(id1), 1, 2), at(replayed(id2), 3, 4)}, false},
		"forgotten":                              {[]history.Record{at(created(id1), 1, 2), at(status(""), 3, 4)}, false},
		"known":                                  {[]history.Record{at(created(id1), 1, 2), at(status("succeeded"), 3, 4)}, true},
		"not known while it is under way":        {[]history.Record{at(created(id1), 1, 9), at(status(""), 3, 4)}, true},
		"reused by another content":              {[]history.Record{at(created(id1), 1, 2), at(other(plain(measure.Reused)), 3, 4)}, true},
		"reused and alone":                       {[]history.Record{at(plain(measure.Reused), 1, 2), at(plain(measure.Reused), 3, 4)}, false},
		"another content replays the first":      {[]history.Record{at(created(id1), 1, 2), at(other(replayed(id1)), 3, 4)}, false},
		"refused, and refused again":             {[]history.Record{at(refused, 1, 2), at(refused, 3, 4)}, true},
		"refused, then created (not remembered)": {[]history.Record{at(refused, 1, 2), at(created(id1), 3, 4)}, true},
		"refused after it was created":           {[]history.Record{at(created(id1), 1, 2), at(refused, 3, 4)}, false},
		"in progress proves nothing":             {[]history.Record{at(created(id1), 1, 2), at(plain(measure.InProgress), 3, 4), at(replayed(id1), 5, 6)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			l, f := Linearizable(t.Context(), []*history.Case{heard("u", "k", tc.records...)}, dir)
			require.Equal(t, tc.ok, f.Total() == 0, f.List)
			if !tc.ok {
				require.Equal(t, 1, l.Broken)
				drawing, err := os.ReadFile(filepath.Join(dir, f.List[0].File))
				require.NoError(t, err)
				require.Contains(t, string(drawing), "<html")
			}
		})
	}
}

func TestWhatIsNotDecidedInTimeIsSaid(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l, f := Linearizable(ctx, []*history.Case{heard("u", "k", at(created(id1), 1, 2), at(replayed(id1), 3, 4))}, "")
	require.Equal(t, 1, l.Unknown)
	require.Zero(t, f.Total())
}

func TestAnswersAreComparedWithWhatWasSent(t *testing.T) {
	t.Parallel()
	spaced := replayed(id1)
	spaced.Body = append([]byte(" "), spaced.Body...)
	foreign := created(id1)
	foreign.Body = []byte(`{"order_id":"` + id1 + `","user_id":"eve","sku":"tea","quantity":2,"amount":12.34}`)
	forbidden := heard("u", "k", plain(measure.Reused))
	forbidden.Intent.Behaviour.Forbidden = []measure.Outcome{measure.Reused}
	for name, tc := range map[string]struct {
		c    *history.Case
		want map[Kind]int
	}{
		"right":     {heard("u", "k", created(id1), replayed(id1)), nil},
		"two ids":   {heard("u", "k", created(id1), replayed(id2)), map[Kind]int{TwoIDs: 1}},
		"bytes":     {heard("u", "k", created(id1), spaced), map[Kind]int{BodyDiffers: 1}},
		"foreign":   {heard("u", "k", foreign), map[Kind]int{ForeignBody: 1}},
		"malformed": {heard("u", "k", history.Record{Outcome: measure.Created, Body: []byte(`{}`)}), map[Kind]int{Malformed: 1}},
		"forbidden": {forbidden, map[Kind]int{ForbiddenOutcome: 1}},
	} {
		f := Answers([]*history.Case{tc.c})
		require.Equal(t, tc.want, f.Counts, name)
	}
	f := Answers([]*history.Case{heard("u", "k1", created(id1)), heard("u", "k2", created(id1))})
	require.Equal(t, map[Kind]int{SharedID: 1}, f.Counts)
}

func TestAmountsAreReadExactly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"12.34": 1234, "12.3": 1230, "12": 1200, "0.01": 1, "9999999999.99": 999999999999} {
		got, err := hundredths(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"", "1.234", "x", "1e2"} {
		_, err := hundredths(text)
		require.Error(t, err, text)
	}
}
