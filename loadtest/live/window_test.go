package live

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/loadtest/measure"
)

// No answer is not one that took no time.
func TestASecondWithoutAnswersHasNoTimes(t *testing.T) {
	t.Parallel()
	silent, busy := snapshot(time.Second, 0, 0), snapshot(time.Second, 5, 0)
	busy.Window = measure.Window{N: 5, P50: 3 * time.Millisecond, P99: 4 * time.Millisecond, Max: 5 * time.Millisecond}
	var line bytes.Buffer
	NewPlain(&line).Show(silent)
	require.Contains(t, line.String(), "p50 –  p99 –")
	line.Reset()
	NewPlain(&line).Show(busy)
	require.Contains(t, line.String(), "p50 3.00ms  p99 4.00ms")

	m := newModel("mixed", func() {})
	m.Update(silent)
	require.NotContains(t, m.draw(), "0µs")
	m.Update(busy)
	require.Contains(t, m.draw(), "5.00ms")
}
