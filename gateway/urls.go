package gateway

import (
	"encoding/base64"
	"net/url"

	"github.com/oncegate/oncegate/order"
)

const (
	ordersPath   = "/api/orders"
	requestsPath = "/api/requests/"
)

func orderURL(id order.ID) string {
	return string(id.Append(append(make([]byte, 0, len(ordersPath)+37), ordersPath+"/"...)))
}

// statusURL is where to ask what became of the request with a key; empty when
// there is no key, or none that a path can carry: clients and proxies take the
// segments "." and ".." out of every path, however they are written.
func statusURL(key order.Key) string {
	if key == "" || key == "." || key == ".." {
		return ""
	}
	return requestsPath + url.PathEscape(string(key))
}

// cursorOf is the cursor of the page that follows an order.
func cursorOf(id order.ID) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// parseCursor takes the one spelling that cursorOf gives. Strict decoding still
// passes over line breaks, so the length is part of the check.
func parseCursor(s string) (order.ID, bool) {
	var id order.ID
	if len(s) != base64.RawURLEncoding.EncodedLen(len(id)) {
		return id, false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) != len(id) {
		return id, false
	}
	copy(id[:], b)
	return id, !id.IsZero()
}
