//go:build unix

package bench

import "strings"

// Layers counts replays by the layer that gave them.
type Layers map[string]float64

// parseLayers reads the counts out of the gateway's metrics; a gateway that has
// no such metric gives none.
func parseLayers(metrics string) Layers {
	l := Layers{}
	for name, n := range parseGauges(metrics) {
		rest, replayed := strings.CutPrefix(name, `oncegate_decision_duration_seconds_count{kind="replayed",layer="`)
		if layer, ok := strings.CutSuffix(rest, `"}`); replayed && ok && isCount(n) {
			l[layer] = n
		}
	}
	return l
}

// share is how much of what came after before was given by a layer. It reports
// false when there is nothing to tell it from.
func (l Layers) share(before Layers, layer string) (float64, bool) {
	var all float64
	for name, n := range l {
		all += n - before[name]
	}
	if all == 0 {
		return 0, false
	}
	return (l[layer] - before[layer]) / all, true
}
