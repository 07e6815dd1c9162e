package gateway

import (
	"context"
	"net/url"

	"github.com/oncegate/oncegate/order"
)

const (
	defaultPage = 20
	maxPage     = 100
)

func (s *Server) getOrder(x *exchange) {
	id, err := order.ParseID(x.params.ByName("id"))
	if err != nil {
		// Not a fault to explain: it is the address of nothing.
		x.problem(newProblem(CodeNotFound), nil)
		return
	}
	if !x.charged(replayCost) {
		return
	}
	ctx, cancel := context.WithTimeout(x.r.Context(), x.t.ReadBudget)
	defer cancel()
	o, err := s.o.Book.Order(ctx, x.who.UserID, id)
	if err != nil {
		x.fail(err)
		return
	}
	x.private(appendOrder(make([]byte, 0, orderSize), &o))
}

func (s *Server) listOrders(x *exchange) {
	before, limit, faults := pageOf(x.r.URL.Query())
	if len(faults) > 0 {
		x.problem(problemOf(&order.InvalidError{Faults: faults}), nil)
		return
	}
	if !x.charged(replayCost) {
		return
	}
	ctx, cancel := context.WithTimeout(x.r.Context(), x.t.ReadBudget)
	defer cancel()
	// One more than is shown tells whether there is another page.
	orders, err := s.o.Book.Orders(ctx, x.who.UserID, before, limit+1)
	if err != nil {
		x.fail(err)
		return
	}
	next := ""
	if len(orders) > limit {
		orders = orders[:limit]
		next = cursorOf(orders[limit-1].ID)
	}
	b := appendOrders(make([]byte, 0, 64+orderSize*len(orders)), orders)
	if next != "" {
		b = appendText(b, "next_cursor", next)
	}
	x.private(append(b, '}'))
}

// pageOf reads the parameters of a list.
func pageOf(q url.Values) (before order.ID, limit int, faults []order.FieldFault) {
	limit, faults = wholeParameter(q, "limit", defaultPage, maxPage)
	if v := q["cursor"]; len(v) > 0 {
		id, ok := parseCursor(v[0])
		if !ok || len(v) > 1 {
			faults = append(faults, order.FieldFault{Path: "cursor", Reason: "must be the next_cursor of the page before"})
		}
		before = id
	}
	return before, limit, faults
}
