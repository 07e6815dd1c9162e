package verdict

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/loadtest/history"
	"github.com/oncegate/oncegate/loadtest/measure"
)

func TestKeysAreCountedByWhatTheirCustomersCameAwayWith(t *testing.T) {
	t.Parallel()
	no := func(code string) history.Record {
		return history.Record{Outcome: measure.Rejected, Proof: history.Decided, HTTP: 422, Body: []byte(`{"code":"` + code + `"}`)}
	}
	left := history.Record{Outcome: measure.HungUp, Sent: 1, Done: 2}
	for name, tc := range map[string]struct {
		records []history.Record
		want    Served
	}{
		"an order":                 {[]history.Record{created(id1)}, Served{Keys: 1, Ordered: 1}},
		"an order after a fault":   {[]history.Record{timedOut(), replayed(id1)}, Served{Keys: 1, Ordered: 1}},
		"an order after a refusal": {[]history.Record{no("INSUFFICIENT_BALANCE"), created(id1)}, Served{Keys: 1, Ordered: 1}},
		"sold out":                 {[]history.Record{no("OUT_OF_STOCK")}, Served{Keys: 1, SoldOut: 1}},
		"no money":                 {[]history.Record{no("INSUFFICIENT_BALANCE")}, Served{Keys: 1, Refused: 1}},
		"nothing":                  {[]history.Record{timedOut(), plain(measure.Unavailable)}, Served{Keys: 1}},
		"left, and came back":      {[]history.Record{left, plain(measure.Limited)}, Served{Keys: 1}},
		"left":                     {[]history.Record{left}, Served{}},
		"never came":               {nil, Served{}},
		"asked for the state only": {[]history.Record{status("succeeded")}, Served{}},
	} {
		require.Equal(t, tc.want, CountServed([]*history.Case{heard("u", "k", tc.records...)}), name)
	}
}
