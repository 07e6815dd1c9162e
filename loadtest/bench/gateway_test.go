//go:build unix

package bench

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// An interruption may come before there is a database.
func TestAGatewayThatCannotBeDeployedIsAnError(t *testing.T) {
	t.Parallel()
	s, err := newStage(&Config{MySQL: "root@tcp(127.0.0.1:1)/", Redis: "127.0.0.1:1"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.close()) })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.deploy(ctx, "oncegate", nil, nil, nil)
	require.ErrorIs(t, err, context.Canceled)
}
