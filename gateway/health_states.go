package gateway

import "context"

// States returns "ok" or "failing" by the name of the check, as probes are told.
func (h *Health) States(ctx context.Context) map[string]string {
	states := map[string]string{}
	for i, err := range h.round(ctx) {
		states[h.o.Checks[i].Name] = healthOK
		if err != nil {
			states[h.o.Checks[i].Name] = healthFailing
		}
	}
	return states
}
