package gateway

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/oncegate/oncegate/insight"
	"github.com/oncegate/oncegate/order"
)

// conflicted tells operators of a client that asks for what cannot be.
func (x *exchange) conflicted(code Code, reason string) {
	if x.s.o.Conflicts == nil {
		return
	}
	x.s.o.Conflicts(insight.Conflict{
		At:     x.s.o.Now().UTC(),
		Client: clientHash(x.s.logKey, x.who.UserID),
		Agent:  agent(x.r.UserAgent()),
		Code:   string(code),
		Reason: reason,
		Digest: shortDigest(x.digest),
	})
}

// conflictReason is how the first of the business numbers is taken.
func conflictReason(r *order.Rejection) string {
	if len(r.Conflicts) == 0 {
		return ""
	}
	return string(r.Conflicts[0].Reason)
}

// clientHash stands for a user where nobody needs to know who it is.
func clientHash(secret []byte, userID string) string {
	mac := hmac.New(sha256.New, secret)
	_, _ = mac.Write([]byte("client\x00" + userID))
	return hex.EncodeToString(mac.Sum(nil)[:6])
}

const maxAgent = 40

// agent is what a client calls itself: the first word, such as storefront/1.2,
// if it is one that can be shown.
func agent(header string) string {
	name, _, _ := strings.Cut(header, " ")
	if len(name) > maxAgent {
		return ""
	}
	for _, c := range []byte(name) {
		if c <= ' ' || c > '~' {
			return ""
		}
	}
	return name
}
