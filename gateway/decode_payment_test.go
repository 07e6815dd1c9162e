package gateway

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

const paid = `{"type":"payment.succeeded","data":{"order_id":"01992f3e-5c1d-7a6b-8f00-3b1f6c2d9e10","amount":"39.80","provider_reference":"pi_1"}}`

func TestAPaymentEventIsReadWhole(t *testing.T) {
	t.Parallel()
	m, err := decodePayment(paid, "msg_1")
	require.NoError(t, err)
	require.Equal(t, order.EventPaymentSucceeded, m.Type)
	require.Equal(t, "01992f3e-5c1d-7a6b-8f00-3b1f6c2d9e10", m.OrderID.String())
	require.Equal(t, order.Amount(39_80), m.Amount)
	require.Equal(t, "pi_1", m.ProviderReference)
	require.Equal(t, "msg_1", m.MessageID)
	require.Equal(t, "webhook", m.Consumer)
}

// The form of the digest is stored: another form would park every message that
// is delivered again after an update.
func TestTheDigestOfAPaymentEventIsForGood(t *testing.T) {
	t.Parallel()
	m, err := decodePayment(paid, "msg_1")
	require.NoError(t, err)
	require.Equal(t, "be2ab89bf327d4ac65029bc2f75657b3ad0e3e7508ed3443f5286fec02691e7b", hex.EncodeToString(m.Digest[:]))
	spelled, err := decodePayment(strings.NewReplacer(`"39.80"`, "39.8", ",", " ,\n", "pi_1", `\u0070i_1`).Replace(paid), "msg_2")
	require.NoError(t, err)
	require.Equal(t, m.Digest, spelled.Digest)
	for _, other := range []string{
		strings.Replace(paid, "succeeded", "failed", 1), strings.Replace(paid, "39.80", "39.81", 1),
		strings.Replace(paid, "pi_1", "pi_2", 1), strings.Replace(paid, "9e10", "9e11", 1),
	} {
		o, err := decodePayment(other, "msg_1")
		require.NoError(t, err)
		require.NotEqual(t, m.Digest, o.Digest)
	}
}

func notPayments() map[string][]string {
	all := []string{"type", "data.order_id", "data.amount", "data.provider_reference"}
	data := all[1:]
	in := func(member, value string) string {
		values := map[string]string{"order_id": `"01992f3e-5c1d-7a6b-8f00-3b1f6c2d9e10"`, "amount": `"39.80"`, "provider_reference": `"pi_1"`}
		values[member] = value
		b := `{"type":"payment.succeeded","data":{`
		for i, name := range []string{"order_id", "amount", "provider_reference"} {
			if i > 0 {
				b += ","
			}
			b += `"` + name + `":` + values[name]
		}
		return b + "}}"
	}
	cases := map[string][]string{
		``: {""}, `null`: {""}, `[]`: {""}, paid + "x": {""}, paid[:len(paid)-1]: {""},
		`{}`:                                     all,
		`{"type":null,"data":null}`:              all,
		`{"type":"x","data":{}}`:                 all,
		`{"type":7,"data":[]}`:                   {"type", "data"},
		`{"type":"payment.succeeded"}`:           data,
		strings.Replace(paid, "type", "Type", 1): {"Type", "type"},
		strings.Replace(paid, `"type"`, `"timestamp":1,"type"`, 1):                 {"timestamp"},
		strings.Replace(paid, `"amount"`, `"currency":"EUR","amount"`, 1):          {"data.currency"},
		strings.Replace(paid, `"amount"`, `"amount":"39.80","amount"`, 1):          {"data.amount"},
		strings.Replace(paid, `"data"`, `"data":{},"data"`, 1):                     {"data"},
		strings.Replace(paid, `"39.80"`, `39.8x`, 1):                               {"data.amount"},
		strings.Replace(paid, `"pi_1"`, `"\ud800"`, 1):                             {"data.provider_reference"},
		strings.Replace(paid, `"pi_1"`, `"pi_1" "x"`, 1):                           {"data"},
		strings.Replace(paid, `{"order_id"`, `{"order_id":"x","amount":-1,"x"`, 1): {"data.order_id", "data.amount", "data.x", "data.amount"},
	}
	for _, v := range []string{`null`, `""`, `7`, `"x"`, `"00000000-0000-0000-0000-000000000000"`, `"01992F3E-5C1D-7A6B-8F00-3B1F6C2D9E10"`} {
		cases[in("order_id", v)] = []string{"data.order_id"}
	}
	for _, v := range []string{`null`, `0`, `-1`, `1e2`, `"1e2"`, `39.801`, `39.800000000000004`, `"39,80"`, `true`, `{}`, `10000000000`, `99999999999999999999`} {
		cases[in("amount", v)] = []string{"data.amount"}
	}
	for _, v := range []string{`null`, `""`, `" r"`, `7`, `"a\nb"`, `"` + strings.Repeat("r", 129) + `"`} {
		cases[in("provider_reference", v)] = []string{"data.provider_reference"}
	}
	return cases
}

func TestWhatIsNotAPaymentEventIsRefusedWithItsPaths(t *testing.T) {
	t.Parallel()
	for body, paths := range notPayments() {
		_, err := decodePayment(body, "msg_1")
		var invalid *order.InvalidError
		require.ErrorAs(t, err, &invalid, body)
		var got []string
		for _, f := range invalid.Faults {
			got = append(got, f.Path)
		}
		require.ElementsMatch(t, paths, got, "%s: %v", body, err)
	}
}

func TestAMessageIDIsCheckedUnderItsHeadersName(t *testing.T) {
	t.Parallel()
	for _, id := range []string{strings.Repeat("m", 256), "\xff", " m"} {
		_, err := decodePayment(paid, id)
		var invalid *order.InvalidError
		require.ErrorAs(t, err, &invalid)
		require.Len(t, invalid.Faults, 1)
		require.Equal(t, "webhook-id", invalid.Faults[0].Path)
	}
}

// FuzzDecodePayment: whatever arrives, the decoder ends, and what it takes means
// the same to encoding/json.
func FuzzDecodePayment(f *testing.F) {
	f.Add(paid)
	for body := range notPayments() {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		m, err := decodePayment(body, "msg_1")
		if err != nil {
			var invalid *order.InvalidError
			if !errors.As(err, &invalid) || len(invalid.Faults) == 0 || len(invalid.Faults) > maxFaults {
				t.Fatalf("a refusal without a fault, or with too many: %v", err)
			}
			return
		}
		var want struct {
			Type string `json:"type"`
			Data struct {
				OrderID           string          `json:"order_id"`
				Amount            json.RawMessage `json:"amount"`
				ProviderReference string          `json:"provider_reference"`
			} `json:"data"`
		}
		dec := json.NewDecoder(bytes.NewReader([]byte(body)))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&want); err != nil {
			t.Fatalf("encoding/json refuses %q: %v", body, err)
		}
		amount := string(want.Data.Amount)
		if amount[0] == '"' {
			if err := json.Unmarshal(want.Data.Amount, &amount); err != nil {
				t.Fatal(err)
			}
		}
		sum, err := order.ParseAmount(amount)
		if err != nil || sum != m.Amount || sum == 0 {
			t.Fatalf("%q: amount %v of %q: %v", body, m.Amount, amount, err)
		}
		if string(m.Type) != want.Type || m.OrderID.String() != want.Data.OrderID || m.ProviderReference != want.Data.ProviderReference || m.OrderID.IsZero() {
			t.Fatalf("%q: %+v, encoding/json has %+v", body, m, want)
		}
	})
}
