package measure

import (
	"fmt"
	"strings"
)

// Outcome is what became of a request, in the words of the contract.
type Outcome uint8

// The outcomes.
const (
	Created     Outcome = iota // a new order
	Replayed                   // the first answer again
	InProgress                 // the first attempt is still running
	Reused                     // the key belongs to another content
	Rejected                   // a business refusal: balance, stock, business number
	Limited                    // too many requests
	Unavailable                // try later
	Read                       // a read was answered
	Accepted                   // a callback was taken
	Unexpected                 // an answer that is none of these
	HungUp                     // the client left before the answer, as the scenario wanted
	Timeout                    // no answer in time
	Transport                  // the connection was refused or broke
	ClientLimit                // the load generator ran out of ports or sockets
	outcomes
)

var names = [outcomes]string{
	"created", "replayed", "in_progress", "reused", "rejected", "limited", "unavailable",
	"read", "accepted", "unexpected", "hung_up", "timeout", "transport_error", "client_limit",
}

// String is the outcome's name in files, thresholds and reports.
func (o Outcome) String() string { return names[o] }

// MarshalText writes the name.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(names[o]), nil }

// UnmarshalText reads a name.
func (o *Outcome) UnmarshalText(b []byte) error {
	got, err := ParseOutcome(string(b))
	if err == nil {
		*o = got
	}
	return err
}

// Outcomes lists all of them, in the order of reports.
func Outcomes() []Outcome {
	all := make([]Outcome, outcomes)
	for i := range all {
		all[i] = Outcome(i)
	}
	return all
}

// ParseOutcome reads a name.
func ParseOutcome(name string) (Outcome, error) {
	for i, n := range names {
		if n == name {
			return Outcome(i), nil
		}
	}
	return 0, fmt.Errorf("outcome %q: want one of %s", name, strings.Join(names[:], ", "))
}
