package crashpoint

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A point that no list has would never be tested.
func TestEveryPointIsInAList(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("points.go")
	require.NoError(t, err)
	listed := slices.Concat(OfACreatedOrder(), OfARefusedOrder(), OfAnOrderWithoutAnAccount())
	named := regexp.MustCompile(`Point = "([a-z-]+)"`).FindAllStringSubmatch(string(source), -1)
	require.NotEmpty(t, named)
	for _, name := range named {
		require.Contains(t, listed, Point(name[1]))
	}
}
