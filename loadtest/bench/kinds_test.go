//go:build unix

package bench

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestACeilingsFlawsAreNoted(t *testing.T) {
	t.Parallel()
	k := kind{name: "replayed", layer: layerRedis}
	before := Layers{layerRedis: 100, layerProcess: 50}
	for name, c := range map[string]struct {
		sample Sample
		after  Layers
		notes  []string
	}{
		"none":         {Sample{Right: 1000}, Layers{layerRedis: 1100, layerProcess: 50}, nil},
		"wrong answer": {Sample{Right: 999, Wrong: 1, fault: errors.New("reset")}, Layers{layerRedis: 1099, layerProcess: 50}, []string{"replayed, closed loop: 1 of 1000 answers were wrong, such as: reset"}},
		"other layer":  {Sample{Right: 1000}, Layers{layerRedis: 850, layerProcess: 300}, []string{"replayed, closed loop: only 75 % came from there"}},
	} {
		var sheet Sheet
		k.remark(&sheet, &c.sample, before, c.after)
		require.Equal(t, c.notes, sheet.Notes, name)
	}
}
