package gateway

import (
	"errors"
	"net/http"
	"slices"
	"strings"
)

// The scopes of a token.
const (
	ScopeOrders = "orders"
	ScopeAdmin  = "admin"
)

// ErrTokenInvalid says that a token proves nothing.
var ErrTokenInvalid = errors.New("the token is invalid")

// Identity is who a verified token speaks for.
type Identity struct {
	UserID string
	Scopes []string
}

// Has reports whether the identity has a scope.
func (id Identity) Has(scope string) bool {
	return slices.Contains(id.Scopes, scope)
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
		return Identity{}, newProblem(CodeUnavailable), err
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
