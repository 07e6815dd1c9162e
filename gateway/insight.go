package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/oncegate/oncegate/insight"
	"github.com/oncegate/oncegate/order"
)

// Insight answers what operators ask. An [*insight.Recorder] is one.
type Insight interface {
	Stats(ctx context.Context) insight.Stats
	TTL(target float64, ttls ...time.Duration) insight.TTL
	Conflicts() []insight.Conflict
	Breaker() []insight.Transition
	Subscribe() (events <-chan insight.Event, cancel func(), err error)
}

func (a *Admin) getStats(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), a.o.Budget)
	defer cancel()
	a.document(w, a.o.Insight.Stats(ctx))
}

func (a *Admin) getConflicts(w http.ResponseWriter, _ *http.Request) {
	a.document(w, struct {
		Conflicts []insight.Conflict `json:"conflicts"`
	}{a.o.Insight.Conflicts()})
}

func (a *Admin) getBreaker(w http.ResponseWriter, _ *http.Request) {
	a.document(w, struct {
		Transitions []insight.Transition `json:"transitions"`
	}{a.o.Insight.Breaker()})
}

// getTTL forecasts the TTLs that the query names: ?ttl=48h&ttl=7d&target=0.99.
func (a *Admin) getTTL(w http.ResponseWriter, r *http.Request) {
	target, ttls, err := ttlQuery(r.URL.Query())
	if err != nil {
		a.problem(w, problemOf(err))
		return
	}
	a.document(w, a.o.Insight.TTL(target, ttls...))
}

// document answers with a value's JSON.
func (a *Admin) document(w http.ResponseWriter, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("a value of ours has no JSON: %v", err))
	}
	a.answer(w, body)
}

// Bounds of what may be asked in one go.
const (
	maxTTLs       = 64
	longestTTL    = 366 * 24 * time.Hour
	defaultTarget = 0.99
)

func ttlQuery(q url.Values) (target float64, ttls []time.Duration, err error) {
	var faults []order.FieldFault
	target = defaultTarget
	if v, given := q["target"]; given {
		target, err = strconv.ParseFloat(v[0], 64)
		if err != nil || math.IsNaN(target) || target <= 0 || target > 1 || len(v) > 1 {
			faults = append(faults, order.FieldFault{Path: "target", Reason: "must be one share above 0, at most 1, such as 0.99"})
		}
	}
	if len(q["ttl"]) > maxTTLs {
		faults = append(faults, order.FieldFault{Path: "ttl", Reason: "must be given at most " + strconv.Itoa(maxTTLs) + " times"})
	}
	for i, text := range q["ttl"][:min(len(q["ttl"]), maxTTLs)] {
		ttl, err := parseTTL(text)
		if err != nil || ttl <= 0 || ttl > longestTTL {
			faults = append(faults, order.FieldFault{Path: "ttl[" + strconv.Itoa(i) + "]", Reason: "must be a duration such as 90s, 48h or 7d, at most 366d"})
		}
		ttls = append(ttls, ttl)
	}
	if len(faults) > 0 {
		return 0, nil, &order.InvalidError{Faults: faults}
	}
	return target, ttls, nil
}

// parseTTL reads a duration; whole days are written as in the configuration.
func parseTTL(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(text)
}
