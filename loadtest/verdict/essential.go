package verdict

import (
	"github.com/anishathalye/porcupine"

	"github.com/oncegate/oncegate/loadtest/history"
	"github.com/oncegate/oncegate/loadtest/measure"
)

// stays says which of several operations of one kind have to be looked at.
type stays uint8

const (
	all         stays = iota
	none              // any state explains it, and it changes none
	earliestIn        // it may happen once, from when it was sent, for ever after
	earliestOut       // it needs what never goes away again: the first to return needs it soonest
	latestIn          // it needs what never comes back: the last to be sent needs it longest
	// It makes what never goes away again, or finds it: the first to be sent may
	// make it, the first to return needs it soonest.
	earliestBoth
)

// kind is what makes operations interchangeable but for their times.
type kind struct {
	stays   stays
	op      history.Op
	outcome measure.Outcome
	text    string
}

// kindOf follows the cases of step. An order that exists, and a refusal that is
// remembered, stay: what depends on that needs one witness and not a hundred.
func kindOf(e event) kind {
	k := kind{op: e.Op, outcome: e.Outcome}
	switch {
	case e.Op == history.Status:
		k.text = e.State
		switch {
		case e.Outcome != measure.Read:
			k.stays = none
		case e.State == "succeeded", e.State == "failed":
			k.stays = earliestOut
		default: // in progress, or not known
			k.stays, k.text = latestIn, ""
		}
	case e.Outcome == measure.Created:
	case e.Outcome == measure.Replayed, e.Outcome == measure.Rejected && e.Replayed && !e.own:
		k.stays, k.text = earliestOut, string(e.Body)
	case e.Outcome == measure.Rejected && e.Replayed:
		k.stays, k.text = earliestBoth, string(e.Body)
	case e.Outcome == measure.Rejected:
	case e.held && (e.Outcome == measure.Reused || e.Outcome == measure.InProgress):
		k.stays = none
	case e.Outcome == measure.Reused, e.Outcome == measure.InProgress:
		k.stays = earliestOut
	case e.Proof == history.Unknown:
		k = kind{stays: earliestIn, op: e.Op}
	default:
		k.stays = none
	}
	return k
}

// essential leaves out of a history what cannot change whether an order of
// events explains it. The check takes exponentially long in what is left, and a
// storm in an outage has hundreds of requests for one key, most of them alike.
func essential(ops []porcupine.Operation) []porcupine.Operation {
	keep := make([]bool, len(ops))
	first := map[kind]int{} // of those by which a kind is kept
	keepOne := func(k kind, i int, better func(a, b porcupine.Operation) bool) {
		j, there := first[k]
		if !there || better(ops[i], ops[j]) {
			first[k] = i
		}
	}
	soonerSent := func(a, b porcupine.Operation) bool { return a.Call < b.Call }
	soonerDone := func(a, b porcupine.Operation) bool { return a.Return < b.Return }
	laterSent := func(a, b porcupine.Operation) bool { return a.Call > b.Call }
	for i, op := range ops {
		k := kindOf(op.Output.(event))
		switch k.stays {
		case all:
			keep[i] = true
		case none:
		case earliestIn:
			keepOne(k, i, soonerSent)
		case earliestOut:
			keepOne(k, i, soonerDone)
		case latestIn:
			keepOne(k, i, laterSent)
		case earliestBoth:
			k.stays = earliestIn
			keepOne(k, i, soonerSent)
			k.stays = earliestOut
			keepOne(k, i, soonerDone)
		}
	}
	for _, i := range first {
		keep[i] = true
	}
	var left []porcupine.Operation
	for i, op := range ops {
		if keep[i] {
			left = append(left, op)
		}
	}
	return left
}
