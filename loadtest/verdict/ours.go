package verdict

import (
	"slices"

	"github.com/oncegate/oncegate/loadtest/exact"
	"github.com/oncegate/oncegate/loadtest/history"
	"github.com/oncegate/oncegate/loadtest/measure"
)

// replayOfNothing tells whether a key was answered with a replay although no request
// of the run can have made its order. The name of the run is in the key: the order is
// that of an earlier run with this name, or there is none.
func replayOfNothing(records []history.Record) bool {
	return slices.ContainsFunc(records, func(r history.Record) bool { return r.Op <= history.Other && r.Outcome == measure.Replayed }) &&
		!slices.ContainsFunc(records, mayHaveMade)
}

// mayHaveMade tells whether a request can have made the order of its key. One that
// was turned away before it was decided has not; a server error that says so may lie.
func mayHaveMade(r history.Record) bool {
	switch {
	case r.Op > history.Other || r.Proof == history.NeverSent:
		return false
	default:
		return r.Outcome == measure.Created || r.Proof == history.Unknown || r.HTTP >= 500
	}
}

// taken returns the answer that a business number of a key is taken. Each number is
// sent with one key, so it was there before the run.
func taken(records []history.Record) (history.Record, bool) {
	i := slices.IndexFunc(records, func(r history.Record) bool {
		return r.Outcome == measure.Rejected && code(&r) == "ORDER_ALREADY_EXISTS"
	})
	if i < 0 {
		return history.Record{}, false
	}
	return records[i], true
}

// lasting tells whether a refusal calls a new key safe. Then it is remembered: a
// customer who goes by that has two orders if the old key is decided anew.
func lasting(r *history.Record) bool {
	if r.Outcome != measure.Rejected {
		return false
	}
	safe := false
	o, err := exact.Parse(r.Body)
	return err == nil && o.Read("safe_new_key", &safe) == nil && safe
}

// code is that of a problem document; "" when there is none.
func code(r *history.Record) string {
	o, err := exact.Parse(r.Body)
	if err != nil {
		return ""
	}
	return o.Text("code")
}
