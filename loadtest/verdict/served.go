package verdict

import (
	"slices"

	"github.com/oncegate/oncegate/loadtest/history"
	"github.com/oncegate/oncegate/loadtest/measure"
)

// Served counts the keys of a run by what their customers came away with.
type Served struct {
	Keys    int // that somebody waited for: a customer who left is no fault of the target
	Ordered int // answered with an order
	SoldOut int // refused for the stock, as a sale does that sells out
	Refused int // refused for the balance of the user, or for a business number
}

// CountServed looks at the answers alone.
func CountServed(cases []*history.Case) Served {
	var s Served
	for _, c := range cases {
		records := slices.DeleteFunc(slices.Clone(c.Records()), func(r history.Record) bool { return r.Op > history.Other })
		one := func(is func(r *history.Record) bool) bool {
			return slices.ContainsFunc(records, func(r history.Record) bool { return is(&r) })
		}
		if !one(func(r *history.Record) bool { return r.Outcome != measure.HungUp }) {
			continue
		}
		s.Keys++
		switch {
		case one(func(r *history.Record) bool { return r.Outcome == measure.Created || r.Outcome == measure.Replayed }):
			s.Ordered++
		case one(func(r *history.Record) bool { return r.Outcome == measure.Rejected && code(r) == "OUT_OF_STOCK" }):
			s.SoldOut++
		case one(func(r *history.Record) bool { return r.Outcome == measure.Rejected }):
			s.Refused++
		}
	}
	return s
}
