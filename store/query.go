package store

import "github.com/oncegate/oncegate/order"

// query builds the text and the bind values of one statement.
type query struct {
	d    *dialect
	text []byte
	args []any
}

func (q *query) reset(text string) {
	q.text = append(q.text[:0], text...)
	q.args = q.args[:0]
}

func (q *query) add(text string) { q.text = append(q.text, text...) }

func (q *query) bind(v any) {
	q.text = append(q.text, '?')
	q.args = append(q.args, v)
}

// amount writes an exact literal of the column's type.
func (q *query) amount(a order.Amount) { q.text = q.d.money(q.text, a) }

// list writes (?,?,…) for the values.
func list[T any](q *query, values []T) {
	q.add("(")
	for i := range values {
		if i > 0 {
			q.add(",")
		}
		q.bind(values[i])
	}
	q.add(")")
}

// pairs writes (user_id = ? AND second IN (…)) OR … for sorted pairs, a form that
// every engine turns into point look-ups of an index on both columns.
func (q *query) pairs(second string, sorted []pair) {
	for i := 0; i < len(sorted); {
		if i > 0 {
			q.add(" OR ")
		}
		q.add("(user_id = ")
		q.bind(sorted[i].first)
		q.add(" AND " + second + " IN (")
		j := i
		for ; j < len(sorted) && sorted[j].first == sorted[i].first; j++ {
			if j > i {
				q.add(",")
			}
			q.bind(sorted[j].second)
		}
		q.add("))")
		i = j
	}
}

// pair is a two-column key: a user and one of the user's keys or numbers.
type pair struct{ first, second string }

func comparePairs(a, b pair) int {
	switch {
	case a.first < b.first || (a.first == b.first && a.second < b.second):
		return -1
	case a == b:
		return 0
	default:
		return 1
	}
}
