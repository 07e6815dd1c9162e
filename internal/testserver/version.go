//go:build unix

package testserver

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// version is major, minor, patch.
type version [3]int

func (v version) String() string { return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2]) }

func (v version) before(other version) bool { return slices.Compare(v[:], other[:]) < 0 }

// parseVersion reads "9.7.4". It is given what a pattern matched as digits, so
// only a number too large for an int is left to go wrong.
func parseVersion(text string) (version, error) {
	var v version
	parts := strings.SplitN(text, ".", len(v))
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil {
			return version{}, fmt.Errorf("version %q: %w", text, err)
		}
		v[i] = n
	}
	return v, nil
}
