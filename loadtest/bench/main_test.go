//go:build unix

package bench

import (
	"testing"

	"github.com/oncegate/oncegate/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }
