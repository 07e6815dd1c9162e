package gateway_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
)

// newLiveKit is a kit on a listener of its own, with its limits and time-outs: an
// hour each, unless the test has others, for a machine may stand still for longer
// than the default of the shortest.
func newLiveKit(t testing.TB, change ...func(*gateway.Options)) *kit {
	t.Helper()
	patient := func(o *gateway.Options) {
		o.Timeouts = gateway.Timeouts{ReadHeader: time.Hour, Read: time.Hour, Write: time.Hour, Idle: time.Hour}
	}
	k := newKit(t, append([]func(*gateway.Options){patient}, change...)...)
	k.listen()
	return k
}

// listen serves the gateway on that listener, and has the kit ask there.
func (k *kit) listen() {
	k.t.Helper()
	require.NoError(k.t, k.server.Listen(context.Background()))
	served := make(chan error, 1)
	go func() { served <- k.server.Serve() }()
	k.t.Cleanup(func() {
		// Connections that a test holds open must not hold it up.
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = k.server.Shutdown(ctx)
		require.NoError(k.t, <-served)
	})
	k.url = "http://" + k.server.Addr().String()
}
