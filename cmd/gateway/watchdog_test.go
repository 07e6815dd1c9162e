package main

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A look that fails once is followed by another, well within the manager's patience.
func TestOneLookThatFailsEndsNoGateway(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	s := supervisor{socket: m.socket, watchdog: 10 * time.Second}
	ctx, cancel := context.WithCancel(t.Context())
	var looks []time.Time
	s.signsOfLife(ctx, slog.New(slog.DiscardHandler), func(context.Context) error {
		if looks = append(looks, time.Now()); len(looks) == 1 {
			return errors.New("it is busy")
		}
		cancel()
		return nil
	})
	require.Less(t, looks[1].Sub(looks[0]), s.watchdog*2/5)
}
