package loadtest

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/loadtest/stub"
)

// A deployment that serves the few has kept its promises, and the run shows little: it
// must not end as one that served everybody.
func TestARunInWhichMostGoAwayWithoutAnOrderIsNotValid(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status int
		code   string
		share  int64 // of so many, one is taken
		want   []string
	}{
		"away":              {http.StatusServiceUnavailable, "UNAVAILABLE", 4, []string{"5 of 20 keys were answered with an order"}},
		"limited":           {http.StatusTooManyRequests, "RATE_LIMITED", 4, []string{"5 of 20 keys were answered with an order"}},
		"poor":              {http.StatusUnprocessableEntity, "INSUFFICIENT_BALANCE", 4, []string{"5 of 20 keys were answered with an order", "15 keys were refused"}},
		"sold out":          {http.StatusUnprocessableEntity, "OUT_OF_STOCK", 4, nil},
		"half of them":      {http.StatusServiceUnavailable, "UNAVAILABLE", 2, nil},
		"half of them poor": {http.StatusUnprocessableEntity, "INSUFFICIENT_BALANCE", 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stub.New(stub.Flaws{})
			c := configure(t, s, "unique")
			c.Shape.Rate, c.Poisson = 20, false
			c.Scenario.Behaviours[0].Forbidden = nil
			var orders atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost && orders.Add(1)%tc.share != 0 {
					w.WriteHeader(tc.status)
					_, _ = w.Write([]byte(`{"code":"` + tc.code + `","outcome":"rejected"}`))
					return
				}
				s.ServeHTTP(w, r)
			}))
			t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
			var err error
			c.Target, err = url.Parse(server.URL)
			require.NoError(t, err)
			r := perform(t, c)
			require.True(t, r.Verdict.Passed, r.Verdict.Findings.List)
			require.Equal(t, len(tc.want) == 0, r.Passed(), r.Valid.Reasons)
			require.Len(t, r.Valid.Reasons, len(tc.want))
			for i, want := range tc.want {
				require.True(t, strings.HasPrefix(r.Valid.Reasons[i], want), r.Valid.Reasons[i])
			}
		})
	}
}
