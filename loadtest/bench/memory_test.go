//go:build unix

package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAReceiptDoesNotPayForWhatTheFirstRequestsLeave(t *testing.T) {
	t.Parallel()
	of := func(live, receipts float64) *remembering {
		return &remembering{footprint{live: live}, gauges{"oncegate_filter_local_receipts": receipts}}
	}
	warm := of(5_000_000, 1000) // a process, its pools, and receipts of 300 bytes
	require.Equal(t, once(300), of(5_300_000, 2000).each(warm))
	require.Equal(t, untold(), of(5_100_000, 1000).each(warm), "there are no more")
}
