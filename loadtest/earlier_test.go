package loadtest

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/loadtest/measure"
	"github.com/oncegate/oncegate/loadtest/stub"
	"github.com/oncegate/oncegate/loadtest/verdict"
)

// reading is a target that answers reads of this path as one that was never asked for
// anything before.
func reading(t *testing.T, c *Config, s http.Handler, hidden func(path string) bool) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && hidden(r.URL.Path) {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	var err error
	c.Target, err = url.Parse(server.URL)
	require.NoError(t, err)
}

// Users who are taken from a file have orders of their own, and those of an earlier
// run with this name must not be judged as this one's.
func TestANameThatWasUsedBeforeIsNoticedWithUsersOfAFile(t *testing.T) {
	t.Parallel()
	s := stub.New(stub.Flaws{})
	s.Plant(stub.Order{User: "lt-t-0", SKU: "tea", Quantity: 1, Amount: "1.00", Status: "PENDING", ExternalOrderNo: "theirs"})
	c := configure(t, s, "unique")
	c.OwnUsers, c.Shape.Rate = false, 50
	require.True(t, perform(t, c).Verdict.Passed, "orders of their own are no earlier run")

	var used *UsedError
	same, another := c, c
	reading(t, &same, s, func(path string) bool { return path == "/api/orders" })
	_, err := Run(t.Context(), same)
	require.ErrorAs(t, err, &used, "by its keys")
	another.Seed++
	reading(t, &another, s, func(path string) bool { return strings.HasPrefix(path, "/api/requests/") })
	_, err = Run(t.Context(), another)
	require.ErrorAs(t, err, &used, "by its business numbers")
	require.ErrorContains(t, err, "--run")

	another.Run = "other"
	require.Nil(t, perform(t, another).Verdict.Audit, "it was begun; its audit cannot read")
}

// Where no read tells of the earlier run its answers do, by one kind of finding that
// says what to do.
func TestReplaysOfAnEarlierRunAreOneKindOfFinding(t *testing.T) {
	t.Parallel()
	s := stub.New(stub.Flaws{})
	c := configure(t, s, "unique")
	c.OwnUsers, c.Shape.Rate, c.Audit = false, 50, AuditOff
	require.True(t, perform(t, c).Verdict.Passed)
	reading(t, &c, s, func(path string) bool { return path != "/livez" })
	r := perform(t, c)
	require.Nil(t, r.Outcome(measure.Created))
	require.Equal(t, map[verdict.Kind]int{verdict.NotOurs: r.Verdict.Linearity.Keys}, r.Verdict.Findings.Counts)
	require.False(t, r.Verdict.Passed)
	require.Contains(t, verdict.NotOurs.Means(), "--run")
}
