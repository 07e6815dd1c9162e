//go:build unix

package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLayersAreReadFromTheMetrics(t *testing.T) {
	t.Parallel()
	l := parseLayers(`# TYPE oncegate_decision_duration_seconds histogram
oncegate_decision_duration_seconds_bucket{kind="replayed",layer="redis",le="+Inf"} 7
oncegate_decision_duration_seconds_count{kind="created",layer="mysql"} 1024
oncegate_decision_duration_seconds_count{kind="replayed",layer="mysql"} 10
oncegate_decision_duration_seconds_count{kind="replayed",layer="redis"} 1.5e+06
`)
	require.Equal(t, Layers{"mysql": 10, "redis": 1.5e6}, l)
	share, ok := l.share(Layers{"mysql": 10, "redis": 0.5e6}, "redis")
	require.True(t, ok)
	require.InDelta(t, 1, share, 1e-9)
	share, _ = Layers{"mysql": 110, "redis": 100}.share(Layers{"mysql": 10}, "redis")
	require.InDelta(t, 0.5, share, 1e-9)
	_, ok = Layers{}.share(Layers{}, "redis")
	require.False(t, ok, "a gateway without the metric says nothing about it")
}
