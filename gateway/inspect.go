package gateway

import (
	"context"
	"errors"
	"net/http"

	"github.com/oncegate/oncegate/order"
)

// stateUnavailable is that of a layer that could not be asked.
const stateUnavailable = "unavailable"

// inspectKey tells what each layer knows of a key, cheapest first. It shows no
// answer's body: an operator needs to see where a key is, not what was bought.
func (a *Admin) inspectKey(w http.ResponseWriter, r *http.Request) {
	user := r.PathValue("user")
	key, err := order.ParseKey(r.PathValue("key"))
	if err != nil {
		a.problem(w, newProblem(CodeKeyInvalid))
		return
	}
	if !order.ValidUserID(user) {
		a.problem(w, faultAt("user", "must be 1 to 64 visible ASCII characters"))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), a.o.Budget)
	defer cancel()
	b := appendText([]byte{'{'}, "user_id", user)
	if secret := a.o.LogHashKey; len(secret) > 0 {
		// Attempts are not counted anywhere: they are lines of the log.
		b = appendText(b, "key_hash", keyHash(secret, user, key))
		b = appendText(b, "client", clientHash(secret, user))
	}
	b = append(appendMember(b, "layers"), '[')
	glimpses := a.o.Peeker.Peek(ctx, user, key)
	for i := range glimpses {
		if i > 0 {
			b = append(b, ',')
		}
		b = a.appendGlimpse(b, &glimpses[i])
	}
	receipt, err := a.o.Finder.Find(ctx, user, key)
	if !errors.Is(err, order.ErrNotFound) {
		if len(glimpses) > 0 {
			b = append(b, ',')
		}
		b = appendText(append(b, '{'), "layer", order.LayerLedger.String())
		if err != nil {
			note(w, err)
			b = appendText(b, "state", stateUnavailable)
		} else {
			b = a.appendReceipt(b, &receipt)
		}
		b = append(b, '}')
	}
	a.answer(w, append(b, ']', '}'))
}

func (a *Admin) appendGlimpse(b []byte, g *order.Glimpse) []byte {
	b = appendText(append(b, '{'), "layer", g.Layer.String())
	if g.Unavailable {
		return append(appendText(b, "state", stateUnavailable), '}')
	}
	if g.TTL > 0 {
		b = appendInt(b, "ttl_ms", max(1, g.TTL.Milliseconds()))
	}
	if !g.Running {
		return append(a.appendReceipt(b, &g.Receipt), '}')
	}
	b = appendText(b, "state", stateInProgress)
	b = appendInt(b, "age_ms", max(0, g.Age.Milliseconds()))
	if g.Digest != (order.Digest{}) {
		b = appendText(b, "digest", shortDigest(g.Digest))
	}
	return append(b, '}')
}

func (a *Admin) appendReceipt(b []byte, r *order.Receipt) []byte {
	b = appendText(b, "state", stateName(r.State))
	b = appendText(b, "digest", shortDigest(r.Digest))
	b = appendTime(b, "first_seen_at", r.FirstSeen)
	b = appendInt(b, "age_ms", max(0, a.o.Now().Sub(r.FirstSeen).Milliseconds()))
	if r.Response.Status != 0 {
		b = appendInt(b, "status", int64(r.Response.Status))
	}
	if r.Response.Location != "" {
		b = appendText(b, "location", r.Response.Location)
	}
	return b
}
