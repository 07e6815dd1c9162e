package gateway

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/oncegate/oncegate/order"
)

// The scopes of a token.
const (
	ScopeOrders = "orders"
	// ScopeAdminRead is for what only shows something on the admin listener.
	ScopeAdminRead = "admin.read"
	// ScopeAdminWrite is for what changes something there. Whoever has it may
	// read as well.
	ScopeAdminWrite = "admin.write"
	// ScopeAdmin is both.
	ScopeAdmin = "admin"
)

// Scopes are all that there are.
func Scopes() []string {
	return []string{ScopeOrders, ScopeAdminRead, ScopeAdminWrite, ScopeAdmin}
}

var (
	// ErrTokenInvalid says that a token proves nothing.
	ErrTokenInvalid = errors.New("the token is invalid")
	// ErrKeysUnavailable says that nobody can tell now whether a token proves
	// anything: the keys of its issuer cannot be read. A [TokenOptions.Keys] may
	// wrap it.
	ErrKeysUnavailable = errors.New("the keys of the issuer cannot be read")
)

// Identity is who a verified token speaks for.
type Identity struct {
	UserID string
	Scopes []string
}

// Has reports whether the identity has a scope, or one that includes it.
func (id Identity) Has(scope string) bool {
	if slices.Contains(id.Scopes, scope) {
		return true
	}
	switch scope {
	case ScopeAdminRead:
		return slices.Contains(id.Scopes, ScopeAdminWrite) || slices.Contains(id.Scopes, ScopeAdmin)
	case ScopeAdminWrite:
		return slices.Contains(id.Scopes, ScopeAdmin)
	default:
		return false
	}
}

// challenges of RFC 6750, section 3.
const (
	challengeNone = `Bearer realm="oncegate"`
	// challengeSignature goes with a scheme of our own: RFC 9110 wants a challenge
	// with every 401, and no registered scheme is that of Standard Webhooks.
	challengeSignature = `StandardWebhooks realm="oncegate"`
	challengeInvalid   = `Bearer realm="oncegate", error="invalid_token", error_description="the token is expired, malformed or not for this service"`
)

func challengeScope(scope string) string {
	return `Bearer realm="oncegate", error="insufficient_scope", scope="` + scope + `"`
}

// authorize tells who sent a request, or the problem with it. A problem says
// nothing of why a token is refused; the cause is for the log.
func authorize(auth Authenticator, r *http.Request, scope string) (Identity, *problem, error) {
	values := r.Header["Authorization"]
	if len(values) != 1 {
		return Identity{}, unauthenticated(challengeNone), nil
	}
	const scheme = "Bearer "
	v := values[0]
	if len(v) < len(scheme) || !strings.EqualFold(v[:len(scheme)], scheme) {
		return Identity{}, unauthenticated(challengeNone), nil
	}
	who, err := auth.Authenticate(r.Context(), strings.TrimLeft(v[len(scheme):], " "))
	switch {
	case errors.Is(err, ErrTokenInvalid):
		return Identity{}, unauthenticated(challengeInvalid), err
	case err != nil:
		// Whose request it is stays open, so nothing was done for it.
		p := newProblem(CodeUnavailable)
		p.outcome = order.OutcomeNotCommitted
		return Identity{}, p, err
	case !who.Has(scope):
		p := newProblem(CodeForbidden).withDetail("The token lacks the scope " + scope + ".")
		p.challenge = challengeScope(scope)
		return who, p, nil
	}
	return who, nil, nil
}

func unauthenticated(challenge string) *problem {
	p := newProblem(CodeUnauthenticated)
	p.challenge = challenge
	return p
}
