package stub

import (
	"encoding/json"
	"io"
	"net/http"
)

type row struct {
	SKU             string `json:"sku"`
	Quantity        int64  `json:"quantity"`
	Amount          string `json:"amount"`
	ExternalOrderNo string `json:"external_order_no"`
}

type view struct {
	ID              string `json:"order_id"`
	User            string `json:"user_id"`
	SKU             string `json:"sku"`
	Quantity        int64  `json:"quantity"`
	Amount          string `json:"amount"`
	ExternalOrderNo string `json:"external_order_no,omitempty"`
	Status          string `json:"status"`
}

func (o *Order) view() view {
	return view{o.ID, o.User, o.SKU, o.Quantity, o.Amount, o.ExternalOrderNo, o.Status}
}

func (s *Server) create(w http.ResponseWriter, r *http.Request) {
	content, _ := io.ReadAll(r.Body) // of a string: it cannot fail
	who, key := user(r), r.Header.Get("Idempotency-Key")
	if who == "" || key == "" {
		refuse(w, http.StatusUnauthorized, "UNAUTHENTICATED", "rejected")
		return
	}
	n := s.submits.Add(1)
	switch {
	case every(s.Flaws.Hang, n):
		<-r.Context().Done()
		return
	case every(s.Flaws.Fail, n):
		refuse(w, http.StatusServiceUnavailable, "UNAVAILABLE", "not_committed")
		return
	case every(s.Flaws.ReusedAtWill, n):
		refuse(w, http.StatusConflict, "IDEMPOTENCY_KEY_REUSED", "rejected")
		return
	}
	mine := who + "\x00" + key
	s.mu.Lock()
	e := s.entries[mine]
	if e != nil {
		busy, other := e.busy, e.content != string(content)
		s.mu.Unlock()
		switch {
		case other:
			refuse(w, http.StatusConflict, "IDEMPOTENCY_KEY_REUSED", "rejected")
		case busy:
			refuse(w, http.StatusConflict, "REQUEST_IN_PROGRESS", "unknown")
		default:
			s.duplicate(w, r, e, content, mine)
		}
		return
	}
	e = &entry{content: string(content), busy: true}
	s.entries[mine] = e
	s.mu.Unlock()
	s.pause()
	s.commit(e, who, key, content)
	switch {
	case every(s.Flaws.SecondAfterTimeout, n):
		s.mu.Lock()
		delete(s.entries, mine)
		s.mu.Unlock()
		<-r.Context().Done()
		return
	case every(s.Flaws.Forget, n):
		s.mu.Lock()
		delete(s.entries, mine)
		s.orders = without(s.orders, who, key)
		s.mu.Unlock()
	}
	answer(w, http.StatusCreated, e.status, e.body, false)
}

func (s *Server) duplicate(w http.ResponseWriter, r *http.Request, e *entry, content []byte, mine string) {
	switch {
	case s.Flaws.CreatedTwice:
		again := &entry{content: string(content)}
		s.commit(again, user(r), r.Header.Get("Idempotency-Key"), content)
		answer(w, http.StatusCreated, again.status, again.body, false)
	case s.Flaws.ForeignBody:
		s.mu.Lock()
		body := e.body
		for k, o := range s.entries {
			if k != mine && !o.busy {
				body = o.body
				break
			}
		}
		s.mu.Unlock()
		answer(w, http.StatusCreated, e.status, body, true)
	default:
		answer(w, http.StatusCreated, e.status, e.body, true)
	}
}

// commit makes the rows and the answer.
func (s *Server) commit(e *entry, who, key string, content []byte) {
	var batch struct {
		row
		Orders []row `json:"orders"`
	}
	_ = json.Unmarshal(content, &batch) // the harness sends what it was told to
	rows := batch.Orders
	if rows == nil {
		rows = []row{batch.row}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	views := make([]view, len(rows))
	for i, l := range rows {
		s.ids++
		o := &Order{ID: id(s.ids), User: who, Key: key, Line: i, SKU: l.SKU, Quantity: l.Quantity, Amount: l.Amount, ExternalOrderNo: l.ExternalOrderNo, Status: "PENDING"}
		s.orders = append(s.orders, o)
		views[i] = o.view()
	}
	var body any = map[string]any{"orders": views}
	e.status = "/api/requests/" + key
	if batch.Orders == nil {
		body = views[0]
		e.status = "/api/orders/" + views[0].ID
	}
	e.body, _ = json.Marshal(body) // of plain values
	e.busy = false
}

func without(all []*Order, who, key string) []*Order {
	var kept []*Order
	for _, o := range all {
		if o.User != who || o.Key != key {
			kept = append(kept, o)
		}
	}
	return kept
}
