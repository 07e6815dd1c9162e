package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
)

// loopbackOperator stands for an operator who needed no token.
const loopbackOperator = "loopback"

// handle wraps a route of the admin listener with its guards and its log line.
func (a *Admin) handle(route string, open openness, serve http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started := a.o.Now()
		id := requestID(r, r.PathValue("key"))
		w.Header().Set("X-Request-Id", id)
		rec := &recorder{ResponseWriter: w, status: http.StatusOK}
		var who Identity
		defer func() {
			v := recover()
			attrs := []any{"request_id", id, "method", methodOf(r), "route", route}
			if v != nil {
				attrs = append(attrs, "cause", fmt.Sprintf("panic: %v\n%s", v, debug.Stack()))
				if !rec.written {
					a.problem(rec, newProblem(CodeInternal))
					v = nil
				}
			}
			if rec.cause != nil {
				attrs = append(attrs, "cause", rec.cause.Error())
			}
			level := slog.LevelDebug
			switch {
			case open == forProbes: // a change of health has a line of its own
			case rec.status == http.StatusServiceUnavailable:
				level = slog.LevelWarn // an outage is not this program's fault
			case rec.status >= http.StatusInternalServerError:
				level = slog.LevelError
			case r.Method != http.MethodGet, rec.status >= http.StatusBadRequest, rec.cause != nil:
				level = slog.LevelInfo
			}
			if who.UserID != "" {
				attrs = append(attrs, "operator", who.UserID)
			}
			attrs = append(attrs, "status", rec.status, "took_ms", milliseconds(a.o.Now().Sub(started)))
			a.o.Logger.Log(r.Context(), level, "admin request", attrs...)
			if v != nil {
				panic(http.ErrAbortHandler) // cuts the connection: half an answer must not pass for a whole one
			}
		}()
		foreign := a.sameSite
		if open == forProbes {
			foreign = ownPage
		}
		p := foreign(r)
		if p == nil {
			who, p, rec.cause = a.operator(r, open)
		}
		if p != nil {
			a.problem(rec, p)
			return
		}
		serve(rec, r.WithContext(context.WithValue(r.Context(), operatorKey{}, who)))
	})
}

// operatorKey is under which a request's context has who asks.
type operatorKey struct{}

// operatorOf is the operator whom handle let in.
func operatorOf(ctx context.Context) Identity {
	who, _ := ctx.Value(operatorKey{}).(Identity)
	return who
}

// scopeOf is what a request needs: whatever is not sure to change nothing is a
// change.
func scopeOf(method string) string {
	if method == http.MethodGet || method == http.MethodHead {
		return ScopeAdminRead
	}
	return ScopeAdminWrite
}

// sameSite refuses what a browser sends for a page of somebody else: by a name
// that was rebound to this address, or what ownPage refuses.
func (a *Admin) sameSite(r *http.Request) *problem {
	if !calledBy(r, a.o.AllowedHosts) {
		return newProblem(CodeForbidden).withDetail("This listener does not go by that host name.")
	}
	return ownPage(r)
}

// ownPage refuses what a browser sends across sites and origins, reads included,
// for a page that cannot see an answer can still have a profile taken. A request
// of no browser has neither of the headers. For probes it is all: load balancers
// and orchestrators call a process by names that it cannot know.
func ownPage(r *http.Request) *problem {
	if !ownOrigin(r) {
		return newProblem(CodeForbidden).withDetail("Requests of other origins are refused.")
	}
	for _, site := range r.Header["Sec-Fetch-Site"] {
		if site != "same-origin" && site != "none" {
			return newProblem(CodeForbidden).withDetail("Requests of other sites are refused.")
		}
	}
	return nil
}

// calledBy reports whether the name in a request is localhost, an IP address or
// one of these. Any other may have been rebound to this address. 0.0.0.0 is no
// address of anybody's: systems take it for this machine, while browsers do not
// trust it enough to say of a request for it from which site it comes.
func calledBy(r *http.Request, names []string) bool {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	ip, err := netip.ParseAddr(host)
	isHost := func(name string) bool { return strings.EqualFold(name, host) }
	return err == nil && !ip.Unmap().IsUnspecified() || isHost("localhost") || slices.ContainsFunc(names, isHost)
}

// ownOrigin reports whether no page of another origin made a request.
func ownOrigin(r *http.Request) bool {
	return !slices.ContainsFunc(r.Header["Origin"], func(origin string) bool {
		u, err := url.Parse(origin)
		return err != nil || u.Host != r.Host
	})
}

// operator tells who asks, or why that is not enough; the error is for the log. A
// token that is there counts, also on loopback.
func (a *Admin) operator(r *http.Request, open openness) (Identity, *problem, error) {
	if open == forProbes {
		return Identity{}, nil, nil
	}
	if _, given := r.Header["Authorization"]; given && a.o.Auth != nil {
		return authorize(a.o.Auth, r, scopeOf(r.Method))
	}
	switch {
	case a.o.AllowLoopback && fromThisMachine(r):
		return Identity{UserID: loopbackOperator, Scopes: []string{ScopeAdmin}}, nil, nil
	case open == forScrapers && a.o.OpenMetrics:
		return Identity{}, nil, nil
	}
	return Identity{}, unauthenticated(challengeNone), nil
}

// fromThisMachine reports whether the request was made here. What a proxy of
// this machine passes on was not.
func fromThisMachine(r *http.Request) bool {
	for _, h := range []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip", "Via"} {
		if _, proxied := r.Header[h]; proxied {
			return false
		}
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && peer.Addr().Unmap().IsLoopback()
}

// recorder remembers what an answer was, for the log.
type recorder struct {
	http.ResponseWriter
	status  int
	written bool
	cause   error // see note
}

// note has the line of a request tell why it went wrong: no answer does.
func note(w http.ResponseWriter, cause error) {
	if rec, ok := w.(*recorder); ok {
		rec.cause = cause
	}
}

func (r *recorder) WriteHeader(status int) {
	if !r.written {
		r.status, r.written = status, true
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	r.written = true
	return r.ResponseWriter.Write(b)
}

// Unwrap lets [http.ResponseController] find the connection, for profiles.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
