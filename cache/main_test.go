package cache

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/oncegate/oncegate/internal/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testserver.Settling(m)) }
