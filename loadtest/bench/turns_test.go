//go:build unix

package bench

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Whoever always goes second pays for what the other has left behind.
func TestEachSideGoesFirstInEveryOtherRound(t *testing.T) {
	t.Parallel()
	var order []string
	goes := func(name string) *target {
		return &target{worker: func(context.Context, int) (worker, error) {
			order = append(order, name)
			return worker{step: tick, close: func() {}}, nil
		}}
	}
	s := &stage{c: &Config{Rounds: 4, Window: 500 * time.Millisecond, Progress: io.Discard}}
	row, err := s.takeTurns(t.Context(), &path{unit: rate}, goes("a"), goes("b"), 1)
	for range 4 { // longer turns, as long as the machine is too busy for a step in one
		if err == nil || !strings.Contains(err.Error(), "nothing was answered") {
			break
		}
		order, s.c.Window = nil, 4*s.c.Window
		row, err = s.takeTurns(t.Context(), &path{unit: rate}, goes("a"), goes("b"), 1)
	}
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "b", "a", "a", "b", "b", "a"}, order)
	require.Len(t, row.Ratios, 4)
	require.Len(t, row.Baseline.Values, 4)
}
