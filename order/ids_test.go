package order_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

func TestIDsOfOneCommandAscendInRowOrder(t *testing.T) {
	t.Parallel()
	for range 200 {
		ids := order.NewIDs(time.Now(), order.MaxLines)
		for i, id := range ids {
			require.Equal(t, byte(0x70), id[6]&0xf0, "version 7")
			require.Equal(t, byte(0x80), id[8]&0xc0, "the RFC's variant")
			if i > 0 {
				require.Less(t, ids[i-1].String(), id.String())
			}
		}
	}
}
