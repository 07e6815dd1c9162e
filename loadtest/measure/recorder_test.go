package measure

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEveryOutcomeHasItsOwnTimes(t *testing.T) {
	t.Parallel()
	r := NewRecorder()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 100 {
				r.Add(uint64(i), Sample{Outcome: Created, Response: 10 * time.Millisecond, Service: time.Millisecond, Sent: true})
			}
			r.Add(uint64(i), Sample{Outcome: Transport, Response: 3 * time.Second, Lag: time.Second})
		})
	}
	wg.Wait()
	w := r.Next()
	require.EqualValues(t, 404, w.N)
	counts := r.Counts()
	require.EqualValues(t, 400, counts[Created])
	require.EqualValues(t, 404, counts.Total())
	require.InDelta(t, 3*time.Second, w.Max, float64(5*time.Millisecond))
	require.Zero(t, r.Next().N, "a window must not be counted twice")

	got := r.Times()
	require.Len(t, got.Response, 2)
	require.EqualValues(t, 400, got.Service[Created].TotalCount())
	require.NotContains(t, got.Service, Transport, "what was never sent has no service time")
	require.InDelta(t, 10*time.Millisecond, At(got.Response[Created], 99), float64(50*time.Microsecond))
	require.EqualValues(t, 404, got.Lag.TotalCount())
}

func TestTimesBeyondTheScaleAreKept(t *testing.T) {
	t.Parallel()
	h := NewHistogram()
	Record(h, 100*time.Hour)
	Record(h, -time.Second)
	require.EqualValues(t, 2, h.TotalCount())
	require.InDelta(t, time.Hour, At(h, 100), float64(5*time.Second))
}

func TestOutcomeNamesRoundTrip(t *testing.T) {
	t.Parallel()
	for _, o := range Outcomes() {
		text, err := o.MarshalText()
		require.NoError(t, err)
		var back Outcome
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, o, back)
	}
	_, err := ParseOutcome("creatd")
	require.ErrorContains(t, err, "created")
}
