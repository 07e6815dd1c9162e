package cache

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
)

func TestWhyTheFilterWasWrong(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	stats := func(process string, flushes, evicted int64) serverStats {
		return serverStats{nodes: map[string]nodeCounts{process: {flushes, evicted}}}
	}
	one := stats("a", 1, 5)
	for name, c := range map[string]struct {
		happened func(*past)
		age      time.Duration // at minute 30
		troubled time.Time
		want     cause
	}{
		"older than receipts live":  {age: time.Hour, want: causeExpired},
		"nothing is known":          {age: time.Minute, want: causeUnknown},
		"flushed since":             {happened: func(p *past) { p.look(at(20), stats("a", 2, 5)) }, age: 15 * time.Minute, want: causeFlushed},
		"flushed before":            {happened: func(p *past) { p.look(at(10), stats("a", 2, 5)) }, age: 15 * time.Minute, want: causeUnknown},
		"restarted since":           {happened: func(p *past) { p.look(at(20), stats("b", 0, 0)) }, age: 15 * time.Minute, want: causeFlushed},
		"evicted since":             {happened: func(p *past) { p.look(at(20), stats("a", 1, 6)) }, age: 15 * time.Minute, want: causeEvicted},
		"evicted before":            {happened: func(p *past) { p.look(at(10), stats("a", 1, 6)) }, age: 15 * time.Minute, want: causeUnknown},
		"nothing has changed":       {happened: func(p *past) { p.look(at(20), one) }, age: 15 * time.Minute, want: causeUnknown},
		"could not be told":         {troubled: at(20), age: 15 * time.Minute, want: causeOutage},
		"trouble was over":          {troubled: at(10), age: 15 * time.Minute, want: causeUnknown},
		"made under a shorter life": {happened: func(p *past) { p.lives(at(25), 24*time.Hour) }, age: 50 * time.Minute, want: causeExpired},
		"made between a shortening and the look that noticed it": {
			happened: func(p *past) { p.lives(at(10), 45*time.Minute); p.lives(at(20), 10*time.Minute) }, age: 15 * time.Minute, want: causeExpired,
		},
		"made before a shortening": {
			happened: func(p *past) { p.lives(at(20), 45*time.Minute); p.lives(at(25), 10*time.Minute) }, age: 15 * time.Minute, want: causeUnknown,
		},
		"made under the new, longer one": {happened: func(p *past) { p.lives(at(-60), 24*time.Hour) }, age: 50 * time.Minute, want: causeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var p past
			p.lives(at(-120), 45*time.Minute)
			p.look(at(0), one)
			if c.happened != nil {
				c.happened(&p)
			}
			require.Equal(t, c.want, p.judge(at(30), c.age, c.troubled))
		})
	}
}

// What one node of a Cluster does says nothing of the others' counts.
func TestTheNodesOfAClusterCountForThemselves(t *testing.T) {
	t.Parallel()
	var p past
	look := func(nodes map[string]nodeCounts) news { return p.look(time.Now(), serverStats{nodes: nodes}) }
	require.Zero(t, look(map[string]nodeCounts{"a": {1, 1000}, "b": {1, 2000}}))
	require.Zero(t, look(map[string]nodeCounts{"a": {1, 1000}, "b": {1, 2000}}))
	require.Equal(t, news{evicted: 5}, look(map[string]nodeCounts{"a": {1, 1005}, "b": {1, 2000}}))
	require.Equal(t, news{emptied: true, evicted: 3}, look(map[string]nodeCounts{"a": {1, 1005}, "c": {0, 3}}), "b was replaced")
	require.Equal(t, news{emptied: true, evicted: 1}, look(map[string]nodeCounts{"a": {2, 0}, "c": {0, 4}}), "one was flushed, and its counts reset")
}

func TestWhatRedisSaysOfItself(t *testing.T) {
	t.Parallel()
	text := "# Server\r\nrun_id:abc\r\n# Stats\r\nevicted_keys:7\r\n# Memory\r\nused_memory:100\r\nused_memory_rss:5\r\nmaxmemory:200\r\n" +
		"# Commandstats\r\ncmdstat_flushall:calls=2,usec=1\r\ncmdstat_flushdb:calls=3,usec=1\r\ncmdstat_set:calls=9,usec=1\r\n"
	require.Equal(t, serverStats{nodes: map[string]nodeCounts{"abc": {5, 7}}, memory: 100, memoryMost: 200}, parseInfo(text))
	require.Equal(t, serverStats{nodes: map[string]nodeCounts{"": {}}}, parseInfo("evicted_keys:many\r\nnonsense"))
}

// watching runs a filter's watch until the test ends, and returns when it has
// looked once.
func (r *rig) watching(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Watch(ctx)
	}()
	t.Cleanup(func() { stop(); <-done })
	require.Eventually(t, func() bool { return value(t, r.guard.metrics.memory) > 0 }, hung, 5*time.Millisecond)
}

// blames tells the filter of misses until it has found what is to blame.
func (r *rig) blames(t *testing.T, since time.Time, want cause) {
	t.Helper()
	require.Eventually(t, func() bool {
		r.Missed(time.Since(since))
		return value(t, r.guard.metrics.wrong[want]) > 0
	}, hung, 50*time.Millisecond)
}

func TestTheFilterNoticesAFlush(t *testing.T) {
	t.Parallel()
	r := open(t, testserver.StartRedis(t).Addr, nil)
	r.watching(t)
	since := time.Now()
	require.NoError(t, r.client.FlushDB(t.Context()).Err())
	r.blames(t, since, causeFlushed)
	require.InDelta(t, 1, value(t, r.guard.metrics.emptied), 0)
	require.Zero(t, value(t, r.guard.metrics.wrong[causeExpired]))
}

func TestTheFilterNoticesEvictions(t *testing.T) {
	t.Parallel()
	r := open(t, testserver.StartRedis(t, "--maxmemory", "4mb", "--maxmemory-policy", "allkeys-lru").Addr, nil)
	r.watching(t)
	since := time.Now()
	filling := strings.Repeat("x", 64<<10)
	for i := range 200 {
		require.NoError(t, r.client.Set(t.Context(), "filling:"+string(rune('a'+i)), filling, time.Hour).Err())
	}
	r.blames(t, since, causeEvicted)
	require.Positive(t, value(t, r.guard.metrics.evicted))
	require.InDelta(t, 4<<20, value(t, r.guard.metrics.memoryMost), 0)
}

func TestTheFilterKnowsWhatItCouldNotTell(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t)
	var frozen atomic.Bool
	r := open(t, server.Addr, shorterWhile(&frozen, hurried, func(*settings) {}))
	r.watching(t)
	since := time.Now()
	server.Stop()
	frozen.Store(true)
	r.Admit(t.Context(), attempt("alice", "k"))
	server.Cont()
	r.blames(t, since, causeOutage)
}

func TestARedisThatDoesNotTellIsLeftAloneForAWhile(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t)
	admin := server.Client(t)
	require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "gate", "on", ">secret", "~*", "+@all", "-info").Err())
	now := newClock()
	r := open(t, server.Addr, func(s *settings) {
		s.client.Username, s.client.Password, s.options.Now = "gate", "secret", now.Now
	})
	for range 3 {
		r.look(t.Context())
	}
	require.Regexp(t, `cmdstat_info:[^\r]*,rejected_calls=1,`, admin.Info(t.Context(), "commandstats").Val())
	require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "gate", "+info").Err())
	r.look(t.Context())
	require.Zero(t, value(t, r.guard.metrics.memory))
	now.move(silentFor)
	r.look(t.Context())
	require.Positive(t, value(t, r.guard.metrics.memory), "its user may by now")
}

// replyError is an error that a server sent.
type replyError string

func (e replyError) Error() string { return string(e) }
func (replyError) RedisError()     {}

func TestOnlyAServerThatCannotTellIsLeftAlone(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"NOPERM User gate has no permissions to run the 'info' command": true,
		"ERR unknown command 'INFO', with args beginning with: ":        true,
		"ERR upstream failure":                           false,
		"ERR max number of clients reached":              false,
		"LOADING Redis is loading the dataset in memory": false,
	} {
		require.Equal(t, want, tellsNothing(fmt.Errorf("node: %w", replyError(text))), text)
	}
	require.False(t, tellsNothing(errors.New("NOPERM")), "not a reply")
	require.False(t, tellsNothing(nil))
	embedded, err := OpenEmbedded(patient)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, embedded.Close()) })
	_, err = nodeStats(t.Context(), embedded.Client)
	require.True(t, tellsNothing(err), "%v", err)
}

func TestMissesThatNobodyJudgesAreCounted(t *testing.T) {
	t.Parallel()
	r := open(t, testserver.Redis(t).Addr, nil)
	for range maxMisses + 3 {
		r.Missed(time.Minute)
	}
	require.InDelta(t, 3, value(t, r.guard.metrics.wrong[causeUnknown]), 0)
}
