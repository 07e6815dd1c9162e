package verdict

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
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
	again := refused
	again.Replayed = true
	otherwise := again
	otherwise.Body = []byte("not now")
	final := refused
	final.Body = []byte(`{"safe_new_key":true}`)
	kept := refused
	kept.Body = []byte(`{"safe_new_key":false}`)
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
		"refused, the key kept, then created":    {[]history.Record{at(kept, 1, 2), at(created(id1), 3, 4)}, true},
		"a new key was safe, then created":       {[]history.Record{at(final, 1, 2), at(created(id1), 3, 4)}, false},
		"a new key was safe, and not known":      {[]history.Record{at(final, 1, 2), at(status(""), 3, 4)}, false},
		"a new key was safe, and all that stays": {[]history.Record{at(timedOut(), 1, 2), at(final, 3, 4), at(final, 5, 6), at(status("failed"), 7, 8)}, true},
		"refused after it was created":           {[]history.Record{at(created(id1), 1, 2), at(refused, 3, 4)}, false},
		"in progress proves nothing":             {[]history.Record{at(created(id1), 1, 2), at(plain(measure.InProgress), 3, 4), at(replayed(id1), 5, 6)}, true},
		"in progress and alone":                  {[]history.Record{at(plain(measure.InProgress), 1, 2)}, false},
		"in progress for ever, for nobody":       {[]history.Record{at(plain(measure.InProgress), 1, 2), at(plain(measure.InProgress), 3, 4)}, false},
		"in progress before anybody came":        {[]history.Record{at(plain(measure.InProgress), 1, 2), at(created(id1), 3, 4)}, false},
		"in progress after a proven no":          {[]history.Record{at(plain(measure.Unavailable), 1, 2), at(plain(measure.InProgress), 3, 4)}, true},
		"each is told that the other has it":     {[]history.Record{at(plain(measure.Reused), 1, 9), at(other(plain(measure.Reused)), 2, 8)}, false},
		"one of two has it":                      {[]history.Record{at(plain(measure.Reused), 1, 9), at(other(plain(measure.Unavailable)), 2, 8)}, true},
		"still in progress when it was answered": {[]history.Record{at(created(id1), 1, 2), at(status("in_progress"), 3, 4)}, false},
		"in progress, then answered":             {[]history.Record{at(created(id1), 1, 9), at(status("in_progress"), 3, 4)}, true},
		"a refusal again":                        {[]history.Record{at(refused, 1, 2), at(again, 3, 4)}, true},
		"a refusal again that nobody heard":      {[]history.Record{at(timedOut(), 1, 2), at(again, 3, 4)}, true},
		"a refusal again, its COMMIT unheard":    {[]history.Record{at(again, 1, 2), at(status("failed"), 3, 4)}, true},
		"a refusal again, and not known":         {[]history.Record{at(again, 1, 2), at(status(""), 3, 4)}, false},
		"another refusal again":                  {[]history.Record{at(refused, 1, 2), at(otherwise, 3, 4)}, false},
		"refused again, and then created":        {[]history.Record{at(refused, 1, 2), at(again, 3, 4), at(created(id1), 5, 6)}, false},
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
	// spelled is a success whose body has one text in place of another.
	spelled := func(from, to string) *history.Case {
		r := created(id1)
		require.Contains(t, string(r.Body), from)
		r.Body = []byte(strings.Replace(string(r.Body), from, to, 1))
		return heard("u", "k", r)
	}
	elsewhere, moved := created(id1), replayed(id1)
	elsewhere.Location, moved.Location = "/api/orders/"+id2, "/api/orders/"+id2
	accepted, okay := created(id1), replayed(id1)
	accepted.HTTP, okay.HTTP = http.StatusAccepted, http.StatusOK
	forbidden := heard("u", "k", plain(measure.Reused))
	forbidden.Intent.Behaviour.Forbidden = []measure.Outcome{measure.Reused}
	for name, tc := range map[string]struct {
		c    *history.Case
		want map[Kind]int
	}{
		"right":     {heard("u", "k", created(id1), replayed(id1)), nil},
		"two ids":   {heard("u", "k", created(id1), replayed(id2)), map[Kind]int{TwoIDs: 1}},
		"bytes":     {heard("u", "k", created(id1), spaced), map[Kind]int{BodyDiffers: 1}},
		"foreign":   {spelled(`"user_id":"u"`, `"user_id":"eve"`), map[Kind]int{ForeignBody: 1}},
		"nobody's":  {spelled(`"user_id":"u",`, ``), map[Kind]int{ForeignBody: 1}},
		"a number":  {spelled(`"12.34"`, `12.34`), map[Kind]int{ForeignBody: 1}},
		"a sign":    {spelled(`"12.34"`, `"+12.34"`), map[Kind]int{ForeignBody: 1}},
		"paid":      {spelled(`PENDING`, `PAID`), map[Kind]int{ForeignBody: 1}},
		"two":       {spelled(`}`, `}{}`), map[Kind]int{Malformed: 1}},
		"none":      {batch("u", "k"), map[Kind]int{Malformed: 1}},
		"elsewhere": {heard("u", "k", elsewhere), map[Kind]int{Malformed: 1}},
		"moved":     {heard("u", "k", created(id1), moved), map[Kind]int{BodyDiffers: 1}},
		"accepted":  {heard("u", "k", accepted), map[Kind]int{Malformed: 1}},
		"okay":      {heard("u", "k", created(id1), okay), map[Kind]int{BodyDiffers: 1}},
		"a batch":   {batch("u", "k", id1, id2), nil},
		"one twice": {batch("u", "k", id1, id1), map[Kind]int{Malformed: 1}},
		"paid back": {heard("u", "k", created(id1), callback(`{"effect":"applied","refund_owed":true}`)), map[Kind]int{RefundOwed: 1}},
		"malformed": {heard("u", "k", history.Record{Outcome: measure.Created, Body: []byte(`{}`)}), map[Kind]int{Malformed: 1}},
		"forbidden": {forbidden, map[Kind]int{ForbiddenOutcome: 1}},
	} {
		f := Answers([]*history.Case{tc.c})
		require.Equal(t, tc.want, f.Counts, name)
	}
	f := Answers([]*history.Case{heard("u", "k1", created(id1)), heard("u", "k2", created(id1))})
	require.Equal(t, map[Kind]int{SharedID: 1}, f.Counts)
}
