//go:build unix

package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Config is one bench.
type Config struct {
	Rounds      int           // turns of each side, for each number of connections
	Window      time.Duration // that is measured in one turn
	Connections []int         // ascending
	Records     int64         // rows for the path with a full table; 0 leaves it out
	Paths       []string      // the ids of paths to measure; none: all
	Profiles    string        // directory for a profile of the gateway on each path; "": none is made

	Keys    int // of the memory path: orders whose receipts are in Redis
	Open    int // of the memory path: connections that are open and idle
	Clients int // of the storm: that ask for one key at once

	Gateway string // the program under test
	Against string // another build of it to compare with, in place of the baselines

	MySQL string // DSN of an administrator of a private server, to no database
	Redis string // address of a private server
	// Outage ends that Redis at once and returns what brings it back, empty, at
	// the same address. Only the recovery path needs it.
	Outage func(ctx context.Context) (end func(ctx context.Context) error, err error)
	// Baseline is a command that ends up in [ServeBaseline] with the arguments
	// that are added to it.
	Baseline []string
	// Reserve returns an address to listen on, and what gives it back.
	Reserve func() (addr string, release func() error, err error)

	Version  string // of this program
	Progress io.Writer
}

// Limits that keep a typing error from taking the machine down.
const (
	maxConnections = 400 // below the private MySQL's own bound: a baseline has one session each
	maxWindow      = time.Hour
	maxRecords     = 100_000_000
	maxKeys        = 5_000_000
	maxOpen        = 25_000 // an address has about 28,000 ports for connections to one port
	maxClients     = 5_000
)

// Check says what is wrong with what the user chose.
func (c *Config) Check() error {
	switch {
	case c.Rounds < 1:
		return errors.New("there must be one round at least")
	case c.Window < 50*time.Millisecond || c.Window > maxWindow:
		return fmt.Errorf("a turn must take 0.05 s at least, and at most %v", maxWindow)
	case len(c.Connections) == 0 || !ascend(c.Connections) || c.Connections[0] < 1:
		return errors.New("the numbers of connections must be positive and ascend")
	case c.Connections[len(c.Connections)-1] > maxConnections:
		return fmt.Errorf("at most %d connections", maxConnections)
	case c.Records < 0 || c.Records > maxRecords:
		return fmt.Errorf("from 0 to %d records", maxRecords)
	case c.Against != "" && c.Rounds < 3:
		return errors.New("a comparison of two builds takes three rounds at least: fewer do not show the noise")
	case c.Against != "" && c.Records > 0:
		return errors.New("a full table is compared with an empty one, not with another build")
	}
	if err := c.checkSizes(); err != nil {
		return err
	}
	known := c.known()
	for _, id := range c.Paths {
		if !slices.Contains(known, id) {
			return fmt.Errorf("unknown path %q: there are %s", id, strings.Join(known, ", "))
		}
	}
	return nil
}

func ascend(numbers []int) bool {
	for i := 1; i < len(numbers); i++ {
		if numbers[i] <= numbers[i-1] {
			return false
		}
	}
	return true
}

func (c *Config) checkSizes() error {
	switch {
	case c.Keys < 1 || c.Keys > maxKeys:
		return fmt.Errorf("from 1 to %d keys", maxKeys)
	case c.Open < 1 || c.Open > maxOpen:
		return fmt.Errorf("from 1 to %d open connections", maxOpen)
	case c.Clients < 1 || c.Clients > maxClients:
		return fmt.Errorf("from 1 to %d clients at once", maxClients)
	}
	return nil
}

func (c *Config) most() int { return c.Connections[len(c.Connections)-1] }
