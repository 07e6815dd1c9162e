//go:build unix

package bench

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func good() Config {
	return Config{Rounds: 1, Window: time.Second, Connections: []int{16, 64, 256}, Gateway: "oncegate", Keys: 1, Open: 1, Clients: 1}
}

func TestWhatCannotBeMeasuredIsRefused(t *testing.T) {
	t.Parallel()
	c := good()
	require.NoError(t, c.Check())
	for says, change := range map[string]func(*Config){
		"one round":          func(c *Config) { c.Rounds = 0 },
		"0.05 s":             func(c *Config) { c.Window = time.Millisecond },
		"ascend":             func(c *Config) { c.Connections = []int{64, 16} },
		"and ascend":         func(c *Config) { c.Connections = []int{16, 16} },
		"1h0m0s":             func(c *Config) { c.Window = 2 * time.Hour },
		"positive":           func(c *Config) { c.Connections = []int{0} },
		"at most 400":        func(c *Config) { c.Connections = []int{401} },
		"records":            func(c *Config) { c.Records = -1 },
		"not with another":   func(c *Config) { c.Against, c.Rounds, c.Records = "old", 3, 5 },
		"5000000 keys":       func(c *Config) { c.Keys = 5_000_001 },
		"open connections":   func(c *Config) { c.Open = 0 },
		"clients at once":    func(c *Config) { c.Clients = 0 },
		`path "memory"`:      func(c *Config) { c.Against, c.Rounds, c.Paths = "old", 3, []string{"memory"} },
		"three rounds":       func(c *Config) { c.Against = "old" },
		`unknown path "neu"`: func(c *Config) { c.Paths = []string{"neu"} },
	} {
		c := good()
		change(&c)
		require.ErrorContains(t, c.Check(), says)
	}
}

func TestPathsAreThoseThatWereAskedFor(t *testing.T) {
	t.Parallel()
	c := good()
	require.Equal(t, []string{"new-http", "new-sql", "dup-redis", "dup-process", "idle"}, ids(c.chosen()))
	c.Records = 1000
	require.Contains(t, ids(c.chosen()), "records")
	c.Paths = []string{"idle", "new-sql"}
	require.Equal(t, []string{"new-sql", "idle"}, ids(c.chosen()))
	c.Paths = []string{"hot-user", "gateways-4"}
	require.Equal(t, []string{"hot-user", "gateways-4"}, ids(c.chosen()))
	c.Paths = []string{"storm", "memory"}
	require.NoError(t, c.Check())
	require.Empty(t, c.chosen(), "they compare nothing")
	c = good()
	c.Against = "old"
	require.Equal(t, []string{"new", "dup-redis", "dup-process"}, ids(c.chosen()))
}

func TestTargetsAreAskedForWhereTheDesignAsks(t *testing.T) {
	t.Parallel()
	c := good()
	for _, p := range c.chosen() {
		switch p.id {
		case "new-http", "new-sql":
			require.Nil(t, p.targetAt(64))
			require.NotNil(t, p.targetAt(256))
		default:
			require.NotNil(t, p.targetAt(p.connections[0]), p.id)
		}
	}
}

func TestSettingsOfTheUserDoNotReachTheGateway(t *testing.T) {
	t.Setenv("ONCEGATE_LEDGER__WORKERS", "64")
	env := environment(settings{"log.level": "warn", "mysql.dsn": "d"})
	require.NotContains(t, env, "ONCEGATE_LEDGER__WORKERS=64")
	require.Contains(t, env, "ONCEGATE_LOG__LEVEL=warn")
	require.Contains(t, env, "ONCEGATE_MYSQL__DSN=d")
	require.True(t, slices.Contains(env, "PATH="+os.Getenv("PATH")))
}
