//go:build unix

package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGaugesAreReadWithTheirLabels(t *testing.T) {
	t.Parallel()
	g := parseGauges("# HELP a of x 3\na 5\nb{to=\"open\"} 1.5e+06\n\nnonsense\nc x\n")
	require.Equal(t, gauges{"a": 5, `b{to="open"}`: 1.5e6}, g)
	v, err := g.need("a")
	require.NoError(t, err)
	require.InDelta(t, 5, v, 0)
	_, err = g.need("d")
	require.ErrorContains(t, err, "no d")
}

func TestCommandsAreCountedWithoutThoseThatLook(t *testing.T) {
	t.Parallel()
	c := parseCommands("# Commandstats\r\ncmdstat_set:calls=12,usec=3\r\ncmdstat_info:calls=9,usec=1\r\n" +
		"cmdstat_client|setinfo:calls=4,usec=1\r\ncmdstat_memory|usage:calls=4,usec=1\r\ncmdstat_get:calls=1000,usec=1\r\n")
	require.Equal(t, counters{"set": 12, "get": 1000}, c)
	require.Equal(t, "get 1,000, set 12", c.list())
}

func TestCountersOfARestartedServerBeginAnew(t *testing.T) {
	t.Parallel()
	d := counters{"set": 12, "get": 3, "del": 1}.since(counters{"set": 2, "get": 10})
	require.Equal(t, counters{"set": 10, "get": 3, "del": 1}, d)
	require.InDelta(t, 14, d.sum(), 0)
}

func TestPressureKeepsTheBusiestSlice(t *testing.T) {
	t.Parallel()
	var p pressure
	require.Empty(t, p.perSecond(), "nothing was seen")
	p.count(slice, 100, 3, 10, 0)
	p.count(slice, 50, 1, 900, 2)
	require.InDelta(t, 300, p.perSecond()[0], 1e-9)
	require.InDelta(t, 400, p.peak, 1e-9)
	require.Equal(t, pressure{slices: 2, length: 2 * slice, commits: 150, peak: p.peak, running: 3, waiting: 900, refused: 2}, p)
}

func TestLiveMemoryIsReadFromTheHeapProfile(t *testing.T) {
	t.Parallel()
	n, err := liveBytes("heap profile: 1: 2\n\n# runtime.MemStats\n# Alloc = 7\n# HeapAlloc = 4000\n# Stack = 500 / 900\n# NumGC = 3\n")
	require.NoError(t, err)
	require.InDelta(t, 4500, n, 0)
	_, err = liveBytes("heap profile: 1: 2\n# HeapAlloc = 4000\n")
	require.ErrorContains(t, err, "# Stack =")
}
