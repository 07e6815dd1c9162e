package configs

import "strings"

// InvalidError lists everything that is wrong with a configuration.
type InvalidError struct{ Faults []string }

func (e *InvalidError) Error() string {
	if len(e.Faults) == 1 {
		return "configuration: " + e.Faults[0]
	}
	return "configuration:\n  - " + strings.Join(e.Faults, "\n  - ")
}
