package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

const valid = `{"sku":"potsticker","quantity":2,"amount":"39.80","external_order_no":"B20260827-001"}`

// decoded returns the command of a body, and the faults as "path: reason".
func decoded(t testing.TB, d draft, op order.Operation) (*order.Command, []string) {
	t.Helper()
	c, err := d.command(op, "alice", "k")
	if err == nil {
		return c, nil
	}
	var invalid *order.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.NotEmpty(t, invalid.Faults)
	faults := make([]string, len(invalid.Faults))
	for i, f := range invalid.Faults {
		faults[i] = f.Path + ": " + f.Reason
	}
	return nil, faults
}

func TestASpellingDoesNotChangeTheDigest(t *testing.T) {
	t.Parallel()
	want, faults := decoded(t, decodeOrder(valid), order.CreateOrder)
	require.Empty(t, faults)
	require.Equal(t, order.Line{SKU: "potsticker", Quantity: 2, Amount: 3980, ExternalOrderNo: "B20260827-001"}, want.Lines[0])
	for _, body := range []string{
		`{"external_order_no":"B20260827-001","amount":"39.80","quantity":2,"sku":"potsticker"}`,
		"\r\n{ \"sku\" :\t\"potsticker\",\n\"quantity\": 2 , \"amount\":39.8,\"external_order_no\":\"B20260827-001\" }  ",
		`{"sku":"potsticker","quantity":2,"amount":39.80,"external_order_no":"B20260827-001"}`,
		`{"\u0073ku":"p\u006ftsticker","quantity":2,"amount":"39\u002e8","external_order_no":"B20260827\u002D001"}`,
	} {
		got, faults := decoded(t, decodeOrder(body), order.CreateOrder)
		require.Empty(t, faults, body)
		require.Equal(t, want.Digest, got.Digest, body)
	}
}

func TestTextsComeThroughUnchanged(t *testing.T) {
	t.Parallel()
	for spelled, want := range map[string]string{
		`𣿗 🥟`:               "𣿗 🥟",
		`\ud83e\udd5f`:      "🥟",
		`a\/b\"c\\d`:        `a/b"c\d`,
		`\ufffd`:            "\ufffd",
		`<&>`:               "<&>",
		`9007199254740993`:  "9007199254740993",
		`{}`:                "{}",
		`caf\u00e9`:         "café",
		`\uD834\uDD1E clef`: "\U0001D11E clef",
	} {
		c, faults := decoded(t, decodeOrder(`{"sku":"`+spelled+`","quantity":1,"amount":1}`), order.CreateOrder)
		require.Empty(t, faults, spelled)
		require.Equal(t, want, c.Lines[0].SKU)
	}
}

func TestNullIsAbsentAndEmptyIsNot(t *testing.T) {
	t.Parallel()
	bare, _ := decoded(t, decodeOrder(`{"sku":"a","quantity":1,"amount":1}`), order.CreateOrder)
	null, _ := decoded(t, decodeOrder(`{"sku":"a","quantity":1,"amount":1,"external_order_no":null}`), order.CreateOrder)
	require.Equal(t, bare.Digest, null.Digest)
	_, faults := decoded(t, decodeOrder(`{"sku":null,"quantity":1,"amount":1,"external_order_no":""}`), order.CreateOrder)
	require.Equal(t, []string{
		"external_order_no: must not be empty: leave it out instead",
		"sku: is required and must not be empty",
	}, faults)
}

// refused are single orders that must not be taken, with the paths to name.
func refused() map[string][]string {
	order := func(member, value string) string {
		m := map[string]string{"sku": `"a"`, "quantity": "1", "amount": `"1"`}
		m[member] = value
		return `{"sku":` + m["sku"] + `,"quantity":` + m["quantity"] + `,"amount":` + m["amount"] + `}`
	}
	cases := map[string][]string{
		``: {""}, ` `: {""}, `null`: {""}, `[]`: {""}, `"a"`: {""}, `7`: {""}, "\ufeff" + valid: {""},
		valid + `{}`: {""}, valid + valid: {""}, valid + `}`: {""}, valid + "\x00": {""}, valid + " x": {""},
		`{"sku":"a","quantity":1,"amount":1,}`: {""}, `{"sku":"a" "quantity":1}`: {""}, `{,}`: {""},
		`{"sku"}`: {""}, `{sku:"a"}`: {""}, `{'sku':"a"}`: {""}, `{"sku":"a","quantity":1,"amount":1`: {""},
		`{"sku":`: {"sku"}, `{"sku":"a`: {"sku"}, `{"sku":"a\`: {"sku"}, `{"sku":"a\u00`: {"sku"},
		`{"sku":"a\x"`: {"sku"}, `{"sku":"a\u00zz"`: {"sku"}, "{\"sku\":\"a\nb\"}": {"sku"},
		"{\"s\xffku\":1}": {""}, `{"\ud800":1}`: {""},
		`{}`: {"sku", "quantity", "amount"}, `{"quantity":true,"amount":[{}],"sku":{"a":[1,2]}}`: {"quantity", "amount", "sku"},
		`{"SKU":"a","quantity":1,"amount":1}`:                                                                     {"SKU", "sku"},
		`{"sku":"a","quantity":1,"amount":1,"Amount":100}`:                                                        {"Amount"},
		`{"sku":"a","quantity":1,"amount":1,"amount":100}`:                                                        {"amount"},
		`{"sku":null,"sku":"a","quantity":1,"amount":1}`:                                                          {"sku", "sku"},
		`{"sku":"a","quantity":1,"amount":1,"user_id":"eve","x":{"y":[null,true,false,1.5e3,"s"]}}`:               {"user_id", "x"},
		`{"sku":"a","quantity":1,"amount":1,"x":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`:     {"x"},
		`{"sku":"a","quantity":1,"amount":1,"x":` + strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100): {"x"},
	}
	for _, v := range []string{
		"1.0", "1e0", "1E0", "-0", "-1", "0", "1e400", "1.5", `"1"`, "true", "1000001", "9223372036854775808",
		"99999999999999999999999", "[]", "{}", "01", "+1", "1x", "NaN", "Infinity", "0x10", ".5", "-", "1.", "1e", "1_000",
	} {
		cases[order("quantity", v)] = []string{"quantity"}
	}
	for _, v := range []string{
		"8.165", "10.285", "1e2", `"1e2"`, "-1", `"-1"`, "0", `"0.00"`, `"+1"`, `"01"`, `" 1"`, `"1 "`, `"1."`, `".5"`, `""`, `"NaN"`,
		`"1,5"`, "10000000000", `"99999999999999999999"`, "1e400", "NaN", "01", "0.001", "true", "[1]", `"1.000"`, `"１"`,
	} {
		cases[order("amount", v)] = []string{"amount"}
	}
	for _, v := range []string{
		`"\ud800"`, `"\udfff"`, `"\ud800\ud800"`, `"\ud83ex"`, `"\ud83e\n"`, "\"\xff\xfe\"", "\"\xed\xa0\x80\"", `"\u0000"`, `"a\nb"`,
		`" a"`, `"a "`, `""`, `"` + strings.Repeat("é", 65) + `"`, "7",
	} {
		cases[order("sku", v)] = []string{"sku"}
	}
	return cases
}

func TestWhatIsNotExactlyAnOrderIsRefusedWithItsPath(t *testing.T) {
	t.Parallel()
	for body, paths := range refused() {
		d := decodeOrder(body)
		_, err := d.command(order.CreateOrder, "alice", "k")
		var invalid *order.InvalidError
		require.ErrorAs(t, err, &invalid, body)
		var got []string
		for _, f := range invalid.Faults {
			got = append(got, f.Path)
		}
		require.Subset(t, paths, got, "%s: %v", body, err)
		require.Subset(t, got, paths, "%s: %v", body, err)
	}
}

func TestFaultsAreBounded(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`{"orders":[`)
	for i := range 500 {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"sku":7,"` + strings.Repeat("é", 500) + `":1}`)
	}
	b.WriteString(`]}`)
	_, err := decodeBatch(b.String(), 500).command(order.CreateBatch, "alice", "k")
	var invalid *order.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Len(t, invalid.Faults, maxFaults)
	for _, f := range invalid.Faults {
		require.Less(t, len(f.Path), 100)
		require.True(t, utf8.ValidString(f.Path))
	}
	_, err = decodeBatch(`{"orders":[`+strings.Repeat(`{},`, 300)+`{}]}`, 500).command(order.CreateBatch, "alice", "k")
	require.ErrorAs(t, err, &invalid)
	require.LessOrEqual(t, len(invalid.Faults), 2000)
}

func TestABatchNamesRowsAndBounds(t *testing.T) {
	t.Parallel()
	for body, want := range map[string][]string{
		`{}`:                       {"orders: must have at least one row"},
		`{"orders":[]}`:            {"orders: must have at least one row"},
		`{"orders":null}`:          {"orders: must have at least one row"},
		`{"orders":{}}`:            {"orders: must be an array"},
		`{"orders":[{},{},{},{}]}`: {"orders: must have at most 3 rows"},
		`{"orders":[{"sku":"a","quantity":1,"amount":1,"external_order_no":"1"},{"sku":"\ud800"`: {"orders[1].sku: has a lone surrogate"},
		`{"orders":[{"sku":"a","quantity":1,"amount":1}]}`:                                       {"orders[0].external_order_no: is required and must not be empty"},
		`{"orders":[{"sku":"a","quantity":1,"amount":1,"external_order_no":"1"} {}]}`:            {"orders: is not valid JSON: a comma or the end is missing"},
	} {
		_, faults := decoded(t, decodeBatch(body, 3), order.CreateBatch)
		require.Equal(t, want, faults, body)
	}
}

func TestAdminBodies(t *testing.T) {
	t.Parallel()
	balance, err := decodeBalance(`{"balance":"100.00"}`)
	require.NoError(t, err)
	require.Equal(t, order.Amount(10000), balance)
	balance, err = decodeBalance(`{"balance":0}`)
	require.NoError(t, err)
	require.Zero(t, balance)
	available, err := decodeAvailable(`{"available":100}`)
	require.NoError(t, err)
	require.Equal(t, int64(100), available)
	for _, body := range []string{`{}`, `{"available":null}`, `{"available":-1}`, `{"available":1000000001}`, `{"available":1.0}`, `{"available":1}x`, `{"available":1,"available":1}`, `{"available":99999999999999999999}`} {
		_, err := decodeAvailable(body)
		require.Error(t, err, body)
	}
	for _, body := range []string{`{}`, `{"balance":"-1"}`, `{"balance":1.001}`, `{"balance":1,"x":2}`} {
		_, err := decodeBalance(body)
		require.Error(t, err, body)
	}
}

// FuzzDecodeOrder: whatever arrives, the decoder ends, and what it takes means
// the same to encoding/json.
func FuzzDecodeOrder(f *testing.F) {
	f.Add(valid)
	for body := range refused() {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		c, err := decodeOrder(body).command(order.CreateOrder, "alice", "k")
		if err != nil {
			var invalid *order.InvalidError
			if !errors.As(err, &invalid) || len(invalid.Faults) == 0 {
				t.Fatalf("a refusal without a fault: %v", err)
			}
			return
		}
		var want struct {
			SKU             string          `json:"sku"`
			Quantity        int64           `json:"quantity"`
			Amount          json.RawMessage `json:"amount"`
			ExternalOrderNo string          `json:"external_order_no"`
		}
		dec := json.NewDecoder(bytes.NewReader([]byte(body)))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&want); err != nil {
			t.Fatalf("encoding/json refuses %q: %v", body, err)
		}
		amount := string(want.Amount)
		if amount[0] == '"' {
			if err := json.Unmarshal(want.Amount, &amount); err != nil {
				t.Fatal(err)
			}
		}
		got := c.Lines[0]
		if got.SKU != want.SKU || got.Quantity != want.Quantity || got.ExternalOrderNo != want.ExternalOrderNo {
			t.Fatalf("%q: %+v, encoding/json has %+v", body, got, want)
		}
		if n, err := strconv.ParseFloat(amount, 64); err != nil || int64(n*100+.5) != int64(got.Amount) {
			t.Fatalf("%q: amount %v of %q", body, got.Amount, amount)
		}
	})
}

// FuzzSkip: the grammar is that of encoding/json, but for depth, UTF-8 and
// lone surrogates.
func FuzzSkip(f *testing.F) {
	for _, s := range []string{`{}`, `[1,2.5e-3,"a\u00e9",null,true,false,{"a":[]}]`, `[1,]`, `01`, `"\ud83e\udd5f"`, ` 1 `, `nullx`, `-`, `[[`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		sc := scanner{s: s}
		sc.skip(0)
		sc.space()
		ok := sc.fault == "" && sc.i == len(s)
		if ok && !json.Valid([]byte(s)) {
			t.Fatalf("took %q", s)
		}
		if !ok && json.Valid([]byte(s)) && utf8.ValidString(s) && !strings.Contains(s, `\u`) && strings.Count(s, "[")+strings.Count(s, "{") < maxDepth {
			t.Fatalf("refused %q: %s", s, sc.fault)
		}
	})
}

func BenchmarkDecodeOrder(b *testing.B) {
	b.ReportAllocs()
	body := []byte(valid)
	for b.Loop() {
		if d := decodeOrder(string(body)); len(d.faults) > 0 {
			b.Fatal(d.faults)
		}
	}
}
