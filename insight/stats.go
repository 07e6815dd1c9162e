package insight

import (
	"context"
	"time"
)

// The names in the JSON of these types are those of the admin API.

// Stats is what the gateway does at a moment.
type Stats struct {
	At            time.Time    `json:"at"`
	Since         time.Time    `json:"since"` // when the counting began
	UptimeSeconds float64      `json:"uptime_seconds"`
	Rates         Rates        `json:"rates"`
	Funnel        Totals       `json:"funnel"` // since the start
	Anomalies     Anomalies    `json:"anomalies"`
	Latency       []Latency    `json:"latency"` // of the last minute; only outcomes that happened
	Breaker       BreakerState `json:"breaker"`
	State
	ReceiptTTLSeconds float64 `json:"receipt_ttl_seconds"`
	// Point is the newest of the history, null at first; History is left out of
	// the events: who listens adds the points as they change.
	Point   *Point  `json:"point"`
	History []Point `json:"history,omitempty"`
}

// Rates are per second, over the last seconds.
type Rates struct {
	WindowSeconds float64 `json:"window_seconds"`
	Received      float64 `json:"received"`
	Created       float64 `json:"created"`
	Duplicates    float64 `json:"duplicates"`
	Conflicts     float64 `json:"conflicts"` // keys and business numbers that belong to something else
	Rejected      float64 `json:"rejected"`
	Failed        float64 `json:"failed"`
}

// Anomalies count what is safe but should be known.
type Anomalies struct {
	FilterMissed uint64 `json:"filter_missed"`
	ReceiptLost  uint64 `json:"receipt_lost"`
	StaleMark    uint64 `json:"stale_mark"`
}

// Latency is how long answers of one outcome took, in milliseconds, within the
// width of a bucket (12.5 %).
type Latency struct {
	Outcome string  `json:"outcome"`
	Count   uint64  `json:"count"`
	P50     float64 `json:"p50_ms"`
	P95     float64 `json:"p95_ms"`
	P99     float64 `json:"p99_ms"`
	P999    float64 `json:"p999_ms"`
}

// BreakerState is the state of the Redis breaker, and since when.
type BreakerState struct {
	State string    `json:"state"`
	Since time.Time `json:"since"`
}

// State is what surrounds the gateway.
type State struct {
	Redis  string         `json:"redis"` // ok, failing or unknown
	MySQL  string         `json:"mysql"`
	Config *ConfigVersion `json:"config"` // null where no setting can be changed
}

// ConfigVersion says which settings are in force, and who changed one last.
type ConfigVersion struct {
	Version   uint64    `json:"version"`
	ChangedAt time.Time `json:"changed_at,omitzero"` // none before the first change
	ChangedBy string    `json:"changed_by,omitempty"`
}

// Point is one moment of the recent past: rates over the seconds before it, and
// the 50th and 99th percentile of the minute before it.
type Point struct {
	At       time.Time             `json:"at"`
	Process  float64               `json:"process"`
	Redis    float64               `json:"redis"`
	MySQL    float64               `json:"mysql"`
	Created  float64               `json:"created"`
	Rejected float64               `json:"rejected"`
	Failed   float64               `json:"failed"`
	Latency  map[string][2]float64 `json:"latency"` // by outcome, in milliseconds
}

// Stats returns the snapshot of now, with the recent past.
func (r *Recorder) Stats(ctx context.Context) Stats {
	s := r.stats(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	s.History = r.history.oldest()
	return s
}

func (r *Recorder) stats(ctx context.Context) Stats {
	surroundings, breaker := State{Redis: "unknown", MySQL: "unknown"}, r.breakerNow()
	if r.o.State != nil {
		surroundings = r.o.State(ctx)
	}
	// Counted under the lock: samples that are taken meanwhile, while the dependencies
	// answer, would be newer than what they are compared with.
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.o.Now()
	until := r.second(now)
	s := Stats{
		At: now.UTC(), Since: r.started.UTC(), UptimeSeconds: now.Sub(r.started).Seconds(),
		Funnel: totalsOf(&until.total),
		Anomalies: Anomalies{
			FilterMissed: r.anomalies[0].Load(), ReceiptLost: r.anomalies[1].Load(), StaleMark: r.anomalies[2].Load(),
		},
		Breaker:           breaker,
		State:             surroundings,
		ReceiptTTLSeconds: r.o.ReceiptTTL().Seconds(),
	}
	s.Rates = ratesBetween(r.seconds.at(0), until)
	s.Latency = latencies(r.recent())
	if n := r.history.len(); n > 0 {
		p := r.history.at(n - 1)
		s.Point = &p
	}
	return s
}

// totals counts each cell since the start.
func (r *Recorder) totals() (n [cellCount]uint64) {
	for i := range r.took {
		n[i] = r.took[i].total()
	}
	return n
}
