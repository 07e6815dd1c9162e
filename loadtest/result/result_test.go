package result

import (
	"bytes"
	"io"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/loadtest/measure"
	"github.com/oncegate/oncegate/loadtest/verdict"
)

// made is a result with so many created orders, all of one response time.
func made(run string, n int64, took time.Duration) *Result {
	h := measure.NewHistogram()
	for range n {
		measure.Record(h, took)
	}
	start := time.Date(2026, 8, 27, 9, 0, 0, 0, time.UTC)
	return &Result{
		Schema: Schema, Run: run, Started: start, Finished: start.Add(10 * time.Second),
		Plan:     Plan{Scenario: "unique", Model: "open", Rate: 10},
		Totals:   Totals{Planned: n, Requests: n, Sent: n},
		Outcomes: []OutcomeResult{{Outcome: measure.Created, Count: n, Response: Wrap(h), Service: Wrap(h)}},
		Series: Series{
			SlotSeconds: 1, Slots: 1, Counts: map[measure.Outcome][]int{measure.Created: {int(n)}},
			Planned: []float64{10}, Response: []Histogram{Wrap(h)},
		},
		Verdict: Verdict{Passed: true, Audit: &verdict.Summary{Keys: int(n)}}, Valid: Validity{Valid: true}, Lag: Wrap(nil),
	}
}

func TestAFileGivesBackWhatWasWritten(t *testing.T) {
	t.Parallel()
	r := made("a", 100, 10*time.Millisecond)
	var b bytes.Buffer
	require.NoError(t, r.Write(&b))
	back, err := Parse(b.Bytes())
	require.NoError(t, err)
	require.Equal(t, r.Outcomes[0].Response.At(99), back.Outcomes[0].Response.At(99))
	require.EqualValues(t, 100, back.Series.Response[0].TotalCount())
	require.True(t, back.Passed())
	_, err = Parse(bytes.Replace(b.Bytes(), []byte(Schema), []byte("oncegate.loadtest/9"), 1))
	require.ErrorContains(t, err, "schema")
}

func TestThresholdsAreHeld(t *testing.T) {
	t.Parallel()
	r := made("a", 100, 10*time.Millisecond)
	for text, want := range map[string]bool{
		"p99(created)<50ms": true, "p99(created)<5ms": false, "p99.9(all.service)<=20ms": true,
		"count(created)==100": true, "rate(created)>9/s": true, "rate(all)>11": false,
		"share(created)>=100%": true, "share(unavailable)<1%": true, "max(created)<1s": true, "mean(created)>1ms": true,
		"dropped==0": true, "findings==0": true, "lag<20ms": true,
		"p99(replayed)<50ms": false, // nothing was replayed: not met
	} {
		th, err := ParseThreshold(text)
		require.NoError(t, err, text)
		require.Equal(t, want, th.Check(r).Passed, text)
	}
}

// Who found no room is not among the times, and would have been the last of them.
func TestWhatFoundNoRoomCountsAsTheSlowest(t *testing.T) {
	t.Parallel()
	r := made("a", 990, 10*time.Millisecond)
	h := r.Outcomes[0].Response.Histogram
	for range 10 {
		measure.Record(h, 100*time.Millisecond)
	}
	r.Outcomes[0].Count, r.Totals.Requests, r.Totals.Planned = 1000, 1000, 1005
	check := func(text string) ThresholdCheck {
		th, err := ParseThreshold(text)
		require.NoError(t, err, text)
		return th.Check(r)
	}
	for _, met := range []string{"p99(created)<50ms", "p99.9(created)<1s", "max(created)<1s"} {
		require.True(t, check(met).Passed, met)
	}
	r.Totals.DroppedStarts = 5
	require.True(t, check("p50(created)<50ms").Passed)
	require.Equal(t, ThresholdCheck{"p99(created)<50ms", "100ms", false}, check("p99(created)<50ms"), "the 995th of 1005")
	require.True(t, check("p99(all)<1s").Passed)
	for _, unknown := range []string{"p99.9(created)<1s", "max(created)<1s", "max(all.service)<1s"} {
		require.Equal(t, ThresholdCheck{unknown, "not known: 5 requests found no room", false}, check(unknown))
	}
	require.True(t, check("mean(created)<50ms").Passed)
	require.True(t, check("dropped==5").Passed)
	_, unlike := Caveats([]*Result{r}, []*Result{r})
	require.Contains(t, unlike[0], "5 requests found no room")
}

func TestUnknownNamesAreErrors(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "p99(created)", "p99(creatd)<50ms", "p99<50ms", "q99(created)<50ms", "p0(created)<1s", "p101(created)<1s", "pNaN(created)<1s",
		"p99(created)<50", "p99(created)<50%", "share(created)<1", "count(created.service)<1", "count(created)<x", "p99(created<1s", "latency<1s",
		"share(created)<NaN%", "share(created)<Inf%", "count(created)==100/s", "count(created)==0x10", "count(created)==1e2", "p0x32(created)<1s", "p5e1(created)<1s",
	} {
		_, err := ParseThreshold(text)
		require.Error(t, err, text)
	}
	for _, text := range []string{"p99(created)>10", "p99(creatd)>+10%", "p99(created)", "p99(created)>x%", "p99(created)>+Inf%", "p99(created)>NaN%", "p99(created)>+0x10%"} {
		_, err := ParseFailIf(text)
		require.Error(t, err, text)
	}
}

func TestComparisonKnowsNoise(t *testing.T) {
	t.Parallel()
	before := []*Result{made("a", 100, 10*time.Millisecond), made("b", 100, 14*time.Millisecond), made("c", 100, 12*time.Millisecond)}
	slightly := []*Result{made("d", 100, 13*time.Millisecond)}
	much := []*Result{made("e", 100, 24*time.Millisecond)}
	f, err := ParseFailIf("p99(created)>+5%")
	require.NoError(t, err)
	c := f.Check(before, slightly)
	require.True(t, c.Passed)
	require.Contains(t, c.Actual, "noise")
	require.False(t, f.Check(before, much).Passed)
	require.False(t, f.Check(before[:1], slightly).Passed, "with one run each there is no noise to hide in")
	gone := made("f", 100, time.Millisecond)
	gone.Outcomes[0].Outcome = measure.Replayed
	require.False(t, f.Check(before, []*Result{gone}).Passed, "what cannot be compared has not been found equal")

	changes, err := Compare(before, much)
	require.NoError(t, err)
	for _, ch := range changes {
		if ch.Metric == "p99(created)" {
			require.InDelta(t, 1, ch.Relative, 0.01)
			require.True(t, ch.Clear)
		}
	}
	down, err := ParseFailIf("rate(all)<-5%")
	require.NoError(t, err)
	require.False(t, down.Check([]*Result{made("g", 100, time.Millisecond)}, []*Result{made("h", 90, time.Millisecond)}).Passed)
}

func TestMergeAddsMachines(t *testing.T) {
	t.Parallel()
	a, b := made("a", 100, 10*time.Millisecond), made("b", 300, 20*time.Millisecond)
	b.Started, b.Finished = b.Started.Add(3*time.Second), b.Finished.Add(3*time.Second)
	b.Verdict.Passed = false
	b.Verdict.Findings = verdict.Findings{
		Counts: map[verdict.Kind]int{verdict.Lost: 2, verdict.Disordered: 1}, List: []verdict.Finding{{Kind: verdict.Disordered, File: "key-1.html"}},
	}
	b.Marks = []Mark{{1, "redis down"}}
	th, err := ParseThreshold("count(created)==400")
	require.NoError(t, err)
	m, err := Merge([]*Result{a, b}, []Threshold{th})
	require.NoError(t, err)
	require.EqualValues(t, 400, m.Outcome(measure.Created).Count)
	require.InDelta(t, 20*time.Millisecond, m.Outcome(measure.Created).Response.At(50), float64(100*time.Microsecond))
	require.InDelta(t, 13, m.Seconds(), 0.001)
	require.Equal(t, []int{100, 0, 0, 300}, m.Series.Counts[measure.Created][:4])
	require.Equal(t, Mark{4, "redis down"}, m.Marks[0])
	require.False(t, m.Verdict.Passed)
	require.Equal(t, []verdict.Finding{{Kind: verdict.Disordered}}, m.Verdict.Findings.List, "its drawing is not beside the sum")
	require.Equal(t, "key-1.html", b.Verdict.Findings.List[0].File)
	require.Equal(t, 400, m.Verdict.Audit.Keys)
	require.True(t, m.Thresholds[0].Passed)
	require.EqualValues(t, 100, a.Outcome(measure.Created).Count, "the parts must not change")
	_, err = Merge([]*Result{a, a}, nil)
	require.ErrorContains(t, err, "twice")
	_, err = Merge([]*Result{a}, nil)
	require.Error(t, err)
}

func TestDurationsHaveThreeDigits(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0µs", 999 * time.Microsecond: "999µs", 1234 * time.Microsecond: "1.23ms", 56789 * time.Microsecond: "56.8ms",
		250 * time.Millisecond: "250ms", 4800 * time.Millisecond: "4.80s", 90 * time.Second: "1m30s",
	} {
		require.Equal(t, want, Duration(d))
	}
}

func TestAFileCannotAskForMoreThanARunHas(t *testing.T) {
	t.Parallel()
	wide, err := hdr.New(1, 1<<62, 5).Encode(hdr.V2CompressedEncodingCookieBase)
	require.NoError(t, err)
	start := `"started":"2026-08-27T09:00:00Z","finished":"2026-08-27T09:00:10Z"`
	for name, text := range map[string]string{
		"an outcome twice":             start + `,"outcomes":[{"outcome":"created"},{"outcome":"created"}]`,
		"a count without its times":    start + `,"outcomes":[{"outcome":"created","count":5}]`,
		"a count below zero":           start + `,"outcomes":[{"outcome":"created","count":-5}]`,
		"a histogram of another shape": start + `,"lag":{"hdr":"` + string(wide) + `"}`,
		"a histogram that is none":     start + `,"lag":{"hdr":"AAAA"}`,
		"an end before the start":      `"started":"2026-08-27T09:00:00Z","finished":"2026-08-27T08:00:00Z"`,
		"many slots":                   start + `,"series":{"slot_seconds":1,"slots":1000000000}`,
		"slots below zero":             start + `,"series":{"slot_seconds":1,"slots":-1}`,
		"slots of no time":             start + `,"series":{"slot_seconds":0,"slots":1}`,
		"more counts than slots":       start + `,"series":{"slot_seconds":1,"slots":1,"counts":{"created":[1,2]}}`,
		"more plans than slots":        start + `,"series":{"slot_seconds":1,"slots":1,"planned":[1,2]}`,
		"more times than slots":        start + `,"series":{"slot_seconds":1,"slots":1,"response":[{},{}]}`,
	} {
		_, err := Parse([]byte(`{"schema":"` + Schema + `",` + text + `}`))
		require.ErrorContains(t, err, "read a result", name)
	}
	// Clocks that are a century apart give wide slots and not many.
	a, b := made("a", 1, time.Millisecond), made("b", 1, time.Millisecond)
	b.Started, b.Finished = b.Started.AddDate(100, 0, 0), b.Finished.AddDate(100, 0, 0)
	m, err := Merge([]*Result{a, b}, nil)
	require.NoError(t, err)
	require.LessOrEqual(t, m.Series.Slots, maxSlots)
	require.EqualValues(t, 2, m.Outcome(measure.Created).Count)
}

func TestAMergedFileIsNoBetterThanItsParts(t *testing.T) {
	t.Parallel()
	late, err := ParseThreshold("p99(created)<1ms")
	require.NoError(t, err)
	a, b, c := made("a", 100, 10*time.Millisecond), made("b", 100, 10*time.Millisecond), made("c", 100, 10*time.Millisecond)
	a.Thresholds = []ThresholdCheck{late.Check(a)}
	b.Verdict.Audit, b.Verdict.AuditNote = nil, "no audit was asked for"
	c.Verdict.AuditNote = "in part"
	m, err := Merge([]*Result{a, b, c}, nil)
	require.NoError(t, err)
	require.Equal(t, []ThresholdCheck{{"a: p99(created)<1ms", "10.0ms", false}}, m.Thresholds)
	require.False(t, m.Passed())
	require.Equal(t, "b: no audit was asked for; c: in part", m.Verdict.AuditNote)

	d := made("d", 1, time.Millisecond)
	again, err := Merge([]*Result{m, d}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "c", "d"}, again.Merged)
	_, err = Merge([]*Result{m, b}, nil)
	require.ErrorContains(t, err, "run b is there twice", "it is in the merged file already")
}

// A rate of runs that were not at once, or whose clocks are wrong, is nobody's.
func TestRunsThatWereNotAtOnceHaveNoRate(t *testing.T) {
	t.Parallel()
	for apart, valid := range map[time.Duration]bool{0: true, 4 * time.Second: true, 6 * time.Second: false, time.Hour: false, -time.Hour: false} {
		a, b := made("a", 100, time.Millisecond), made("b", 100, time.Millisecond)
		b.Started, b.Finished = b.Started.Add(apart), b.Finished.Add(apart)
		m, err := Merge([]*Result{a, b}, nil)
		require.NoError(t, err)
		require.Equal(t, valid, m.Valid.Valid, "%s: %v", apart, m.Valid.Reasons)
	}
}

func TestAVerdictThatContradictsItselfIsNotRead(t *testing.T) {
	t.Parallel()
	for says, change := range map[string]func(*Result){
		"there are findings": func(r *Result) { r.Verdict.Findings.Counts = map[verdict.Kind]int{verdict.Lost: 1} },
		"there was no audit": func(r *Result) { r.Verdict.Audit = nil },
		"not decided":        func(r *Result) { r.Verdict.Linearity.Unknown = 1 },
		"-1 findings":        func(r *Result) { r.Verdict.Findings.Counts = map[verdict.Kind]int{verdict.Lost: -1, verdict.Stray: 1} },
		"are listed":         func(r *Result) { r.Verdict.Findings.List = []verdict.Finding{{Kind: verdict.Lost}} },
		"reasons why":        func(r *Result) { r.Valid.Reasons = []string{"late"} },
		"outcomes of 100":    func(r *Result) { r.Totals.Requests = 5 },
	} {
		r := made("a", 100, time.Millisecond)
		change(r)
		var b bytes.Buffer
		require.NoError(t, r.Write(&b))
		_, err := Parse(b.Bytes())
		require.ErrorContains(t, err, says)
		_, err = Parse(b.Bytes()[:b.Len()/2])
		require.ErrorContains(t, err, "read a result", "half a file")
	}
}

// FuzzParseResult: what is accepted can be asked, merged and written again.
func FuzzParseResult(f *testing.F) {
	var b bytes.Buffer
	require.NoError(f, made("a", 3, time.Millisecond).Write(&b))
	f.Add(b.Bytes())
	f.Add([]byte(`{"schema":"oncegate.loadtest/1","outcomes":[{"outcome":"created"}]}`))
	f.Add([]byte(`{"schema":"oncegate.loadtest/1","run":"b","series":{"slot_seconds":1,"slots":2,"counts":{"created":[1,2]},"planned":[1,1],"response":[{}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := Parse(text)
		if err != nil {
			return
		}
		for _, m := range []string{"p99(all)", "rate(all)", "lag"} {
			metric, err := ParseMetric(m)
			require.NoError(t, err)
			metric.Of(r)
		}
		one, other := *r, *r
		one.Merged, other.Merged = nil, nil // or they are the same runs
		other.Run += "'"
		m, err := Merge([]*Result{&one, &other}, nil)
		require.NoError(t, err)
		require.LessOrEqual(t, m.Series.Slots, maxSlots)
		require.NoError(t, m.Write(io.Discard))
	})
}
