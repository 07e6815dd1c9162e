package verdict

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/oncegate/oncegate/loadtest/exact"
	"github.com/oncegate/oncegate/loadtest/history"
	"github.com/oncegate/oncegate/loadtest/measure"
	"github.com/oncegate/oncegate/loadtest/scenario"
)

// claim is what the answers of one key say there is.
type claim struct {
	c       *history.Case
	ids     []string        // of the first success; nil without one
	heard   []string        // of all successes
	lines   []scenario.Line // the content that succeeded
	first   history.Record  // the first success
	created int             // successes that say that they made the order
	doubt   bool            // an attempt may have had an effect
	refused bool            // told that it is refused for good
	told    bool            // told by a status that there is an order
	paid    bool            // a payment was accepted
	payer   bool            // a payment was sent, and may have been taken
}

// Answers judges what needs no database: the answers themselves.
func Answers(cases []*history.Case) Findings {
	var f Findings
	owner := map[string]*history.Case{}
	for _, c := range cases {
		cl := readCase(c, &f)
		for _, id := range cl.heard {
			if first := owner[id]; first != nil && first != c {
				f.add(Finding{SharedID, c.User, c.Intent.Key, fmt.Sprintf("order %s was also the answer to key %s of %s", id, first.Intent.Key, first.User), ""})
			}
			owner[id] = c
		}
	}
	return f
}

// reporter takes what is wrong with one key.
type reporter func(k Kind, format string, args ...any)

// readCase judges the answers of one key and returns what they claim.
func readCase(c *history.Case, f *Findings) claim {
	cl := claim{c: c}
	report := func(k Kind, format string, args ...any) {
		f.add(Finding{k, c.User, c.Intent.Key, fmt.Sprintf(format, args...), ""})
	}
	records := c.Records()
	number, taken := taken(records)
	if taken {
		report(NotOurs, "no other key of this run has its business numbers, and one is taken:%s", excerpt(number.Body))
	}
	// What is not of this run is found as that, here or by [Linearizable].
	notOurs := taken || replayOfNothing(records)
	for _, r := range records {
		if r.Op == history.Callback {
			cl.payer = cl.payer || r.Proof != history.NeverSent
			cl.paid = cl.paid || r.Outcome == measure.Accepted
			if r.Outcome == measure.Accepted {
				settled(r, report)
			}
		}
		if r.Proof == history.Unknown && (r.Op == history.Submit || r.Op == history.Other) {
			cl.doubt = true
		}
		if r.Outcome == measure.Unexpected || (r.Op <= history.Other && !notOurs && slices.Contains(c.Intent.Behaviour.Forbidden, r.Outcome)) {
			report(ForbiddenOutcome, "%s in %q: HTTP %d%s", r.Outcome, c.Intent.Behaviour.Name, r.HTTP, excerpt(r.Body))
		}
		cl.refused = cl.refused || lasting(&r) || r.State == "failed"
		cl.told = cl.told || r.State == "succeeded"
		if r.Outcome == measure.Created || r.Outcome == measure.Replayed {
			cl.hear(r, report)
		}
	}
	if cl.created > 1 {
		report(CreatedTwice, "answered \"created\" %d times", cl.created)
	}
	return cl
}

// hear takes a success: it must be about what was sent, and the same as those
// before it.
func (cl *claim) hear(r history.Record, report reporter) {
	orders, err := parseOrders(r.Body)
	if err != nil {
		report(Malformed, "HTTP %d: %v", r.HTTP, err)
		return
	}
	sent := cl.c.Intent.Lines
	if r.Op == history.Other {
		sent = cl.c.Intent.Other
	}
	if d := explain(orders, cl.c.User, sent); d != "" {
		report(ForeignBody, "%s, but the answer is about something else: %s", r.Outcome, d)
	}
	if r.Outcome == measure.Created {
		cl.created++
	}
	ids := make([]string, len(orders))
	for i := range orders {
		ids[i] = orders[i].ID
		if !slices.Contains(cl.heard, ids[i]) {
			cl.heard = append(cl.heard, ids[i])
		}
	}
	if cl.ids == nil {
		cl.ids, cl.lines, cl.first = ids, sent, r
		if r.HTTP != http.StatusCreated {
			report(Malformed, "order %s, and the status is %d", join(ids), r.HTTP)
		}
		if !strings.HasSuffix(r.Location, address(cl.c.Intent, ids[0])) {
			report(Malformed, "order %s, and Location is %q", join(ids), r.Location)
		}
		return
	}
	switch first := &cl.first; {
	case !slices.Equal(ids, cl.ids):
		report(TwoIDs, "answered with %s and with %s", join(cl.ids), join(ids))
	case !bytes.Equal(first.Body, r.Body):
		report(BodyDiffers, "same order, other bytes:%s and%s", excerpt(first.Body), excerpt(r.Body))
	case first.HTTP != r.HTTP:
		report(BodyDiffers, "same bytes, another status: %d and %d", first.HTTP, r.HTTP)
	case first.Location != r.Location:
		report(BodyDiffers, "same bytes, another Location: %q and %q", first.Location, r.Location)
	}
}

// address is where a success says that its order is, or what became of a batch.
func address(it *scenario.Intent, id string) string {
	if it.Behaviour.Endpoint == scenario.Batch {
		return requestsPath + url.PathEscape(it.Key)
	}
	return ordersPath + id
}

// settled judges the answer to a callback that was taken: it must say whether money
// is to be paid back, and none is.
func settled(r history.Record, report reporter) {
	var owed *bool
	o, err := exact.Parse(r.Body)
	if err = errors.Join(err, o.Read("refund_owed", &owed)); err == nil && owed == nil {
		err = errors.New("it has no refund_owed")
	}
	switch {
	case err != nil:
		report(Malformed, "a callback was answered with HTTP %d%s: %v", r.HTTP, excerpt(r.Body), err)
	case *owed:
		report(RefundOwed, "a callback was answered with%s", excerpt(r.Body))
	}
}

func join(ids []string) string {
	if len(ids) > 3 {
		return strings.Join(ids[:3], ", ") + fmt.Sprintf(" and %d more", len(ids)-3)
	}
	return strings.Join(ids, ", ")
}

func excerpt(b []byte) string {
	const most = 160
	if len(b) == 0 {
		return ""
	}
	if len(b) > most {
		return fmt.Sprintf(" %q…", b[:most])
	}
	return fmt.Sprintf(" %q", b)
}
