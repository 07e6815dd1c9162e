package verdict

import (
	"cmp"
	"slices"
)

// Kind is what is wrong.
type Kind string

// The kinds. Each is a broken promise of the contract.
const (
	TwoIDs           Kind = "two_ids"
	BodyDiffers      Kind = "body_differs"
	CreatedTwice     Kind = "created_twice"
	ForeignBody      Kind = "foreign_body"
	SharedID         Kind = "shared_id"
	Malformed        Kind = "malformed_answer"
	ForbiddenOutcome Kind = "forbidden_outcome"
	Lost             Kind = "lost"
	Duplicate        Kind = "duplicate"
	WrongRow         Kind = "wrong_row"
	Denied           Kind = "denied_yet_there"
	Stray            Kind = "stray"
	NoRecord         Kind = "order_without_key"
	NoOrder          Kind = "key_without_order"
	PaymentLost      Kind = "payment_lost"
	RefundOwed       Kind = "refund_owed"
	WrongStatus      Kind = "wrong_status"
	Disordered       Kind = "not_linearizable"
	WrongState       Kind = "wrong_request_state"
	NotOurs          Kind = "not_of_this_run"
)

var means = map[Kind]string{
	TwoIDs:           "one key was answered with different orders",
	BodyDiffers:      "one key was answered with successes that are not the same",
	CreatedTwice:     "one key was answered with \"created\" more than once",
	ForeignBody:      "an answer is about something that this key did not ask for",
	SharedID:         "one order was the answer to two keys",
	Malformed:        "a success cannot be read, or does not say what it must",
	ForbiddenOutcome: "an outcome that must not occur in this scenario",
	Lost:             "a success has no row",
	Duplicate:        "one key has more rows than it asked for",
	WrongRow:         "a row is not what was asked for",
	Denied:           "every answer was a refusal, or one was for good, and yet there is a row",
	Stray:            "a row belongs to no request of this run",
	NoRecord:         "an order whose key is not on record",
	NoOrder:          "a key on record as succeeded has no order",
	PaymentLost:      "an accepted payment does not show in the order",
	RefundOwed:       "a payment of the right amount is said to be owed back",
	WrongStatus:      "an order has a status that nothing in this run gave it",
	Disordered:       "no order of events explains the answers of a key",
	WrongState:       "the record of a key names another order than its answers, or none, or is not the refusal that they were",
	NotOurs:          "an answer tells of an order that this run cannot have made: an earlier run had its name (give another --run), or the answer is not true",
}

// Means says in a sentence what is wrong.
func (k Kind) Means() string {
	return cmp.Or(means[k], "a promise of the contract that this program does not know")
}

// Finding is one broken promise.
type Finding struct {
	Kind   Kind   `json:"kind"`
	User   string `json:"user,omitempty"`
	Key    string `json:"key,omitempty"`
	Detail string `json:"detail"`
	File   string `json:"file,omitempty"` // with a drawing
}

// maxListed is how many findings of one kind are kept; all are counted.
const maxListed = 25

// Findings collects what is wrong.
type Findings struct {
	Counts map[Kind]int `json:"counts"`
	List   []Finding    `json:"list"`
}

func (f *Findings) add(x Finding) {
	if f.Counts == nil {
		f.Counts = map[Kind]int{}
	}
	f.Counts[x.Kind]++
	if f.Counts[x.Kind] <= maxListed {
		f.List = append(f.List, x)
	}
}

// Merge adds the findings of another judge.
func (f *Findings) Merge(o Findings) {
	for k, n := range o.Counts {
		if f.Counts == nil {
			f.Counts = map[Kind]int{}
		}
		f.Counts[k] += n
	}
	f.List = append(f.List, o.List...)
}

// Total is the number of findings.
func (f *Findings) Total() int {
	n := 0
	for _, c := range f.Counts {
		n += c
	}
	return n
}

// Kinds lists the kinds that occurred, the most frequent first.
func (f *Findings) Kinds() []Kind {
	kinds := make([]Kind, 0, len(f.Counts))
	for k := range f.Counts {
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(a, b Kind) int {
		return cmp.Or(f.Counts[b]-f.Counts[a], cmp.Compare(a, b))
	})
	return kinds
}
