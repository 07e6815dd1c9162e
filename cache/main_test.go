package cache

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/oncegate/oncegate/internal/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(settled{testserver.Stopping(m)}) }

// settled gives what the tests leave behind the time to end: a pool of the
// Redis client that could not connect sleeps for a second before it sees that
// it was closed.
type settled struct{ *testserver.Suite }

func (s settled) Run() int {
	code := s.Suite.Run()
	for end := time.Now().Add(5 * time.Second); goleak.Find() != nil && time.Now().Before(end); {
		continue // Find itself waits a little, longer each time
	}
	return code
}
