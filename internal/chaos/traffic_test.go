//go:build linux

package chaos

import (
	"context"
	"iter"
	"net/url"
	"testing"
	"time"

	_ "embed"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/loadtest/drive"
	"github.com/oncegate/oncegate/loadtest/history"
	"github.com/oncegate/oncegate/loadtest/measure"
	"github.com/oncegate/oncegate/loadtest/pace"
	"github.com/oncegate/oncegate/loadtest/scenario"
	"github.com/oncegate/oncegate/loadtest/wire"
)

//go:embed testdata/customers.yaml
var customers []byte

const (
	patience = 5 * time.Second // of a customer with one request
	// recovery bounds the time from the end of the faults until every customer
	// has an answer.
	recovery = 2 * time.Minute
)

// traffic is customers who want something and do not let go of it.
type traffic struct {
	t      *testing.T
	world  *world
	driver *drive.Driver
	client *wire.Client
	log    history.Log
	sent   chan struct{} // closed when the last customer has come
}

// begin sends customers at the rate until the context ends.
func (w *world) begin(ctx context.Context, run string, seed uint64, rate float64) *traffic {
	w.t.Helper()
	tr := w.newTraffic(run, seed)
	go func() {
		defer close(tr.sent)
		tr.driver.Open(ctx, tr.withRoom(ctx, pace.Constant(rate, 24*time.Hour).Even()))
	}()
	return tr
}

// mostWaiting is how many requests may be under way when a customer comes: each has
// an open file of this process, in which the links of the gateways need some too.
// Those who are there already may ask again meanwhile.
const mostWaiting = 5000

// withRoom has customers come late rather than when there is no room for them.
func (tr *traffic) withRoom(ctx context.Context, arrivals iter.Seq[time.Duration]) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		for due := range arrivals {
			for tick := every(ctx, 10*time.Millisecond); tr.driver.Progress().InFlight > mostWaiting && tick(); {
			}
			if !yield(due) {
				return
			}
		}
	}
}

// newTraffic prepares customers; whoever sends them closes sent.
func (w *world) newTraffic(run string, seed uint64) *traffic {
	w.t.Helper()
	s, err := scenario.Parse(customers)
	require.NoError(w.t, err)
	s.Users.Count = len(w.people)
	signer, err := drive.NewSigner(webhookSecret)
	require.NoError(w.t, err)
	tr := &traffic{t: w.t, world: w, sent: make(chan struct{})}
	tr.client, err = wire.New(wire.Options{
		Target: &url.URL{Scheme: "http", Host: w.front}, Timeout: patience,
	})
	require.NoError(w.t, err)
	tr.driver = drive.New(drive.Options{
		Client: tr.client, Source: scenario.NewSource(s, run, seed, len(w.people)), Users: w.people,
		Log: &tr.log, Recorder: measure.NewRecorder(), MaxInFlight: 50_000, Webhook: signer,
	})
	return tr
}

// finish waits until every customer has an answer, and returns what they heard.
func (tr *traffic) finish() []*history.Case {
	tr.t.Helper()
	<-tr.sent
	ctx, cancel := context.WithTimeout(context.Background(), recovery)
	defer cancel()
	if !tr.driver.Drain(ctx) {
		tr.t.Errorf("%v after the last fault some customers have no answer yet", recovery)
	}
	tr.driver.Stop()
	tr.client.Close()
	p := tr.driver.Progress()
	require.Zero(tr.t, p.DroppedStarts+p.DroppedFollowUps, "the traffic was as planned")
	return tr.world.forgive(tr.driver.Start(), tr.log.Cases())
}
