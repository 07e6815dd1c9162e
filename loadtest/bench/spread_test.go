//go:build unix

package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A median on the right side of a mark says nothing when the rounds lie on both.
func TestAMarkIsMetByTheRoundsAndNotByTheirMedian(t *testing.T) {
	t.Parallel()
	speed, latency := &Target{AtLeast: 1.4, Aim: 1.6}, &Target{AtLeast: 1.3, Aim: 1.1, Lower: true}
	for name, tc := range map[string]struct {
		target *Target
		ratios []float64
		want   Met
	}{
		"all rounds":                    {speed, []float64{1.5, 1.4, 1.55}, Reached},
		"the median, and not one round": {speed, []float64{1.5, 1.39, 1.55}, Noisy},
		"one round, and not the median": {speed, []float64{1.2, 1.3, 1.45}, Noisy},
		"no round":                      {speed, []float64{1.2, 1.3, 1.39}, Missed},
		"the aim, by all":               {speed, []float64{1.6, 1.7, 1.8}, Aimed},
		"the aim, by most":              {speed, []float64{1.5, 1.7, 1.8}, Reached},
		"one outlier among many":        {speed, []float64{1.5, 1.5, 1.5, 0.2, 1.5, 1.5, 1.5, 1.5}, Reached},
		"times of all rounds":           {latency, []float64{1.2, 1.3, 1.25}, Reached},
		"times, and one too long":       {latency, []float64{1.0, 1.05, 1.4}, Noisy},
		"times, all too long":           {latency, []float64{1.31, 1.4, 1.5}, Missed},
		"nothing is asked":              {nil, []float64{1, 2, 3}, NotAsked},
	} {
		row := Row{Target: tc.target, Subject: Side{Values: tc.ratios}}
		for range tc.ratios {
			row.Baseline.Values = append(row.Baseline.Values, 1)
		}
		row.conclude()
		require.Equal(t, tc.want, row.Met, name)
	}
}
