package gateway_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

// An honoured wait is told whatever the answer is. The document must name the
// header everywhere; do holds the answers against it.
func TestTheDocumentKnowsAWaitThatWasHonoured(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	wait := with("Prefer", "wait=5")
	check := func(status int, r reply) {
		t.Helper()
		require.Equal(t, status, r.status, r.body)
		require.Equal(t, "wait=5", r.header.Get("Preference-Applied"))
	}
	check(http.StatusForbidden, k.do(http.MethodPost, "/api/orders", plain, as("nobody"), key("k1"), wait))
	for status, cause := range map[int]error{
		http.StatusServiceUnavailable:  order.ErrUnavailable,
		http.StatusInternalServerError: order.ErrInternal,
	} {
		k.ledger.SetFault(func(*order.Command) error { return order.Undecided(order.OutcomeNotCommitted, cause) })
		check(status, k.post(plain, key(fmt.Sprintf("order-%d", status)), wait))
		check(status, k.batch(two("1", "2"), key(fmt.Sprintf("batch-%d", status)), wait))
	}
}

func TestTheDocumentKnowsTheHeadersOfAStream(t *testing.T) {
	t.Parallel()
	r := newWatched(t).ask(here, http.MethodHead, "/admin/v1/events", "")
	require.Equal(t, http.StatusOK, r.status)
	require.Equal(t, "no", r.header.Get("X-Accel-Buffering"))
}
