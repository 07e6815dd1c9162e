package loadtest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/loadtest/drive"
	"github.com/oncegate/oncegate/loadtest/measure"
	"github.com/oncegate/oncegate/loadtest/pace"
	"github.com/oncegate/oncegate/loadtest/result"
	"github.com/oncegate/oncegate/loadtest/stub"
)

func signer(t *testing.T) *drive.Signer {
	t.Helper()
	s, err := drive.NewSigner("whsec_c2VjcmV0")
	require.NoError(t, err)
	return s
}

func threshold(t *testing.T, text string) result.Threshold {
	t.Helper()
	th, err := result.ParseThreshold(text)
	require.NoError(t, err)
	return th
}

// frozen stops answering for a while, as a stopped process does.
type frozen struct {
	http.Handler
	from, to time.Duration
	start    atomic.Pointer[time.Time]
}

func (f *frozen) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		now := time.Now()
		f.start.CompareAndSwap(nil, &now)
		if at := now.Sub(*f.start.Load()); at >= f.from && at < f.to {
			<-time.After(f.to - at)
		}
	}
	f.Handler.ServeHTTP(w, r)
}

// LT-01: a server that is frozen for a quarter of the run must not look well,
// although most requests were answered at once.
func TestAFrozenServerShowsInTheResponseTimes(t *testing.T) {
	t.Parallel()
	c := configure(t, stub.New(stub.Flaws{}), "unique")
	f := &frozen{Handler: stub.New(stub.Flaws{}), from: time.Second, to: 2 * time.Second}
	server := httptest.NewServer(f)
	defer server.Close()
	c.Target, _ = url.Parse(server.URL)
	c.Shape = pace.Shape{Rate: 250, Length: 4 * time.Second}
	r := perform(t, c)
	require.True(t, r.Verdict.Passed)
	require.EqualValues(t, 1000, r.Totals.Requests, "nobody stays away because the server is slow")
	created := r.Outcome(measure.Created)
	require.Greater(t, created.Response.At(99), 850*time.Millisecond, "a quarter of the customers waited")
	require.Greater(t, created.Response.Average(), 90*time.Millisecond)

	// A closed loop hardly samples the bad second. It must say that it is one.
	f.start.Store(nil)
	c.Clients, c.Run, c.Shape.Length = 10, "closed", 2*time.Second
	c.OwnUsers = false // they have the orders of the first run
	r = perform(t, c)
	require.Equal(t, "closed", r.Plan.Model)
	require.True(t, r.Verdict.Passed)
}

// LT-02: requests that were never answered count, with the time they took.
func TestTimeoutsAreInThePercentiles(t *testing.T) {
	t.Parallel()
	c := configure(t, stub.New(stub.Flaws{Hang: 10}), "unique")
	c.Timeout = patience
	c.Thresholds = []result.Threshold{threshold(t, "p95(all)<900ms"), threshold(t, "share(timeout)>=10%")}
	r := perform(t, c)
	// On a busy machine one that was answered may be too late as well.
	timeouts := r.Outcome(measure.Timeout)
	require.GreaterOrEqual(t, timeouts.Count, int64(20))
	require.EqualValues(t, 200, timeouts.Count+r.Outcome(measure.Created).Count)
	require.GreaterOrEqual(t, timeouts.Response.At(50), patience-patience/100)
	require.False(t, r.Thresholds[0].Passed)
	require.True(t, r.Thresholds[1].Passed)
	require.False(t, r.Passed())
	require.True(t, r.Verdict.Passed, "an order that nobody answered for is no broken promise")
}

// LT-03: starts that were not made are counted, and the run is not valid.
func TestMissedStartsMakeTheRunInvalid(t *testing.T) {
	t.Parallel()
	s := stub.New(stub.Flaws{})
	s.Delay = 100 * time.Millisecond
	c := configure(t, s, "unique")
	c.MaxInFlight = 10
	c.Shape = pace.Shape{Rate: 1000, Length: time.Second}
	r := perform(t, c)
	require.EqualValues(t, 1000, r.Totals.Planned)
	require.Equal(t, r.Totals.Planned-r.Totals.DroppedStarts, r.Totals.Sent)
	require.Less(t, r.Totals.Sent, int64(500))
	require.False(t, r.Valid.Valid)
	require.Contains(t, r.Valid.Reasons[0], "planned starts")

	c.MaxInFlight, c.Run, c.OwnUsers = 5000, "t2", false
	r = perform(t, c)
	require.EqualValues(t, 1000, r.Totals.Planned)
	require.EqualValues(t, 1000, r.Totals.Sent)
	require.True(t, r.Valid.Valid, r.Valid.Reasons)
}

// A deployment that turns everybody away keeps its promises, and has shown none.
func TestNobodyWithAnOrderMakesTheRunInvalid(t *testing.T) {
	t.Parallel()
	c := configure(t, stub.New(stub.Flaws{Fail: 1}), "unique")
	r := perform(t, c)
	require.Positive(t, r.Totals.Sent)
	require.False(t, r.Passed())
	require.Contains(t, r.Valid.Reasons[0], "nobody was answered with an order")
}

// The result of a run in which nothing came to be sent is read like any other.
func TestAResultOfNothingIsRead(t *testing.T) {
	t.Parallel()
	c := configure(t, stub.New(stub.Flaws{}), "unique")
	c.Audit, c.Poisson, c.Shape = AuditOff, true, pace.Shape{Rate: 1e-6, Length: time.Millisecond}
	r := perform(t, c)
	require.Zero(t, r.Totals.Requests)
	require.False(t, r.Passed())
	var file bytes.Buffer
	require.NoError(t, r.Write(&file))
	_, err := result.Parse(file.Bytes())
	require.NoError(t, err)
}

// What was not decided was not found right.
func TestAnUndecidedHistoryIsNoPass(t *testing.T) {
	t.Parallel()
	c := configure(t, stub.New(stub.Flaws{}), "double-click")
	c.CheckTime = time.Nanosecond
	r := perform(t, c)
	require.Positive(t, r.Verdict.Linearity.Unknown)
	require.Zero(t, r.Verdict.Findings.Total())
	require.False(t, r.Verdict.Passed)
}

// Other people's users have orders of their own, which over HTTP look like a
// second one of ours.
func TestWhatTheAuditDoesNotSeeIsSaid(t *testing.T) {
	t.Parallel()
	c := configure(t, stub.New(stub.Flaws{}), "unique")
	c.OwnUsers = false
	r := perform(t, c)
	require.True(t, r.Verdict.Passed)
	require.Contains(t, r.Verdict.AuditNote, "is not seen")
}

func TestALateGeneratorMakesTheRunInvalid(t *testing.T) {
	t.Parallel()
	c := configure(t, stub.New(stub.Flaws{}), "unique")
	c.MaxLag = time.Nanosecond
	r := perform(t, c)
	require.False(t, r.Valid.Valid)
	require.Contains(t, r.Valid.Reasons[0], "late")
}

func TestAnUnreachableTargetIsSaidSo(t *testing.T) {
	t.Parallel()
	c := configure(t, stub.New(stub.Flaws{}), "unique")
	c.Target, _ = url.Parse("http://127.0.0.1:1") // the kernel gives nobody this port
	_, err := Run(t.Context(), c)
	require.ErrorIs(t, err, ErrUnreachable)
}

// Callbacks that a deployment must refuse, for the time in them, are no broken
// promise of its.
func TestAWrongClockIsSaidBeforeCallbacksAreSent(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		scenario string
		apart    time.Duration
		refused  bool
	}{
		"callbacks, a clock behind":  {"callbacks", -time.Hour, true},
		"callbacks, a clock ahead":   {"callbacks", time.Hour, true},
		"callbacks, the same time":   {"callbacks", time.Minute, false},
		"no callbacks, another time": {"unique", time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stub.New(stub.Flaws{})
			c := configure(t, s, tc.scenario)
			c.Webhook, c.Shape.Rate, c.Audit = signer(t), 20, AuditOff
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Date", time.Now().Add(tc.apart).UTC().Format(http.TimeFormat))
				s.ServeHTTP(w, r)
			}))
			t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
			c.Target, _ = url.Parse(server.URL)
			_, err := Run(t.Context(), c)
			if !tc.refused {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "apart: signed callbacks")
		})
	}
}

// The orders of an earlier run with the same name would be taken for broken
// promises of this one.
func TestARunNeedsANameOfItsOwn(t *testing.T) {
	t.Parallel()
	c := configure(t, stub.New(stub.Flaws{}), "unique")
	perform(t, c)
	_, err := Run(t.Context(), c)
	var used *UsedError
	require.ErrorAs(t, err, &used)
	require.ErrorContains(t, err, "--run")
}

// Who is slow is measured, and not asked for every user first.
func TestATargetOfSlowReadsDoesNotKeepARunFromBeginning(t *testing.T) {
	t.Parallel()
	s := stub.New(stub.Flaws{})
	c := configure(t, s, "unique")
	c.Timeout, c.Shape.Rate, c.Audit = patience, 20, AuditOff
	var looks atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.URL.Path == "/api/orders" {
			looks.Add(1)
			<-time.After(c.Timeout / 8)
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	c.Target, _ = url.Parse(server.URL)
	r := perform(t, c)
	require.EqualValues(t, 20, r.Totals.Planned)
	require.Less(t, looks.Load(), int64(len(c.Users)))
}

// brokenOff makes a run endless, and returns what ends it when it has made some
// orders, or does not get that far.
func brokenOff(t *testing.T, c *Config) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	c.Shape.Length = time.Hour
	c.Watch = func(s Snapshot) {
		if s.Counts[measure.Created] > 20 {
			cancel()
		}
	}
	return ctx
}

func TestAnInterruptedRunIsJudged(t *testing.T) {
	t.Parallel()
	c := configure(t, stub.New(stub.Flaws{}), "mixed")
	ctx := brokenOff(t, &c)
	r, err := Run(ctx, c)
	require.NoError(t, err)
	require.ErrorIs(t, ctx.Err(), context.Canceled, "it got that far")
	require.True(t, r.Interrupted)
	require.True(t, r.Verdict.Passed, r.Verdict.Findings.List)
	require.Positive(t, r.Verdict.Audit.Rows)
}

// Who waits when a run is interrupted is left out of the times, however slow the
// server was.
func TestARunThatWasBrokenOffIsNotValid(t *testing.T) {
	t.Parallel()
	c := configure(t, stub.New(stub.Flaws{Hang: 5}), "unique")
	c.Timeout, c.Audit = time.Hour, AuditOff
	c.Thresholds = []result.Threshold{threshold(t, "max(all)<1m")}
	ctx := brokenOff(t, &c)
	r, err := Run(ctx, c)
	require.NoError(t, err)
	require.ErrorIs(t, ctx.Err(), context.Canceled, "it got that far")
	require.True(t, r.Interrupted)
	require.True(t, r.Thresholds[0].Passed)
	require.False(t, r.Valid.Valid)
	require.Contains(t, strings.Join(r.Valid.Reasons, "\n"), "broken off")
}

// What was sent must agree with what a server received, retries included.
func TestSentAgreesWithReceived(t *testing.T) {
	t.Parallel()
	s := stub.New(stub.Flaws{Hang: 20, Fail: 15})
	c := configure(t, s, "double-click")
	c.Audit, c.Timeout = AuditOff, patience
	var received atomic.Int64 // orders: before the run is asked only, and less on a busy machine
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if r.Method == http.MethodPost {
			received.Add(1)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	c.Target, _ = url.Parse(server.URL)
	r := perform(t, c)
	require.Eventually(t, func() bool { return received.Load() >= r.Totals.Sent }, time.Minute, 10*time.Millisecond, "a busy server reads late what was sent")
	require.Equal(t, r.Totals.Sent, received.Load())
}
