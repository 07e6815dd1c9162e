//go:build unix

package bench

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// FuzzCounters: the metrics of a gateway and what Redis has counted read the same
// when they are written again, and give shares and sums of what can be counted,
// whatever else stands in them.
func FuzzCounters(f *testing.F) {
	for _, s := range []string{
		"# HELP a of x 3\na 5\nb{to=\"open\"} 1.5e+06\n\nnonsense\nc x\nd NaN\ne -Inf\n", " 7\n# 8\na  9\n",
		"oncegate_decision_duration_seconds_count{kind=\"replayed\",layer=\"redis\"} 7\noncegate_decision_duration_seconds_count{kind=\"replayed\",layer=\"mysql\"} -3\n",
		"oncegate_decision_duration_seconds_count{kind=\"replayed\",layer=\"} 7\noncegate_decision_duration_seconds_count{kind=\"replayed\",layer=\"redis\"} 1e300\n",
		"# Commandstats\r\ncmdstat_set:calls=12,usec=3\r\ncmdstat_client|setinfo:calls=4,usec=1\r\ncmdstat_get:calls=-1\r\ncmdstat_x:calls=NaN\r\n",
		"heap profile: 1: 2\n# HeapAlloc = 4000\n# Stack = 500 / 900\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		g := parseGauges(text)
		var again strings.Builder
		for name, n := range g {
			require.NotEmpty(t, name)
			again.WriteString(name + " " + strconv.FormatFloat(n, 'g', -1, 64) + "\n")
		}
		back := parseGauges(again.String())
		require.Len(t, back, len(g))
		for name, n := range g {
			require.Equal(t, math.Float64bits(n), math.Float64bits(back[name]), name)
		}

		l := parseLayers(text)
		for layer := range l {
			share, ok := l.share(Layers{}, layer)
			require.True(t, !ok || share >= 0 && share <= 1, "%s: %v", layer, share)
		}
		_, ok := l.share(l, layerRedis)
		require.False(t, ok, "nothing came since")

		c := parseCommands(text)
		require.GreaterOrEqual(t, c.sum(), 0.)
		require.Zero(t, c.since(c).sum())
		require.Equal(t, c, c.since(counters{}))
		require.Empty(t, c.since(c).list())
		if n, err := liveBytes(text); err == nil {
			require.GreaterOrEqual(t, n, 0.)
		}
	})
}

// FuzzReadAnswer: an answer that the bench reads is the same in whatever pieces it
// comes, and takes no more memory than an answer may have. (It reads those of its
// own servers, and is no judge of others.)
func FuzzReadAnswer(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 201 Created\r\nContent-Length: 2\r\nIdempotent-Replayed: true\r\n\r\n{}", "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 201 Created\r\n\r\n", "HTTP/1.1 201 Created\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 201\r\nContent-Length: 99999999\r\n\r\n", "HTTP/1.1 abc\r\n\r\n", "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nmore",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		var a, slow answer
		err := a.read(bytes.NewReader(sent))
		require.LessOrEqual(t, cap(a.buf), 4*maxAnswer)
		if err != nil {
			return
		}
		require.NoError(t, slow.read(iotest.OneByteReader(bytes.NewReader(sent))))
		require.Equal(t, a.status, slow.status)
		require.Equal(t, string(a.body), string(slow.body))
	})
}
