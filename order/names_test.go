package order_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

// TestNamesAreStable: dashboards and stored rows hold them.
func TestNamesAreStable(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"mysql", "redis", "process"}, []string{
		order.LayerLedger.String(), order.LayerRedis.String(), order.LayerProcess.String(),
	})
	require.Equal(t, []string{"none", "created", "replayed", "rejected", "reused", "in_progress", "accepted"}, []string{
		order.Kind(0).String(), order.Created.String(), order.Replayed.String(), order.Rejected.String(),
		order.Reused.String(), order.InProgress.String(), order.Accepted.String(),
	})
	require.Equal(t, []order.State{1, 2, 3}, []order.State{order.Processing, order.Succeeded, order.Failed})
}
