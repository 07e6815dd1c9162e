//go:build unix

package consumer_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/oncegate/oncegate/internal/testserver"
)

// TestMain runs the tests, or, in a process that one of them has started, the
// consumer that is to be killed.
func TestMain(m *testing.M) {
	if role := os.Getenv(victimRole); role != "" {
		beVictim(role)
		return
	}
	meters := goleak.IgnoreAnyFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick") // sarama's, one for the process
	// Watermill's, where its connection breaks while it is closed: it then waits for
	// another, which nobody makes. A process ends when it has closed its own.
	reconnecting := goleak.IgnoreAnyFunction("github.com/ThreeDotsLabs/watermill-amqp/v3/pkg/amqp.(*ConnectionWrapper).handleConnectionClose")
	goleak.VerifyTestMain(testserver.Settling(m, meters, reconnecting), meters, reconnecting)
}
