package verdict

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/loadtest/history"
	"github.com/oncegate/oncegate/loadtest/measure"
)

// Who gives the name of an earlier run again hears of its orders. That is said, and
// not taken for a history that nothing explains or for a second order.
func TestOrdersOfAnEarlierRunAreNamed(t *testing.T) {
	t.Parallel()
	taken := history.Record{Outcome: measure.Rejected, Proof: history.Decided, HTTP: 409, Sent: 1, Done: 2, Body: []byte(`{"code":"ORDER_ALREADY_EXISTS"}`)}
	broke := history.Record{Outcome: measure.Rejected, Proof: history.Decided, HTTP: 422, Sent: 1, Done: 2, Body: []byte(`{"code":"INSUFFICIENT_BALANCE"}`)}
	lied := at(plain(measure.Unavailable), 1, 2)
	lied.HTTP = 503
	for name, tc := range map[string]struct {
		records []history.Record
		want    map[Kind]int
	}{
		"an answer of its own":          {[]history.Record{created(id1), at(replayed(id1), 3, 4)}, nil},
		"a replay of nothing":           {[]history.Record{replayed(id1)}, map[Kind]int{NotOurs: 1}},
		"and its copy":                  {[]history.Record{replayed(id1), replayed(id1)}, map[Kind]int{NotOurs: 1}},
		"and another content":           {[]history.Record{replayed(id1), at(other(plain(measure.Reused)), 3, 4)}, map[Kind]int{NotOurs: 1}},
		"after it was turned away":      {[]history.Record{at(plain(measure.Limited), 1, 2), at(replayed(id1), 3, 4)}, map[Kind]int{NotOurs: 1}},
		"after one that nobody heard":   {[]history.Record{timedOut(), at(replayed(id1), 3, 4)}, nil},
		"before it was made":            {[]history.Record{replayed(id1), at(created(id1), 3, 4)}, map[Kind]int{Disordered: 1}},
		"after a server's no":           {[]history.Record{lied, at(replayed(id1), 3, 4)}, map[Kind]int{Disordered: 1}},
		"a number that is taken":        {[]history.Record{taken}, map[Kind]int{NotOurs: 1}},
		"a refusal of another sort":     {[]history.Record{broke}, nil},
		"a number, and who asked again": {[]history.Record{taken, taken}, map[Kind]int{NotOurs: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cases := []*history.Case{heard("u", "k", tc.records...)}
			f := Answers(cases)
			_, histories := Linearizable(t.Context(), cases, "")
			f.Merge(histories)
			require.Equal(t, tc.want, f.Counts, f.List)
		})
	}
}

// The order of an earlier run has the number, and is no second one of this run.
func TestANumberThatWasTakenHasNoSecondOrder(t *testing.T) {
	t.Parallel()
	c := heard("u", "lt-a-1", history.Record{Outcome: measure.Rejected, Proof: history.Decided, HTTP: 409, Sent: 1, Done: 2, Body: []byte(`{"code":"ORDER_ALREADY_EXISTS"}`)})
	c.Intent.Lines[0].ExternalOrderNo = "a-1-0"
	rows := []Row{{ID: id1, User: "u", SKU: "tea", Quantity: 2, Hundredths: 1234, ExternalOrderNo: "a-1-0", Status: "PENDING"}}
	_, f := Audit([]*history.Case{c}, &Truth{Source: "http", Rows: rows}, Scope{KeyPrefix: "lt-a-"})
	require.Empty(t, f.Counts)
	require.Equal(t, map[Kind]int{NotOurs: 1}, Answers([]*history.Case{c}).Counts)
}

// An earlier run that was refused everything has no orders, and its keys all the same.
func TestAnEarlierRunWithoutOrdersIsFound(t *testing.T) {
	t.Parallel()
	b := newBase(t)
	b.key("u", "lt-a-1", 3, "")
	for prefix, want := range map[string]string{"lt-a-": "u", "lt-b-": ""} {
		user, err := Earlier(t.Context(), b.Database, []string{"u"}, Scope{KeyPrefix: prefix})
		require.NoError(t, err)
		require.Equal(t, want, user)
	}
}
