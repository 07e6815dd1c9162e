//go:build unix

package bench

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
)

func profileOf(t *testing.T, kind string, spent ...int64) *bytes.Buffer {
	t.Helper()
	p := &profile.Profile{
		SampleType:    []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: kind, Unit: "nanoseconds"}},
		DurationNanos: int64(3 * time.Second),
	}
	for i, ns := range spent {
		caller := &profile.Function{ID: uint64(2*i + 1), Name: "main.caller"}
		called := &profile.Function{ID: uint64(2*i + 2), Name: fmt.Sprintf("pkg.f%d", i%12)}
		at := &profile.Location{ID: uint64(i + 1), Line: []profile.Line{{Function: called}, {Function: caller}}}
		p.Function = append(p.Function, caller, called)
		p.Location = append(p.Location, at)
		p.Sample = append(p.Sample, &profile.Sample{Location: []*profile.Location{at}, Value: []int64{1, ns}})
	}
	var b bytes.Buffer
	require.NoError(t, p.Write(&b))
	return &b
}

func TestTopListsWhereTheTimeWasSpent(t *testing.T) {
	t.Parallel()
	ns := make([]int64, 13) // the thirteenth is once more the first function
	for i := range ns {
		ns[i] = int64(i+1) * int64(10*time.Millisecond)
	}
	var out bytes.Buffer
	require.NoError(t, writeTop(&out, "new-http", profileOf(t, "cpu", ns...)))
	text := out.String()
	require.Contains(t, text, "new-http: 0.91 s of processor time in 3s\n")
	require.Equal(t, topFunctions+4, strings.Count(text, "\n"), text)
	lines := strings.Split(text, "\n")
	require.Equal(t, "| 15.4 % | 0.14 s | `pkg.f0`  |", lines[4], "13 and 1 hundredths, added up")
	require.Equal(t, "| 13.2 % | 0.12 s | `pkg.f11` |", lines[5])
	require.NotContains(t, text, "main.caller", "time of a function is without what it calls")
}

func TestTopOfSomethingElseIsAnError(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, writeTop(&bytes.Buffer{}, "x", profileOf(t, "contentions", 1)), "not one of processor time")
	require.ErrorContains(t, writeTop(&bytes.Buffer{}, "x", strings.NewReader("nothing")), "read the profile")
}
