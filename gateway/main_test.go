package gateway_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/oncegate/oncegate/internal/testserver"
)

// TestMain starts no server, but net/http keeps a connection that it answered with
// an error for half a second, so that the answer is not lost.
func TestMain(m *testing.M) { goleak.VerifyTestMain(testserver.Settling(m)) }
