package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/oncegate/oncegate/loadtest/history"
	"github.com/oncegate/oncegate/loadtest/scenario"
)

// Row is one order as the deployment has it.
type Row struct {
	ID, User        string
	Key             string // empty when the source does not tell keys
	Line            int
	SKU             string
	Quantity        int64
	Hundredths      int64
	ExternalOrderNo string
	Status          string
}

// KeyID is a key of a user.
type KeyID struct{ User, Key string }

// Recorded is what the deployment remembers of a key.
type Recorded struct {
	State   string // in_progress, succeeded, failed; "" for a key that it says it does not know
	OrderID string // the first order; empty when there is none
}

// Truth is what the deployment has after the run.
type Truth struct {
	Source string // "sql" or "http"
	Rows   []Row
	Keys   map[KeyID]Recorded // by SQL all of the users, over HTTP those in doubt
	Groups []Finding          // from questions about the whole table
}

// Scope says which rows the run must answer for.
type Scope struct {
	KeyPrefix string
	OwnUsers  bool // the users were made for this run: every row of theirs counts
}

// Summary is what an audit looked at.
type Summary struct {
	Source         string `json:"source"`
	Keys           int    `json:"keys"`
	Rows           int    `json:"rows"`
	Acknowledged   int    `json:"acknowledged"`   // keys with a success that was heard
	Unacknowledged int    `json:"unacknowledged"` // keys with rows and no success that was heard: allowed, and worth knowing
	Undelivered    int    `json:"undelivered"`    // keys without rows and without a decision: the customer gave up
}

// Audit compares the answers with the rows.
func Audit(cases []*history.Case, t *Truth, scope Scope) (Summary, Findings) {
	a := auditor{truth: t, byKey: map[KeyID][]*Row{}, byID: map[string]*Row{}, used: map[*Row]bool{}}
	a.Source, a.Keys, a.Rows = t.Source, len(cases), len(t.Rows)
	for _, g := range t.Groups {
		a.f.add(g)
	}
	a.index()
	for _, c := range cases {
		a.judge(c, scope)
	}
	a.strays(cases, scope)
	return a.Summary, a.f
}

type auditor struct {
	Summary
	truth *Truth
	f     Findings
	byKey map[KeyID][]*Row
	byID  map[string]*Row
	used  map[*Row]bool
}

func (a *auditor) index() {
	for i := range a.truth.Rows {
		r := &a.truth.Rows[i]
		a.byID[r.ID] = r
		if r.Key != "" {
			k := KeyID{r.User, r.Key}
			a.byKey[k] = append(a.byKey[k], r)
		}
	}
	for _, rows := range a.byKey {
		slices.SortFunc(rows, func(x, y *Row) int { return cmp.Or(x.Line-y.Line, cmp.Compare(x.ID, y.ID)) })
	}
}

// rows finds the rows of a case: by key where the source tells keys, else by the
// ids that were answered or that the status endpoint names.
func (a *auditor) rows(cl *claim) []*Row {
	id := KeyID{cl.c.User, cl.c.Intent.Key}
	if a.truth.Source == "sql" {
		return a.byKey[id]
	}
	rows := slices.Clone(a.byKey[id])
	for _, order := range cl.ids {
		if r := a.byID[order]; r != nil && !slices.Contains(rows, r) {
			rows = append(rows, r)
		}
	}
	return rows
}

func (a *auditor) judge(c *history.Case, scope Scope) {
	var answers Findings // already reported by Answers
	cl := readCase(c, &answers)
	rows := a.rows(&cl)
	for _, r := range rows {
		a.used[r] = true
	}
	report := func(k Kind, format string, args ...any) {
		a.f.add(Finding{k, c.User, c.Intent.Key, fmt.Sprintf(format, args...), ""})
	}
	switch {
	case cl.ids != nil:
		a.Acknowledged++
		a.acknowledged(&cl, rows, report)
	case len(rows) > 0:
		a.Unacknowledged++
		switch {
		case !cl.doubt:
			report(Denied, "no attempt can have succeeded, and yet order %s is there", rows[0].ID)
		case cl.refused:
			report(Denied, "the key was refused for good, and yet order %s is there", rows[0].ID)
		}
		cl.lines = c.Intent.Lines
		if c.Intent.Other != nil && rowsDiffer(rows, c.User, cl.lines) != "" {
			cl.lines = c.Intent.Other
		}
	case cl.told:
		report(Lost, "the status of the request was succeeded, and there is no row")
	case cl.doubt:
		a.Undelivered++
	}
	if len(rows) > 0 {
		a.content(&cl, rows, report)
	}
	if scope.OwnUsers {
		statuses(&cl, rows, report)
	}
	a.recorded(&cl, rows, report)
}

func (a *auditor) acknowledged(cl *claim, rows []*Row, report reporter) {
	if len(rows) == 0 {
		report(Lost, "answered with order %s, and there is no row", join(cl.ids))
		return
	}
	there := func(id string) bool {
		return slices.ContainsFunc(rows, func(r *Row) bool { return r.ID == id })
	}
	if i := slices.IndexFunc(cl.ids, func(id string) bool { return !there(id) }); i >= 0 {
		report(Lost, "answered with order %s; the rows of the key are %s", cl.ids[i], rowIDs(rows))
	} else if a.truth.Source == "sql" && len(rows) == len(cl.ids) {
		for i, r := range rows {
			if r.Line != i || r.ID != cl.ids[i] {
				report(WrongRow, "line %d is order %s, and line %d was answered with order %s", r.Line, r.ID, i, cl.ids[i])
				break
			}
		}
	}
	if cl.paid && rows[0].Status != "PAID" && rows[0].Status != "SHIPPED" {
		report(PaymentLost, "the payment was accepted, the order is %s", rows[0].Status)
	}
}

func (a *auditor) content(cl *claim, rows []*Row, report reporter) {
	if len(rows) > len(cl.lines) {
		report(Duplicate, "%d rows for %d asked for: %s", len(rows), len(cl.lines), rowIDs(rows))
		return
	}
	if d := rowsDiffer(rows, cl.c.User, cl.lines); d != "" {
		report(WrongRow, "%s", d)
	}
}

// statuses judges orders that nobody but this run can have touched: it pays, and
// what is paid may be shipped by whoever does that.
func statuses(cl *claim, rows []*Row, report reporter) {
	for _, r := range rows {
		if paid := r.Status == "PAID" || r.Status == "SHIPPED"; r.Status != "PENDING" && !(paid && cl.payer) {
			report(WrongStatus, "order %s is %s; payments were sent: %t", r.ID, r.Status, cl.payer)
			return
		}
	}
}

func (a *auditor) recorded(cl *claim, rows []*Row, report reporter) {
	rec, known := a.truth.Keys[KeyID{cl.c.User, cl.c.Intent.Key}]
	switch {
	case a.truth.Keys == nil:
	case known && rec.State == "succeeded" && len(rows) == 0:
		report(NoOrder, "the key is on record as succeeded, and there is no order")
	case (known || a.truth.Source == "sql") && len(rows) == 0 && cl.refused && rec.State != "failed":
		report(WrongState, "the key was refused for good, and is on record as %q", rec.State)
	case (known || a.truth.Source == "sql") && len(rows) > 0 && rec.State != "succeeded":
		report(NoRecord, "order %s is there, and its key is not on record as succeeded but as %q", rows[0].ID, rec.State)
	case known && cl.ids != nil && rec.OrderID != "" && rec.OrderID != cl.ids[0]:
		report(WrongState, "answered with order %s, the record names %s", cl.ids[0], rec.OrderID)
	case a.truth.Source == "sql" && len(rows) > 0 && !slices.ContainsFunc(rows, func(r *Row) bool { return r.ID == rec.OrderID }):
		report(WrongState, "the order is %s, the record names %q", rows[0].ID, rec.OrderID)
	}
}

// strays reports rows and records that no request of the run can have made.
func (a *auditor) strays(cases []*history.Case, scope Scope) {
	sent := make(map[KeyID]bool, len(cases))
	numbers := map[string]*history.Case{} // by business number, which is unique to a line of a key
	for _, c := range cases {
		if slices.ContainsFunc(c.Records(), func(r history.Record) bool { return r.Op <= history.Other && r.Proof != history.NeverSent }) {
			sent[KeyID{c.User, c.Intent.Key}] = true
		}
		for _, l := range c.Intent.Lines {
			numbers[l.ExternalOrderNo] = c
		}
	}
	for k, rec := range a.truth.Keys {
		if rec.State != "" && !sent[k] {
			a.f.add(Finding{Stray, k.User, k.Key, fmt.Sprintf("the key is on record as %q, and no request of this run has it", rec.State), ""})
		}
	}
	for i := range a.truth.Rows {
		r := &a.truth.Rows[i]
		c := numbers[r.ExternalOrderNo]
		ours := scope.OwnUsers || strings.HasPrefix(r.Key, scope.KeyPrefix) || r.ExternalOrderNo != "" && c != nil && c.User == r.User
		if !ours || (a.used[r] && (r.Key == "" || sent[KeyID{r.User, r.Key}])) {
			continue
		}
		if c != nil && r.ExternalOrderNo != "" {
			if _, taken := taken(c.Records()); taken {
				continue // it was there before, and [Answers] says so
			}
			a.f.add(Finding{Duplicate, r.User, c.Intent.Key, fmt.Sprintf("order %s is a second one for number %s", r.ID, r.ExternalOrderNo), ""})
			continue
		}
		a.f.add(Finding{Stray, r.User, r.Key, fmt.Sprintf("order %s (%s, external number %q) belongs to no request of this run", r.ID, r.SKU, r.ExternalOrderNo), ""})
	}
}

func rowsDiffer(rows []*Row, user string, want []scenario.Line) string {
	if len(rows) != len(want) {
		return fmt.Sprintf("%d rows for %d asked for", len(rows), len(want))
	}
	for i, r := range rows {
		got := scenario.Line{SKU: r.SKU, Quantity: r.Quantity, Hundredths: r.Hundredths, ExternalOrderNo: r.ExternalOrderNo}
		if r.User != user || got != want[i] {
			return fmt.Sprintf("row %d is %+v of %s, sent %+v by %s", i, got, r.User, want[i], user)
		}
	}
	return ""
}

func rowIDs(rows []*Row) string {
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	return join(ids)
}
