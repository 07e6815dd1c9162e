package verdict

import (
	"fmt"

	"github.com/anishathalye/porcupine"

	"github.com/oncegate/oncegate/loadtest/history"
	"github.com/oncegate/oncegate/loadtest/measure"
)

// register is the state of one key in the sequential specification.
type register struct {
	kind    registerKind
	content history.Op // whose content it holds
	body    string     // the answer; "" when nobody heard it
}

type registerKind uint8

const (
	absent registerKind = iota
	committed
	refused
)

// event is the output of an operation.
type event struct {
	history.Record
	held bool // somebody can have held the key against it
	// own says of a repeated refusal that nobody heard another one: a gateway whose
	// COMMIT had no answer found its own, which it cannot tell from somebody else's.
	own     bool
	lasting bool // a refusal that says that it is remembered
}

// specification is what one key may do, one operation after the other. An answer
// that was not heard may stand for any of its possible effects.
func specification() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init:              func() []any { return []any{register{}} },
		Step:              func(state, _, output any) []any { return step(state.(register), output.(event)) },
		DescribeOperation: func(_, output any) string { return describe(output.(event)) },
		DescribeState:     func(state any) string { return fmt.Sprint(state) },
	}
	return m.ToModel()
}

func step(s register, e event) []any {
	if e.Op == history.Status {
		return stepStatus(s, e)
	}
	same := s.kind == absent || s.content == e.Op
	heard := s.body == "" || s.body == string(e.Body)
	switch {
	case e.Outcome == measure.Created:
		if s.kind == absent {
			return []any{register{committed, e.Op, string(e.Body)}}
		}
	case e.Outcome == measure.Replayed:
		if s.kind == committed && same && heard {
			return []any{register{committed, e.Op, string(e.Body)}}
		}
	case e.Outcome == measure.Rejected:
		decided := register{refused, e.Op, string(e.Body)}
		switch {
		case s.kind == refused && same && heard:
			return []any{decided}
		case s.kind == absent && !e.Replayed && e.lasting:
			return []any{decided}
		case s.kind == absent && !e.Replayed:
			return []any{decided, s} // remembered, or released again
		case s.kind == absent && e.own:
			return []any{decided}
		}
	case e.Outcome == measure.Reused:
		// The other content may hold the key for a moment only: an attempt that
		// is under way, or one that died and left its mark.
		if !same || e.held {
			return []any{s}
		}
	case e.Outcome == measure.InProgress:
		if e.held {
			return []any{s}
		}
	case e.Proof == history.Unknown:
		if s.kind == absent {
			return []any{s, register{committed, e.Op, ""}, register{refused, e.Op, ""}}
		}
		return []any{s}
	default:
		return []any{s} // limited, proven to have had no effect
	}
	return nil
}

func stepStatus(s register, e event) []any {
	ok := true
	switch {
	case e.Outcome != measure.Read:
	case e.State == "succeeded":
		ok = s.kind == committed
	case e.State == "failed":
		ok = s.kind == refused
	default: // in progress, or not known: nothing is decided yet
		ok = s.kind == absent
	}
	if !ok {
		return nil
	}
	return []any{s}
}

// String names a state in drawings.
func (s register) String() string {
	return [...]string{"no order", "order", "refused"}[s.kind]
}

func describe(e event) string {
	name := [...]string{"submit", "submit other content", "status", "callback"}[e.Op]
	if e.Op == history.Status && e.Outcome == measure.Read {
		state := e.State
		if state == "" {
			state = "not found"
		}
		return name + " → " + state
	}
	text := name + " → " + e.Outcome.String()
	if e.HTTP != 0 {
		text += fmt.Sprintf(" (%d)", e.HTTP)
	}
	if e.Proof == history.Unknown {
		text += ", effect unknown"
	}
	if orders, err := parseOrders(e.Body); err == nil && len(e.Body) > 0 {
		text += ", order " + orders[0].ID
	}
	return text
}
