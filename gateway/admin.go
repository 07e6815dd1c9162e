package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/oncegate/oncegate/order"
)

// Peeker tells what the filter's layers know of a key. An [order.Filter] is one.
type Peeker interface {
	Peek(ctx context.Context, userID string, key order.Key) []order.Glimpse
}

// Finder reads the record of a key. An [order.Ledger] is one.
type Finder interface {
	Find(ctx context.Context, userID string, key order.Key) (order.Receipt, error)
}

// Shipper marks orders as shipped. An [order.Lifecycle] is one.
type Shipper interface {
	Ship(ctx context.Context, id order.ID) (order.Transition, error)
}

// Desk is what operators do about users, stock, orders and keys. All of it is
// required.
type Desk struct {
	Accounts order.Accounts
	Shipper  Shipper
	Peeker   Peeker
	Finder   Finder
}

// AdminOptions are what an [Admin] is made of. All are required but those that
// name a default.
type AdminOptions struct {
	// Addr is what to listen on, such as "127.0.0.1:9090".
	Addr string
	// Desk is for a gateway. Default: none, and its routes are not there.
	Desk
	// Health is told here by a process that has no other listener, to whoever can
	// connect. Default: none, and its routes are not there.
	Health   *Health
	Gatherer prometheus.Gatherer
	// LogHashKey is that of [Options], so that the look-up of a key can name what
	// stands for it in the log. Default: none, and it names nothing.
	LogHashKey []byte
	// Insight answers the console. Default: none, and neither is there a console.
	Insight  Insight
	Renderer *Renderer
	Logger   *slog.Logger
	Now      func() time.Time
	// Settings are shown and changed. Default: none, and their routes are not there.
	Settings Settings
	// Auth verifies tokens; what they need is the scope admin.read, and
	// admin.write for what changes something. Default: none, and then only a
	// loopback address is listened on.
	Auth Authenticator
	// AllowLoopback lets whoever connects from this machine do without a token.
	// Default false.
	AllowLoopback bool
	// OpenMetrics lets anybody who can connect read /metrics. Default false.
	OpenMetrics bool
	// AllowedHosts are the names that this listener is called by, beside
	// localhost and IP addresses.
	AllowedHosts []string
	// Budget bounds what one request may take. Default 5 s.
	Budget   time.Duration
	Timeouts Timeouts // default as its members say, but 2 min for Write, for profiles
	// Certificates are shown to whoever connects. Default: none, plain HTTP.
	Certificates *Certificates
}

// Admin is the listener for operators: metrics, profiles, accounts, stock and
// the inspection of keys.
type Admin struct {
	*listener
	o       AdminOptions
	bodies  bodies
	streams *streams
}

// maxAdminBody bounds the bodies of this listener, in bytes.
const maxAdminBody = 4 << 10

// NewAdmin makes an admin listener that does not listen yet.
func NewAdmin(o AdminOptions) (*Admin, error) {
	some := o.Accounts != nil || o.Shipper != nil || o.Peeker != nil || o.Finder != nil
	all := o.Accounts != nil && o.Shipper != nil && o.Peeker != nil && o.Finder != nil
	if some != all || o.Gatherer == nil || o.Renderer == nil || o.Logger == nil || o.Now == nil {
		return nil, errors.New("admin: an option is missing")
	}
	if o.Budget == 0 {
		o.Budget = 5 * time.Second
	}
	if o.Timeouts.Write == 0 {
		o.Timeouts.Write = 2 * time.Minute
	}
	a := &Admin{o: o, streams: newStreams()}
	a.listener = newListener(o.Addr, a.routes(), o.Timeouts, o.Certificates, o.Logger)
	a.http.RegisterOnShutdown(a.streams.end)
	return a, nil
}

// Handler answers requests, for tests and for servers of one's own.
func (a *Admin) Handler() http.Handler { return a.http.Handler }

// Listen binds the address. It refuses one that other machines can reach when
// there is nothing that could tell an operator from anybody else.
func (a *Admin) Listen(ctx context.Context) error {
	if err := a.listener.Listen(ctx); err != nil {
		return err
	}
	if tcp, ok := a.Addr().(*net.TCPAddr); a.o.Auth == nil && (!ok || !tcp.IP.IsLoopback()) {
		err := fmt.Errorf("admin: %s is not a loopback address, and no token is asked for: configure authentication or listen on 127.0.0.1", a.Addr())
		return errors.Join(err, a.ln.Close())
	}
	return nil
}

// Shutdown answers what is under way, until ctx ends. Streams of events and
// profiles end at once.
func (a *Admin) Shutdown(ctx context.Context) error { return a.stop(ctx) }

// problem writes a problem under the request id that handle chose.
func (a *Admin) problem(w http.ResponseWriter, p *problem) {
	a.o.Renderer.writeProblem(w, p, w.Header().Get("X-Request-Id"))
}

// fail answers with the problem that an error stands for.
func (a *Admin) fail(w http.ResponseWriter, err error) { a.caused(w, problemOf(err), err) }

// caused is problem with the cause of one that is not the caller's to mend.
func (a *Admin) caused(w http.ResponseWriter, p *problem, cause error) {
	if p.status >= http.StatusInternalServerError {
		note(w, cause)
	}
	a.problem(w, p)
}

func (a *Admin) answer(w http.ResponseWriter, body []byte) {
	h := w.Header()
	h.Set("Content-Type", jsonType)
	h.Set("Cache-Control", noStore)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) //nolint:gosec // G705: JSON, declared as such; if it fails the client is gone
}

func (a *Admin) putUser(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if !order.ValidUserID(id) {
		a.problem(w, faultAt("id", "must be 1 to 64 visible ASCII characters"))
		return
	}
	body, ok := a.body(w, r)
	if !ok {
		return
	}
	balance, err := decodeBalance(body)
	if err == nil {
		ctx, cancel := context.WithTimeout(r.Context(), a.o.Budget)
		defer cancel()
		err = a.o.Accounts.SetBalance(ctx, id, balance)
	}
	if err != nil {
		a.fail(w, err)
		return
	}
	b := appendText([]byte{'{'}, "user_id", id)
	b = balance.Append(append(appendMember(b, "balance"), '"'))
	a.answer(w, append(b, '"', '}'))
}

func (a *Admin) putStock(w http.ResponseWriter, r *http.Request) {
	sku := r.PathValue("sku")
	if !order.ValidSKU(sku) {
		a.problem(w, faultAt("sku", "must be a SKU"))
		return
	}
	body, ok := a.body(w, r)
	if !ok {
		return
	}
	available, err := decodeAvailable(body)
	if err == nil {
		ctx, cancel := context.WithTimeout(r.Context(), a.o.Budget)
		defer cancel()
		err = a.o.Accounts.SetStock(ctx, sku, available)
	}
	if err != nil {
		a.fail(w, err)
		return
	}
	a.answer(w, append(appendInt(appendText([]byte{'{'}, "sku", sku), "available", available), '}'))
}

// body reads the body of a change, or answers with what is wrong with it.
func (a *Admin) body(w http.ResponseWriter, r *http.Request) (string, bool) {
	// Not only a matter of form: no page of another origin can send this type
	// without asking first.
	if !jsonBody(r.Header) {
		a.problem(w, newProblem(CodeUnsupportedMediaType))
		return "", false
	}
	body, p, err := a.bodies.read(r, maxAdminBody, nil) // below placelessBody
	if p != nil {
		note(w, err)
		a.problem(w, p)
		return "", false
	}
	return body, true
}

func faultAt(path, reason string) *problem {
	return problemOf(&order.InvalidError{Faults: []order.FieldFault{{Path: path, Reason: reason}}})
}
