package gateway

import (
	"maps"
	"net/url"
	"slices"
	"strconv"

	"github.com/oncegate/oncegate/order"
)

// unread are the faults of a query that has more than these parameters. As in a
// body, nothing is passed over: whoever wrote ?dry_run=true must not find it
// done, and a misspelt cursor must not be the first page again. No value is
// repeated.
func unread(rawQuery string, known ...string) []order.FieldFault {
	if rawQuery == "" {
		return nil
	}
	q, err := url.ParseQuery(rawQuery)
	if err != nil { // it has left out what it could not read
		return []order.FieldFault{{Path: "?", Reason: "is not a valid query"}}
	}
	d := decoder{}
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if !slices.Contains(known, name) {
			d.at(noRow, "?"+name, "is not a parameter of this address")
		}
	}
	return d.faults
}

// wholeParameter reads a number from 1 to most, in its one spelling; otherwise
// stands for one that is not given.
func wholeParameter(q url.Values, name string, otherwise, most int) (int, []order.FieldFault) {
	v, given := q[name]
	if !given {
		return otherwise, nil
	}
	n, err := strconv.Atoi(v[0])
	if err != nil || n < 1 || n > most || strconv.Itoa(n) != v[0] || len(v) > 1 {
		return 0, []order.FieldFault{{Path: name, Reason: "must be one whole number from 1 to " + strconv.Itoa(most)}}
	}
	return n, nil
}
