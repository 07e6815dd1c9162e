package decimal

import (
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzHundredths: an amount is exact, and is written again as the same number.
func FuzzHundredths(f *testing.F) {
	for _, s := range []string{"1000.00", "0", "0.1", "00.01", "999999999999999.99", "-1", "+1", "1.", ".1", "1e2", "1.001", "1\n", "\u0661"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := Hundredths(s)
		if err != nil {
			require.Zero(t, n)
			return
		}
		want, ok := new(big.Rat).SetString(s)
		require.True(t, ok, s)
		require.Zero(t, want.Cmp(big.NewRat(n, 100)), s)
		again, err := Hundredths(Text(n))
		require.NoError(t, err)
		require.Equal(t, n, again)
		_, err = Parse(s)
		require.NoError(t, err, "every amount is a number")
	})
}
