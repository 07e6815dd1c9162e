package stub

import (
	"encoding/json"
	"net/http"
	"strconv"
)

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	who := user(r)
	from, _ := strconv.Atoi(r.URL.Query().Get("cursor")) // absent: from the beginning
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	limit = max(limit, 1)
	s.mu.Lock()
	views := []view{}
	for _, o := range s.orders {
		if o.User == who {
			views = append(views, o.view())
		}
	}
	s.mu.Unlock()
	page := map[string]any{"orders": views[min(from, len(views)):min(from+limit, len(views))]}
	if from+limit < len(views) {
		page["next_cursor"] = strconv.Itoa(from + limit)
	}
	b, _ := json.Marshal(page) // of plain values
	answer(w, http.StatusOK, "", b, false)
}

// order shows what was made since the user's orders were listed as well.
func (s *Server) order(w http.ResponseWriter, r *http.Request) {
	who, id := user(r), r.PathValue("id")
	var b []byte
	s.mu.Lock()
	for _, o := range s.orders {
		if o.User == who && o.ID == id {
			b, _ = json.Marshal(o.view()) // of plain values
		}
	}
	s.mu.Unlock()
	if b == nil {
		refuse(w, http.StatusNotFound, "NOT_FOUND", "rejected")
		return
	}
	answer(w, http.StatusOK, "", b, false)
}

func (s *Server) request(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	e := s.entries[user(r)+"\x00"+r.PathValue("key")]
	var state map[string]any
	switch {
	case e == nil:
	case e.busy:
		state = map[string]any{"state": "in_progress"}
	default:
		state = map[string]any{"state": "succeeded", "response": map[string]any{
			"status": http.StatusCreated, "location": e.status, "body": json.RawMessage(e.body),
		}}
	}
	s.mu.Unlock()
	if state == nil {
		refuse(w, http.StatusNotFound, "NOT_FOUND", "rejected")
		return
	}
	b, _ := json.Marshal(state) // of plain values
	answer(w, http.StatusOK, "", b, false)
}

func (s *Server) pay(w http.ResponseWriter, r *http.Request) {
	var m struct {
		Data struct {
			OrderID string `json:"order_id"`
		} `json:"data"`
	}
	if json.NewDecoder(r.Body).Decode(&m) != nil {
		refuse(w, http.StatusBadRequest, "INVALID_REQUEST", "rejected")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.orders {
		if o.ID == m.Data.OrderID && !s.Flaws.LosePayment {
			o.Status = "PAID"
		}
	}
	answer(w, http.StatusOK, "", []byte(`{"effect":"applied","duplicate":false,"refund_owed":false}`), false)
}
