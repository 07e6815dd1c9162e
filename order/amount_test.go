package order_test

import (
	"errors"
	"math/big"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/oncegate/oncegate/order"
)

func TestParseAmountReadsPlainDecimals(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]order.Amount{
		"0": 0, "0.0": 0, "0.00": 0, "0.01": 1, "0.1": 10, "0.10": 10, "1": 100, "19.9": 19_90, "19.90": 19_90,
		"100": 100_00, "9999999999.99": order.MaxAmount, "999999999999.99": order.MaxBalance, "999999999999": 99_999_999_999_900,
	} {
		got, err := order.ParseAmount(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		got, err = order.ParseAmount([]byte(text))
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

func TestParseAmountRefusesEverythingElse(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", " ", "-1", "+1", "-0", "1e2", "1E2", "1e400", "01", "00", "00.1", ".5", "1.", ".", "1.2.3", "1,00", "1_000",
		" 1", "1 ", "1\n", "0x10", "NaN", "Infinity", "null", "１", "1.a", "1.0a", "1.1e1", "1.-1", "1\x00", "\"1\"",
		"1.000", "8.165", "10.285", "0.001", "1.0000000000000000000000",
		"1000000000000", "9223372036854775807", "92233720368547758.08", "18446744073709551616", "99999999999999999999999999999",
	} {
		got, err := order.ParseAmount(text)
		require.Error(t, err, text)
		require.Zero(t, got, text)
		require.NotContains(t, err.Error(), "165", "the value is not repeated")
	}
}

func TestAmountPrintsTwoPlaces(t *testing.T) {
	t.Parallel()
	for want, a := range map[string]order.Amount{
		"0.00": 0, "0.01": 1, "0.10": 10, "1.00": 100, "39.80": 3980, "9999999999.99": order.MaxAmount,
		"999999999999.99": order.MaxBalance, "-0.05": -5, "-12.30": -1230,
	} {
		require.Equal(t, want, a.String())
		require.Equal(t, "x"+want, string(a.Append([]byte("x"))))
	}
}

func TestAmountsSurviveTheirText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		a := order.Amount(rapid.Int64Range(0, int64(order.MaxBalance)).Draw(rt, "amount"))
		back, err := order.ParseAmount(a.String())
		require.NoError(rt, err)
		require.Equal(rt, a, back)
	})
}

var decimalForm = regexp.MustCompile(`^(0|[1-9][0-9]*)(\.[0-9]{1,2})?$`)

// exactHundredths is ParseAmount said again, with big numbers.
func exactHundredths(s string) (order.Amount, error) {
	if !decimalForm.MatchString(s) {
		return 0, errors.New("not a plain decimal")
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return 0, errors.New("not a number")
	}
	r.Mul(r, big.NewRat(100, 1))
	if r.Cmp(big.NewRat(int64(order.MaxBalance), 1)) > 0 {
		return 0, errors.New("too large")
	}
	return order.Amount(r.Num().Int64()), nil
}

func FuzzParseAmount(f *testing.F) {
	for _, seed := range []string{
		"0", "0.01", "19.9", "19.90", "999999999999.99", "1000000000000", "1e2", "-1", "01", "1.", ".1", "1.234",
		"99999999999999999999", "1.9x", "\xff", "1.0\x00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := order.ParseAmount(s)
		want, wantErr := exactHundredths(s)
		require.Equal(t, wantErr == nil, err == nil, "%q: %v, want %v", s, err, wantErr)
		require.Equal(t, want, got, "%q", s)
		if err != nil {
			return
		}
		again, err := order.ParseAmount(got.String())
		require.NoError(t, err)
		require.Equal(t, got, again)
	})
}
