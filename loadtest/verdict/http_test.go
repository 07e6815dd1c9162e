package verdict

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/loadtest/history"
	"github.com/oncegate/oncegate/loadtest/wire"
)

// served is a client of a server.
func served(t *testing.T, h http.Handler) *wire.Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	target, err := url.Parse(server.URL)
	require.NoError(t, err)
	client, err := wire.New(wire.Options{Target: target, Timeout: time.Minute})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

// What a deployment says of a key must fit what it has and what it answered.
func TestHTTPAuditAsksWhatBecameOfAKey(t *testing.T) {
	t.Parallel()
	success := fmt.Sprintf(`{"state":"succeeded","response":{"location":"/api/orders/%s","body":%s}}`, id1, created(id1).Body)
	for name, tc := range map[string]struct {
		status int
		says   string
		c      *history.Case
		want   map[Kind]int
	}{
		"right":                     {http.StatusOK, success, heard("u", "k1", created(id1)), nil},
		"nobody heard":              {http.StatusOK, success, heard("u", "k1", timedOut()), nil},
		"the answer is not kept":    {http.StatusOK, `{"state":"succeeded","response":{"location":"/api/orders/` + id1 + `"}}`, heard("u", "k1", created(id1)), nil},
		"the batch's is not kept":   {http.StatusOK, `{"state":"succeeded","response":{"location":"/api/requests/k1"}}`, heard("u", "k1", created(id1)), nil},
		"not known":                 {http.StatusNotFound, `{}`, heard("u", "k1", created(id1)), map[Kind]int{NoRecord: 1}},
		"failed":                    {http.StatusOK, `{"state":"failed"}`, heard("u", "k1", created(id1)), map[Kind]int{NoRecord: 1}},
		"in progress":               {http.StatusOK, `{"state":"in_progress"}`, heard("u", "k1", created(id1)), map[Kind]int{NoRecord: 1}},
		"another order":             {http.StatusOK, `{"state":"succeeded","response":{"location":"/api/orders/` + id2 + `"}}`, heard("u", "k1", created(id1)), map[Kind]int{WrongState: 1}},
		"of a request nobody began": {http.StatusOK, `{"state":"failed"}`, heard("u", "k2", history.Record{Proof: history.NeverSent}), map[Kind]int{Stray: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/api/orders" {
					_, _ = fmt.Fprintf(w, `{"orders":[%s]}`, created(id1).Body)
					return
				}
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte(tc.says))
			}))
			cases := []*history.Case{tc.c}
			truth, err := FromHTTP(t.Context(), client, map[string]string{"u": "t"}, cases)
			require.NoError(t, err)
			_, f := Audit(cases, truth, Scope{KeyPrefix: "k", OwnUsers: true})
			require.Equal(t, tc.want, f.Counts, f.List)
		})
	}
}

// A customer who gave up does not keep the deployment from making the order, also
// while the audit is under way.
func TestAnOrderThatCameDuringTheAuditIsThere(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		c    *history.Case
		late http.HandlerFunc
		want map[Kind]int
	}{
		"it came":      {heard("u", "k1", timedOut()), func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(created(id1).Body) }, nil},
		"it never did": {heard("u", "k1", timedOut()), http.NotFound, map[Kind]int{NoOrder: 1}},
		"too late":     {heard("u", "k1", created(id1)), func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(created(id1).Body) }, map[Kind]int{Lost: 1, NoOrder: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			routes := http.NewServeMux()
			routes.HandleFunc("GET /api/orders", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"orders":[]}`)) })
			routes.HandleFunc("GET /api/orders/"+id1, tc.late)
			routes.HandleFunc("GET /api/requests/k1", func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte(`{"state":"succeeded","response":{"location":"/api/orders/` + id1 + `"}}`))
			})
			cases := []*history.Case{tc.c}
			truth, err := FromHTTP(t.Context(), served(t, routes), map[string]string{"u": "t"}, cases)
			require.NoError(t, err)
			_, f := Audit(cases, truth, Scope{KeyPrefix: "k", OwnUsers: true})
			require.Equal(t, tc.want, f.Counts, f.List)
		})
	}
}

// Whoever is shown somebody else's order is told more than is theirs, whatever the
// users of the run are.
func TestAnOrderShownToSomebodyElseIsFound(t *testing.T) {
	t.Parallel()
	c := heard("v", "k1", timedOut())
	routes := http.NewServeMux()
	routes.HandleFunc("GET /api/orders", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"orders":[%s]}`, created(id1).Body) // of u
	})
	truth, err := FromHTTP(t.Context(), served(t, routes), map[string]string{"v": "t"}, []*history.Case{c})
	require.NoError(t, err)
	_, f := Audit([]*history.Case{c}, truth, Scope{KeyPrefix: "k"})
	require.Equal(t, map[Kind]int{ForeignBody: 1}, f.Counts, f.List)
}

// What is lost after a fault in the middle of a run is not among its first keys.
func TestASampleReachesOverTheWholeRun(t *testing.T) {
	t.Parallel()
	cases := make([]*history.Case, 4*sampledKeys)
	for i := range cases {
		cases[i] = heard("u", fmt.Sprint(i), created(id1))
	}
	cases[7] = heard("u", "7", timedOut())
	asked := doubtful(cases)
	require.Len(t, asked, 1+sampledKeys)
	require.Contains(t, asked, cases[7])
	require.Contains(t, asked, cases[0])
	require.Contains(t, asked, cases[len(cases)-1])
	require.Equal(t, asked, doubtful(cases))

	tokens := map[string]string{}
	for i := range 2 * sampledUsers {
		tokens[fmt.Sprintf("user-%06d", i)] = "t"
	}
	users := readable(tokens, []*history.Case{heard("user-000005", "k", created(id1))})
	require.Len(t, users, 1+sampledUsers)
	require.Equal(t, "user-000005", users[0])
	require.Contains(t, users, fmt.Sprintf("user-%06d", 2*sampledUsers-1))
	require.Equal(t, users, readable(tokens, []*history.Case{heard("user-000005", "k", created(id1))}))
}

// Users who were there before have orders of their own, and rows over HTTP tell
// no keys; a number of this run tells that a row is of it.
func TestHTTPAuditFindsASecondOrderOfAForeignUserByItsNumber(t *testing.T) {
	t.Parallel()
	c := heard("u", "lt-a-1", created(id1))
	c.Intent.Lines[0].ExternalOrderNo = "a-1-0"
	row := func(id, number string) Row {
		return Row{ID: id, User: "u", SKU: "tea", Quantity: 2, Hundredths: 1234, ExternalOrderNo: number, Status: "PENDING"}
	}
	for name, tc := range map[string]struct {
		rows []Row
		want map[Kind]int
	}{
		"one":               {[]Row{row(id1, "a-1-0")}, nil},
		"and one of theirs": {[]Row{row(id1, "a-1-0"), row(id2, "theirs")}, nil},
		"a second one":      {[]Row{row(id1, "a-1-0"), row(id2, "a-1-0")}, map[Kind]int{Duplicate: 1}},
	} {
		_, f := Audit([]*history.Case{c}, &Truth{Source: "http", Rows: tc.rows}, Scope{KeyPrefix: "lt-a-"})
		require.Equal(t, tc.want, f.Counts, name)
	}
}
