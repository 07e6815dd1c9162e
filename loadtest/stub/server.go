package stub

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Flaws are the ways to break the contract. The numbers say how many requests
// pass between two breaks; 0 is never.
type Flaws struct {
	SecondAfterTimeout int  // commits, does not answer, and forgets the key: the retry makes a second order
	ForeignBody        bool // replays the answer of another key
	Forget             int  // answers "created" and drops the order
	CreatedTwice       bool // answers a duplicate with a new order
	LosePayment        bool // accepts callbacks and does nothing
	Hang               int  // commits nothing and never answers
	Fail               int  // answers 503, outcome not_committed
	ReusedAtWill       int  // calls a fresh key reused
}

// Order is one row.
type Order struct {
	ID, User, Key, ExternalOrderNo, SKU, Amount, Status string
	Line                                                int
	Quantity                                            int64
}

type entry struct {
	content string
	body    []byte
	status  string // Location
	busy    bool
}

// Server is the stub. It is an http.Handler.
type Server struct {
	Flaws Flaws
	Delay time.Duration // of every answer

	mux     *http.ServeMux
	mu      sync.Mutex
	orders  []*Order
	entries map[string]*entry
	ids     int

	received, submits atomic.Int64
}

// New returns a stub.
func New(f Flaws) *Server {
	s := &Server{Flaws: f, mux: http.NewServeMux(), entries: map[string]*entry{}}
	s.mux.HandleFunc("POST /api/orders", s.create)
	s.mux.HandleFunc("POST /order/create_user_order", s.create)
	s.mux.HandleFunc("POST /api/order-batches", s.create)
	s.mux.HandleFunc("GET /api/orders", s.list)
	s.mux.HandleFunc("GET /api/orders/{id}", s.order)
	s.mux.HandleFunc("GET /api/requests/{key}", s.request)
	s.mux.HandleFunc("POST /webhooks/payments", s.pay)
	s.mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"status":"ok"}`) })
	return s
}

// Received is the number of requests that arrived whole.
func (s *Server) Received() int64 { return s.received.Load() }

// Orders returns a copy of all rows.
func (s *Server) Orders() []Order {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := make([]Order, len(s.orders))
	for i, o := range s.orders {
		rows[i] = *o
	}
	return rows
}

// Plant adds a row that nobody asked for.
func (s *Server) Plant(o Order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids++
	o.ID = id(s.ids)
	s.orders = append(s.orders, &o)
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.received.Add(1)
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	s.mux.ServeHTTP(w, r)
}

// pause waits as a slow server does, whether or not the client is still there.
func (s *Server) pause() {
	if s.Delay > 0 {
		<-time.After(s.Delay)
	}
}

func every(n int, count int64) bool { return n > 0 && count%int64(n) == 0 }

func id(n int) string { return fmt.Sprintf("01990000-0000-7000-8000-%012x", n) }

// user reads the subject of the token. The stub believes everybody.
func user(r *http.Request) string {
	parts := strings.Split(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), ".")
	if len(parts) != 3 {
		return ""
	}
	b, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct{ Sub string }
	if err != nil || json.Unmarshal(b, &claims) != nil {
		return ""
	}
	return claims.Sub
}

func refuse(w http.ResponseWriter, status int, code, outcome string) {
	w.Header().Set("Content-Type", "application/problem+json")
	if code == "REQUEST_IN_PROGRESS" || status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"status": status, "code": code, "outcome": outcome, "retry_after_ms": 20})
}

func answer(w http.ResponseWriter, status int, location string, body []byte, replayed bool) {
	w.Header().Set("Content-Type", "application/json")
	if location != "" {
		w.Header().Set("Location", location)
	}
	if replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
