package verdict

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/loadtest/history"
)

// A client of another language finds order_id where it is spelled so, and nothing
// that comes close.
func TestMembersAreJudgedByTheirExactNames(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		from, to string
		want     Kind
	}{
		{`"order_id"`, `"Order_Id"`, Malformed},
		{`"user_id"`, `"USER_ID"`, ForeignBody},
		{`"sku"`, `"SKU"`, ForeignBody},
		{`"sku"`, "\"\u017fku\"", ForeignBody},
		{`"quantity"`, `"Quantity"`, ForeignBody},
		{`"quantity":2`, `"quantity":"2"`, ForeignBody},
		{`"quantity":2`, `"quantity":2.0`, ForeignBody},
		{`"amount"`, `"Amount"`, ForeignBody},
		{`"status"`, `"Status"`, ForeignBody},
		{`"status"`, `"status":"PAID","status"`, Malformed},
		{`"order_id"`, `"order_id":"` + id2 + `","order_id"`, Malformed},
	} {
		r := created(id1)
		require.Contains(t, string(r.Body), tc.from)
		r.Body = []byte(strings.Replace(string(r.Body), tc.from, tc.to, 1))
		require.Equal(t, map[Kind]int{tc.want: 1}, Answers([]*history.Case{heard("u", "k", r)}).Counts, string(r.Body))

		b := batch("u", "k", id1, id2)
		second := b.Records()[0]
		at := strings.LastIndex(string(second.Body), tc.from)
		second.Body = []byte(string(second.Body[:at]) + tc.to + string(second.Body[at+len(tc.from):]))
		c := heard("u", "k", second)
		c.Intent = b.Intent
		require.Equal(t, map[Kind]int{tc.want: 1}, Answers([]*history.Case{c}).Counts, string(second.Body))
	}
	rows := batch("u", "k", id1, id2).Records()[0]
	rows.Body = []byte(strings.Replace(string(rows.Body), `"orders"`, `"Orders"`, 1))
	require.Equal(t, map[Kind]int{Malformed: 1}, Answers([]*history.Case{heard("u", "k", rows)}).Counts)
}

// Whoever takes a payment says whether it is owed back, in the words of the contract.
func TestACallbackIsAnsweredAsTheContractSays(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]map[Kind]int{
		`{"effect":"applied","duplicate":false,"refund_owed":false}`: nil,
		`{"effect":"impossible","refund_owed":true}`:                 {RefundOwed: 1},
		`{"effect":"impossible","Refund_Owed":true}`:                 {Malformed: 1},
		`{"refund_owed":true,"refund_owed":false}`:                   {Malformed: 1},
		`{"refund_owed":"yes"}`:                                      {Malformed: 1},
		`{"refund_owed":null}`:                                       {Malformed: 1},
		`{}`:                                                         {Malformed: 1},
		``:                                                           {Malformed: 1},
	} {
		require.Equal(t, want, Answers([]*history.Case{heard("u", "k", created(id1), callback(body))}).Counts, body)
	}
}

// What the audit reads is named as exactly as what customers were answered.
func TestTheHTTPAuditReadsExactNames(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		list, request string
		want          map[Kind]int
		err           string
	}{
		"right":         {`{"orders":[%s]}`, `{"state":"succeeded"}`, nil, ""},
		"another list":  {`{"Orders":[%s]}`, `{"state":"succeeded"}`, map[Kind]int{Lost: 1, NoOrder: 1}, ""},
		"another state": {`{"orders":[%s]}`, `{"State":"succeeded"}`, map[Kind]int{NoRecord: 1}, ""},
		"two lists":     {`{"orders":[],"orders":[%s]}`, `{"state":"succeeded"}`, nil, "twice"},
		"two states":    {`{"orders":[%s]}`, `{"state":"failed","state":"succeeded"}`, nil, "twice"},
		"a number":      {`{"orders":[%s]}`, `{"state":2}`, nil, "state"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/api/orders" {
					_, _ = fmt.Fprintf(w, tc.list, created(id1).Body)
					return
				}
				_, _ = w.Write([]byte(tc.request))
			}))
			cases := []*history.Case{heard("u", "k1", created(id1))}
			truth, err := FromHTTP(t.Context(), client, map[string]string{"u": "t"}, cases)
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err)
				return
			}
			require.NoError(t, err)
			_, f := Audit(cases, truth, Scope{KeyPrefix: "k", OwnUsers: true})
			require.Equal(t, tc.want, f.Counts, f.List)
		})
	}
}
