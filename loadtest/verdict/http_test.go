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
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/api/orders" {
					_, _ = fmt.Fprintf(w, `{"orders":[%s]}`, created(id1).Body)
					return
				}
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte(tc.says))
			}))
			t.Cleanup(server.Close)
			target, err := url.Parse(server.URL)
			require.NoError(t, err)
			client, err := wire.New(wire.Options{Target: target, Timeout: time.Minute})
			require.NoError(t, err)
			t.Cleanup(client.Close)
			cases := []*history.Case{tc.c}
			truth, err := FromHTTP(t.Context(), client, map[string]string{"u": "t"}, cases)
			require.NoError(t, err)
			_, f := Audit(cases, truth, Scope{KeyPrefix: "k", OwnUsers: true})
			require.Equal(t, tc.want, f.Counts, f.List)
		})
	}
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
