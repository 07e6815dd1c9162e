//go:build unix

package bench

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// lines reads a source through chunks, as LOAD DATA does.
func lines(t *testing.T, rows rowSource) [][]string {
	t.Helper()
	var all [][]string
	for {
		c := &chunk{rows: rows, left: 7}
		text, err := io.ReadAll(c)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			all = append(all, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
		}
		if c.ended {
			return all
		}
	}
}

func TestBothTablesTellTheSamePast(t *testing.T) {
	t.Parallel()
	for _, users := range []int{1, 7, 100} {
		p := newPast(50, users, time.Now())
		orders, records := lines(t, p.orders()), lines(t, p.records())
		require.Len(t, orders, 50)
		require.Len(t, records, 50)
		byID := map[string][]string{}
		for _, o := range orders {
			byID[o[0]] = o
		}
		for _, r := range records {
			o := byID[r[3]]
			require.Equal(t, o[1], r[0], "user")
			require.Equal(t, o[2], r[1], "key")
			require.Equal(t, o[6], r[6], "time")
			require.Contains(t, r[5], o[3], "SKU")
			delete(byID, r[3])
		}
		require.Empty(t, byID)
		// In the order of the primary keys, or the fill takes hours.
		require.True(t, slices.IsSortedFunc(orders, func(a, b []string) int { return strings.Compare(a[0], b[0]) }))
		require.True(t, slices.IsSortedFunc(records, func(a, b []string) int {
			return strings.Compare(a[0]+"\t"+a[1], b[0]+"\t"+b[1])
		}))
	}
}

func TestIndexesAreReadFromTheSchema(t *testing.T) {
	t.Parallel()
	x := parseIndexes("CREATE TABLE `orders` (\n  `order_id` binary(16) NOT NULL COMMENT 'KEY, of sorts',\n" +
		"  PRIMARY KEY (`order_id`),\n  UNIQUE KEY `uk_orders_key` (`user_id`,`idempotency_key`),\n  KEY `idx` (`user_id`),\n" +
		"  CONSTRAINT `fk` FOREIGN KEY (`user_id`) REFERENCES `users` (`user_id`) ON UPDATE CASCADE,\n" +
		"  CONSTRAINT `ck` CHECK ((`balance` >= 0))\n) ENGINE=InnoDB")
	require.Equal(t, []string{
		"ALTER TABLE orders DROP FOREIGN KEY `fk`",
		"ALTER TABLE orders DROP KEY `uk_orders_key`, DROP KEY `idx`",
	}, x.drop("orders"))
	require.Equal(t, []string{
		"ALTER TABLE orders ADD UNIQUE KEY `uk_orders_key` (`user_id`,`idempotency_key`), ADD KEY `idx` (`user_id`)",
		"ALTER TABLE orders ADD CONSTRAINT `fk` FOREIGN KEY (`user_id`) REFERENCES `users` (`user_id`) ON UPDATE CASCADE",
	}, x.add("orders", false))
	require.Equal(t, []string{"ALTER TABLE bare FORCE"}, indexes{}.add("bare", true))
	require.Empty(t, indexes{}.drop("bare"))
}
