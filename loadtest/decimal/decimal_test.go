package decimal

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNumbersHaveThePeoplesForm(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{"0": 0, "60": 60, "-5": -5, "+10": 10, "99.9": 99.9, "0.000000001": 1e-9} {
		got, err := Parse(text)
		require.NoError(t, err, text)
		require.InDelta(t, want, got, 1e-12, text)
	}
	for _, text := range []string{"", " 1", "1 ", "1.", ".5", "1e3", "0x10", "NaN", "Inf", "-Inf", "1_000", "1,5", "--1", "1\n", "1234567890123456"} {
		_, err := Parse(text)
		require.Error(t, err, text)
	}
}

func TestAmountsAreReadExactly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"12.34": 1234, "12.3": 1230, "12": 1200, "0.01": 1, "9999999999.99": 999999999999} {
		got, err := Hundredths(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"", "1.234", "x", "1e2", "1.", "+1.00", "-1.00", "1.-5", ".5", "1 ", "1\n"} {
		_, err := Hundredths(text)
		require.Error(t, err, text)
	}
}
