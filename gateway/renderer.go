package gateway

import (
	"net/http"
	"strconv"

	"github.com/oncegate/oncegate/order"
)

const (
	jsonType    = "application/json"
	problemType = "application/problem+json"
)

// DefaultProblemBase begins the type of every problem unless it is configured
// to be an address of the operator's documents.
const DefaultProblemBase = "urn:oncegate:problem:"

// Renderer makes the bytes of answers by appending them. It is pure: equal
// input gives equal bytes, in every process and release that shares its base.
type Renderer struct{ base string }

var _ order.Renderer = (*Renderer)(nil)

// NewRenderer makes a renderer whose problem types begin with base, which
// defaults to [DefaultProblemBase].
func NewRenderer(base string) *Renderer {
	if base == "" {
		base = DefaultProblemBase
	}
	return &Renderer{base}
}

// Created renders the orders that a command made.
func (r *Renderer) Created(op order.Operation, orders []order.Order) order.Response {
	resp := order.Response{Status: http.StatusCreated, ContentType: jsonType}
	if op == order.CreateBatch {
		resp.Body = appendOrders(make([]byte, 0, 16+orderSize*len(orders)), orders)
		resp.Body = append(resp.Body, '}')
		if len(orders) > 0 {
			resp.Location = statusURL(orders[0].Key)
		}
		return resp
	}
	o := &orders[0]
	resp.Body = appendOrder(make([]byte, 0, orderSize), o)
	resp.Location = orderURL(o.ID)
	return resp
}

// Rejected renders a refusal as a problem document. It has no request id: the
// same bytes answer every retry.
func (r *Renderer) Rejected(_ order.Operation, rej order.Rejection) order.Response {
	code := Code(rej.Code)
	kind := code.kind()
	p := &problem{code: code, status: kind.status, detail: kind.detail, outcome: kind.outcome}
	if rej.Forgotten {
		p.keepKey, p.detail = true, keepingKey(code)
	}
	b := r.appendProblem(make([]byte, 0, 512), p)
	if rej.SKU != "" {
		b = appendText(b, "sku", rej.SKU)
	}
	if len(rej.Conflicts) > 0 {
		b = appendConflicts(b, rej.Conflicts)
	}
	return order.Response{Status: kind.status, ContentType: problemType, Body: append(b, '}')}
}

// keepingKey is the detail of a refusal after which the key is to be kept.
func keepingKey(code Code) string {
	const keep = " Keep the key for another try: this refusal is not remembered, and with a new key a late copy of the request could make a second order."
	if code == CodeOrderExists {
		return "Read the orders named in conflicts; another order needs another number." + keep
	}
	return "Nothing was ordered." + keep
}

// orderSize is about the length of a rendered order.
const orderSize = 320

// appendOrders begins an object with its orders and leaves it open.
func appendOrders(b []byte, orders []order.Order) []byte {
	b = append(b, `{"orders":[`...)
	for i := range orders {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendOrder(b, &orders[i])
	}
	return append(b, ']')
}

func appendOrder(b []byte, o *order.Order) []byte {
	b = append(b, `{"order_id":"`...)
	b = o.ID.Append(b)
	b = append(b, `","user_id":`...)
	b = appendString(b, o.UserID)
	b = append(b, `,"sku":`...)
	b = appendString(b, o.Line.SKU)
	b = append(b, `,"quantity":`...)
	b = strconv.AppendInt(b, o.Line.Quantity, 10)
	b = append(b, `,"amount":"`...)
	b = o.Line.Amount.Append(b)
	b = append(b, '"')
	if o.Line.ExternalOrderNo != "" {
		b = append(b, `,"external_order_no":`...)
		b = appendString(b, o.Line.ExternalOrderNo)
	}
	b = append(b, `,"status":`...)
	b = appendString(b, string(o.Status))
	b = append(b, `,"created_at":"`...)
	b = o.CreatedAt.UTC().AppendFormat(b, order.TimeFormat)
	return append(b, '"', '}')
}

func appendConflicts(b []byte, conflicts []order.Conflict) []byte {
	b = append(appendMember(b, "conflicts"), '[')
	for i := range conflicts {
		c := &conflicts[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"row":`...)
		b = strconv.AppendInt(b, int64(c.Row), 10)
		b = appendText(b, "external_order_no", c.ExternalOrderNo)
		b = appendText(b, "reason", string(c.Reason))
		if !c.OrderID.IsZero() {
			b = append(c.OrderID.Append(append(appendMember(b, "order_id"), '"')), '"')
		}
		if len(c.Fields) > 0 {
			b = append(appendMember(b, "fields"), '[')
			for j, f := range c.Fields {
				if j > 0 {
					b = append(b, ',')
				}
				b = appendString(b, f)
			}
			b = append(b, ']')
		}
		b = append(b, '}')
	}
	return append(b, ']')
}
