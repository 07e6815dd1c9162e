package gateway

import (
	"context"
	"net/http"

	"github.com/oncegate/oncegate/order"
)

// changeCost is what a change of state costs: as much as a new order.
const changeCost = 1

// cancelOrder ends a pending order of the caller. Doing it again is answered
// alike: the state is what was asked for.
func (s *Server) cancelOrder(x *exchange) {
	id, err := order.ParseID(x.params.ByName("id"))
	if err != nil {
		x.problem(newProblem(CodeNotFound), nil)
		return
	}
	if !x.charged(changeCost) {
		return
	}
	// From here on the work is the server's: a client that leaves undoes nothing.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.r.Context()), x.t.ChangeBudget)
	defer cancel()
	x.change, err = s.o.Lifecycle.Cancel(ctx, x.who.UserID, id)
	if x.change.Effect != order.Applied {
		x.s.rates.giveBack(x.who.UserID, changeCost, &x.t)
	}
	switch {
	case err != nil:
		x.fail(err)
	case x.change.Effect == order.Impossible:
		x.problem(newProblem(CodeStateConflict).withDetail("The order is "+string(x.change.Order.Status)+" and can no longer be cancelled."), nil)
	default:
		x.private(appendOrder(make([]byte, 0, orderSize), &x.change.Order))
	}
}

// shipOrder marks a paid order as shipped.
func (a *Admin) shipOrder(w http.ResponseWriter, r *http.Request) {
	id, err := order.ParseID(r.PathValue("id"))
	if err != nil {
		a.problem(w, newProblem(CodeNotFound))
		return
	}
	body, ok := a.body(w, r)
	if !ok {
		return
	}
	if err := decodeNothing(body); err != nil {
		a.problem(w, problemOf(err))
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), a.o.Budget)
	defer cancel()
	result, err := a.o.Shipper.Ship(ctx, id)
	switch {
	case err != nil:
		a.fail(w, err)
	case result.Effect == order.Impossible:
		a.problem(w, newProblem(CodeStateConflict).withDetail("The order is "+string(result.Order.Status)+" and cannot be shipped."))
	default:
		b := append(result.Order.ID.Append(append(appendMember([]byte{'{'}, "order_id"), '"')), '"')
		b = appendText(b, "status", string(result.Order.Status))
		a.answer(w, append(appendText(b, "effect", string(result.Effect)), '}'))
	}
}
