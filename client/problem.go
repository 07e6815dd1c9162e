package client

import (
	"encoding/json"
	"fmt"
	"mime"
	"strings"
	"time"
)

// What is known of a request that was not a success ([Problem].Outcome). They
// speak of that request alone, and not of an earlier one with the same key.
const (
	Rejected     = "rejected"      // refused, and made nothing
	NotCommitted = "not_committed" // not decided, and proven to have made nothing
	Unknown      = "unknown"       // may have made the order
)

// Problem is the gateway's own word on a request that was not a success
// (RFC 9457).
type Problem struct { //nolint:errname // what RFC 9457 calls it
	Status  int    `json:"status"`
	Code    string `json:"code"` // for programs, such as INSUFFICIENT_BALANCE
	Title   string `json:"title"`
	Detail  string `json:"detail"`
	Outcome string `json:"outcome"`
	// Retryable: the same request with the same key may be answered otherwise
	// later. What a Client returns is not, or its time ran out.
	Retryable bool `json:"retryable"`
	// SafeNewKey: the gateway sees no risk of a second order in a new key. It does
	// not know which requests are of one intent, so it is not enough for
	// [Client.Renew]. Where it is false, keep the key.
	SafeNewKey bool       `json:"safe_new_key"`
	RequestID  string     `json:"request_id"` // for the operator of the gateway
	StatusURL  string     `json:"status_url"` // relative to the gateway
	Conflicts  []Conflict `json:"conflicts"`
	Errors     []Fault    `json:"errors"`

	RetryAfterMS int64 `json:"retry_after_ms"`

	key string // that the request was sent with
}

// Conflict names an order that has the business number of a line.
type Conflict struct {
	Row             int    `json:"row"`
	ExternalOrderNo string `json:"external_order_no"`
	// Reason is exists (with the same content), exists_different or
	// duplicate_in_batch.
	Reason  string   `json:"reason"`
	OrderID string   `json:"order_id"`
	Fields  []string `json:"fields"` // that differ
}

// Fault is one thing that is wrong with a request.
type Fault struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Error names the code, the title and what is wrong where.
func (p *Problem) Error() string {
	var text strings.Builder
	text.WriteString(p.Code + ": " + p.Title)
	for _, f := range p.Errors {
		text.WriteString(fmt.Sprintf("; %s %s", f.Path, f.Reason))
	}
	if p.RequestID != "" {
		text.WriteString(" (request " + p.RequestID + ")")
	}
	return text.String()
}

// Verdict reports whether the gateway has judged the order itself, after it has
// looked for an earlier one with this key: balance, stock, business number, or an
// accepted order that could not be carried out. The intent has then made no order,
// in whatever call.
//
// Any other problem, such as UNAUTHENTICATED or INVALID_REQUEST, was found before
// that look. What an earlier call has left unsettled it leaves unsettled.
func (p *Problem) Verdict() bool {
	switch p.Code {
	case "INSUFFICIENT_BALANCE", "OUT_OF_STOCK", "ORDER_ALREADY_EXISTS", "EXECUTION_FAILED":
		return p.Outcome == Rejected
	default:
		return false
	}
}

// RetryAfter is how long the gateway asks to wait, or 0.
func (p *Problem) RetryAfter() time.Duration {
	const most = int64(1<<31) * 1000 // what the header can say; more would not fit into a time
	return time.Duration(min(max(p.RetryAfterMS, 0), most)) * time.Millisecond
}

// problemOf reads a problem of the gateway's: one with a code and an outcome,
// which nobody else on the way writes. Nil for anything else.
func problemOf(a answer) *Problem {
	var p Problem
	mediaType, _, _ := mime.ParseMediaType(a.header.Get("Content-Type")) // "" where it cannot be read
	whole := mediaType == "application/problem+json" && json.Unmarshal(a.body, &p) == nil
	if !whole || p.Code == "" || p.Outcome == "" || p.Status != a.status {
		return nil
	}
	return &p
}
