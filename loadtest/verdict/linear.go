package verdict

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/oncegate/oncegate/loadtest/history"
	"github.com/oncegate/oncegate/loadtest/measure"
)

// Linearity is what the linearizability check looked at.
type Linearity struct {
	Keys    int `json:"keys"`
	Checked int `json:"checked"`
	Trivial int `json:"trivial"` // one request only, which any order of events explains
	Unknown int `json:"unknown"` // not decided in time
	Broken  int `json:"broken"`
}

// A key gets perKey first. The few that take longer, with many requests whose
// outcome nobody knows, get patience each when all others are decided.
const (
	perKey      = 2 * time.Second
	patience    = time.Minute
	maxDrawings = 5
)

// Linearizable asks for each key whether one order of events exists in which
// every answer is right. It stops when the context ends; what was not decided is
// counted as unknown, and has not been found right. Drawings of the first failing
// keys go to dir; none if "".
func Linearizable(ctx context.Context, cases []*history.Case, dir string) (Linearity, Findings) {
	var l Linearity
	var f Findings
	spec := specification()
	decide := func(c *history.Case, ops []porcupine.Operation, limit time.Duration) bool {
		if end, ok := ctx.Deadline(); ok {
			limit = min(limit, time.Until(end))
		}
		if ctx.Err() != nil || limit <= 0 {
			return false
		}
		switch porcupine.CheckOperationsTimeout(spec, essential(ops), limit) {
		case porcupine.Ok:
			l.Checked++
		case porcupine.Illegal:
			l.Checked++
			l.Broken++
			f.add(disordered(spec, c, ops, dir, l.Broken))
		default:
			return false
		}
		return true
	}
	var hard []*history.Case
	for _, c := range cases {
		l.Keys++
		ops := operations(c)
		if trivial(ops) {
			l.Trivial++
		} else if !decide(c, ops, perKey) {
			hard = append(hard, c)
		}
	}
	for _, c := range hard {
		if !decide(c, operations(c), patience) {
			l.Unknown++
		}
	}
	return l, f
}

func disordered(spec porcupine.Model, c *history.Case, ops []porcupine.Operation, dir string, n int) Finding {
	x := Finding{Kind: Disordered, User: c.User, Key: c.Intent.Key, Detail: "no order of events explains the answers:"}
	if replayOfNothing(c.Records()) {
		x.Kind, x.Detail = NotOurs, "the first answer is a replay, and nothing that was sent can have made an order:"
	}
	for i, op := range ops {
		if i == 6 {
			x.Detail += fmt.Sprintf(" and %d more", len(ops)-i)
			break
		}
		x.Detail += fmt.Sprintf(" [%s]", describe(op.Output.(event)))
	}
	if dir == "" || n > maxDrawings {
		return x
	}
	_, info := porcupine.CheckOperationsVerbose(spec, ops, perKey)
	name := fmt.Sprintf("key-%d.html", n)
	if err := porcupine.VisualizePath(spec, info, filepath.Join(dir, name)); err != nil {
		x.Detail += fmt.Sprintf(" (no drawing: %v)", err)
		return x
	}
	x.File = name
	return x
}

// operations turns the requests of a key into a history. What was never sent did
// not happen; what may still take effect never returns.
func operations(c *history.Case) []porcupine.Operation {
	records := c.Records()
	var end time.Duration
	for _, r := range records {
		end = max(end, r.Done)
	}
	held := holders(records)
	own := !slices.ContainsFunc(records, func(r history.Record) bool { return r.Outcome == measure.Rejected && !r.Replayed })
	var ops []porcupine.Operation
	for i, r := range records {
		if r.Op == history.Callback || r.Proof == history.NeverSent {
			continue
		}
		e := event{Record: r, held: held.before(r), own: own, lasting: lasting(&r)}
		op := porcupine.Operation{ClientId: i, Call: int64(r.Sent), Output: e, Return: int64(r.Done)}
		if r.Proof == history.Unknown && r.Op <= history.Other {
			op.Return = int64(end) + 1
		}
		ops = append(ops, op)
	}
	return ops
}

// never is later than any request.
const never = time.Duration(math.MaxInt64)

// since says from when on a key can have been held: by the attempts of each
// content, and by one that was not turned away itself because somebody else held
// the key.
type since struct {
	content [history.Other + 1]time.Duration
	decider time.Duration
}

func holders(records []history.Record) since {
	s := since{decider: never}
	for op := range s.content {
		s.content[op] = never
	}
	for _, r := range records {
		if r.Op > history.Other || r.Proof == history.NeverSent {
			continue
		}
		s.content[r.Op] = min(s.content[r.Op], r.Sent)
		if r.Outcome != measure.Reused && r.Outcome != measure.InProgress {
			s.decider = min(s.decider, r.Sent)
		}
	}
	return s
}

// before tells whether somebody can have held the key when the request was told
// so: another content, for "reused"; any attempt, for "in progress".
func (s since) before(r history.Record) bool {
	switch {
	case r.Op > history.Other:
		return false
	case r.Outcome == measure.Reused:
		return s.content[history.Other-r.Op] <= r.Done && s.decider <= r.Done
	default:
		return s.decider <= r.Done
	}
}

func trivial(ops []porcupine.Operation) bool {
	if len(ops) > 1 {
		return false
	}
	for _, op := range ops {
		e := op.Output.(event)
		if len(step(register{}, e)) == 0 {
			return false
		}
	}
	return true
}
