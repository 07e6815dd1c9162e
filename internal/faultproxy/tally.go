package faultproxy

import (
	"maps"
	"sync"
)

// tally counts commands by name.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func newTally() *tally { return &tally{counts: map[string]int{}} }

func (t *tally) add(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[name]++
}

// Seen returns how many commands of this name clients have sent so far,
// whatever became of them.
func (t *tally) Seen(name string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts[name]
}

// Counts returns the numbers of all commands that clients have sent so far.
func (t *tally) Counts() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.counts)
}
