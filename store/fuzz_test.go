package store

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

// FuzzMoney: an amount that comes out of a column is the one that was written into
// it, in whichever form the engine hands it over.
func FuzzMoney(f *testing.F) {
	for _, s := range []string{"0.00", "39.80", "999999999999.99", "-1.00", "1e2", "", "1.001", "01.00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var asText, asBytes, asHundredths money
		err := asText.Scan(text)
		require.Equal(t, err == nil, asBytes.Scan([]byte(text)) == nil)
		require.Equal(t, asText, asBytes)
		if err != nil {
			return
		}
		require.NoError(t, asHundredths.Scan(int64(asText.Amount)))
		require.Equal(t, asText, asHundredths)
		var again money
		require.NoError(t, again.Scan(asText.Append(nil)))
		require.Equal(t, asText, again)
	})
}

// FuzzInstant: a time that comes out of a column is the one that was written into
// it, in whichever form the engine keeps it and whatever zone it was given in; what
// is no time is an error.
func FuzzInstant(f *testing.F) {
	for _, ms := range []int64{0, 1, -1, 999, -62135596800000, 253402300799999, 1 << 62, -1 << 63} {
		f.Add(ms, ms%14*3600, "2026-11-30 09:00:00.000")
	}
	f.Fuzz(func(t *testing.T, ms, zone int64, text string) {
		at := time.UnixMilli(ms).In(time.FixedZone("", int(zone%86400)))
		for _, d := range []*dialect{mysqlDialect(serverInfo{}), sqliteDialect()} {
			var read, again instant
			require.NoError(t, read.Scan(d.instant(at)))
			require.Equal(t, ms, read.UnixMilli())
			require.Equal(t, time.UTC, read.Location())
			require.NoError(t, again.Scan(d.instant(read.Time)))
			require.Equal(t, read, again)
		}
		for _, other := range []any{text, []byte(text), float64(ms), nil} {
			kept := instant{at}
			require.Error(t, kept.Scan(other))
			require.Equal(t, instant{at}, kept)
		}
	})
}

// FuzzDeferred: a request that waits in the database is, when it is read again,
// the one that was accepted, down to its digest; and what somebody else wrote
// there is a valid command or an error.
func FuzzDeferred(f *testing.F) {
	f.Add("sku", int64(1), int64(100), "B-1", []byte(`{"operation":2,"lines":[{"SKU":"a"}]}`))
	f.Add("<&>\u2028\U0001f600", int64(1_000_000), int64(999_999_999_999), "\u00e9", []byte(`{`))
	f.Add("a\"\\/", int64(0), int64(-1), "", []byte(`null`))
	f.Fuzz(func(t *testing.T, sku string, quantity, amount int64, number string, content []byte) {
		key := pair{first: "alice", second: "k1"}
		lines := []order.Line{{SKU: sku, Quantity: quantity, Amount: order.Amount(amount), ExternalOrderNo: number}}
		if c, err := order.NewCommand(order.CreateBatch, key.first, order.Key(key.second), lines); err == nil {
			waiting, err := json.Marshal(deferredContent{c.Operation, c.Lines})
			require.NoError(t, err)
			again, err := readDeferred(key, waiting)
			require.NoError(t, err, "%s", waiting)
			require.Equal(t, c, again)
		}
		c, err := readDeferred(key, content)
		if err != nil {
			require.Nil(t, c)
			return
		}
		valid, err := order.NewCommand(c.Operation, c.UserID, c.Key, c.Lines)
		require.NoError(t, err)
		require.Equal(t, valid.Digest, c.Digest)
	})
}

// FuzzHosts: a DSN of one host is the driver's own; of several, each of them is
// what the driver makes of it alone.
func FuzzHosts(f *testing.F) {
	for _, dsn := range []string{
		"u:p@tcp(db:3306)/shop", "u:p@tcp(db1:3306,db2:3306)/shop?tls=true", "u:p@tcp(db1, db2 )/shop", "u:p@tcp(,db)/shop", "u:p@unix(/tmp/s.sock)/shop",
		"u:p(,)@tcp(a,b)/x", "u:@/)/@tcp(a)/x", "/", "()/", "u@tcp(:3306,b)/x", "@tcp([::1]:1,[::2]:1)/x", "u:p@tcp(a,b)/x?a=(b,c)/",
		"u:p@tcp(a,b)/x?strict=true",
	} {
		f.Add(dsn)
	}
	f.Fuzz(func(t *testing.T, dsn string) {
		before, list, after := splitAddress(dsn)
		require.Equal(t, dsn, before+list+after)
		h, err := parseHosts(dsn)
		if err != nil {
			return
		}
		addresses := strings.Split(list, ",")
		require.Len(t, h.each, len(addresses))
		for i, c := range h.each {
			alone, err := mysql.ParseDSN(before + strings.TrimSpace(addresses[i]) + after)
			require.NoError(t, err)
			require.Equal(t, alone.Addr, c.Addr)
			require.Equal(t, h.each[0].User, c.User)
			require.Equal(t, h.each[0].Passwd, c.Passwd)
			require.Equal(t, h.each[0].DBName, c.DBName)
		}
	})
}
