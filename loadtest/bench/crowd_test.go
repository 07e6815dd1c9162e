//go:build unix

package bench

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/loadtest/measure"
)

func TestCrowdComesAgainUntilEachHasTheOrder(t *testing.T) {
	t.Parallel()
	const clients = 20
	var asked atomic.Int64
	all := make(chan struct{})
	addr := answering(t, func(r *http.Request) (int, map[string]string, string) {
		again := map[string]string{"Idempotent-Replayed": "true"}
		if r.Header.Get("Idempotency-Key") == "warm" {
			return http.StatusCreated, again, `{}`
		}
		n := asked.Add(1)
		if n == clients {
			close(all)
		}
		select { // nobody comes again before everybody has come
		case <-all:
		case <-r.Context().Done():
		}
		switch {
		case n == 1:
			return http.StatusCreated, nil, `{"order_id":"1"}`
		case n <= 5:
			return http.StatusConflict, map[string]string{"Retry-After": "1"}, `{"code":"REQUEST_IN_PROGRESS","retry_after_ms":1}`
		}
		return http.StatusCreated, again, `{"order_id":"1"}`
	})
	c, err := gather(t.Context(), []string{addr, addr}, clients, asking("warm")())
	require.NoError(t, err)
	defer c.close()
	heard := c.ask(t.Context(), asking("once")())
	require.NoError(t, agree(heard))
	var first measure.Counts
	for i := range heard {
		first[heard[i].first]++
		require.GreaterOrEqual(t, heard[i].served, heard[i].heard)
	}
	require.Equal(t, measure.Counts{measure.Created: 1, measure.InProgress: 4, measure.Replayed: 15}, first)
	values := stormValues(heard, traffic{}, traffic{sql: counters{"com_commit": 2}, redis: counters{"set": 3}, ledgers: counters{"a": 1}})
	require.Equal(t, []float64{1, 2, 0, 0, 0, 0, 3}, values[:7])
	require.Equal(t, []float64{1, 15, 4, 0}, values[10:])
}

func TestStormThatBreaksItsPromiseIsAnError(t *testing.T) {
	t.Parallel()
	order := cry{created: true, body: "a"}
	again := cry{body: "a"}
	lost := errors.New("reset")
	require.NoError(t, agree([]cry{again, order, again}))
	require.ErrorIs(t, agree([]cry{order, order}), errSeveralOrders)
	require.ErrorIs(t, agree([]cry{again, again}), errSeveralOrders)
	require.ErrorIs(t, agree([]cry{order, {body: "b"}}), errOtherAnswer)
	require.ErrorIs(t, agree([]cry{order, {err: lost}}), lost)
}

func TestRefusalWithoutATimeIsAnError(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{"without a time": http.StatusConflict, "status 500": http.StatusInternalServerError} {
		addr := answering(t, func(*http.Request) (int, map[string]string, string) {
			return status, nil, `{"code":"REQUEST_IN_PROGRESS"}`
		})
		k := &connection{addr: addr}
		var c cry
		r := asking("k")()
		c.ask(t.Context(), k, &r, time.Now())
		k.close()
		require.ErrorContains(t, c.err, name)
	}
}

func TestColdOnesComeRoundInTurnsAndAreNobodysTwice(t *testing.T) {
	t.Parallel()
	c := good()
	s, err := newStage(&c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.close()) })
	const workers = 7
	k := s.replayedFromRedis()
	seen := map[string]int{}
	for i := range workers {
		next := k.next(i, workers)
		first := next()
		for r := first; ; {
			seen[r.key]++
			if r = next(); r.key == first.key {
				break
			}
		}
	}
	require.Len(t, seen, coldKeys)
	for key, n := range seen {
		require.Equal(t, 1, n, key)
	}
}
