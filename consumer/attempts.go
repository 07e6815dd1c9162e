package consumer

import (
	"sync"

	lru "github.com/hashicorp/golang-lru/v2/simplelru"
)

// maxAttempts bounds the messages whose deliveries are counted in memory.
const maxAttempts = 10_000

// attempts counts deliveries for brokers that do not. A restart forgets them,
// which delays the parking of a message and does no other harm.
type attempts struct {
	mu     sync.Mutex
	counts *lru.LRU[string, int64]
}

func newAttempts() (*attempts, error) {
	counts, err := lru.NewLRU[string, int64](maxAttempts, nil)
	return &attempts{counts: counts}, err
}

// add changes the count of a message and returns it, and whether there was one.
func (a *attempts) add(messageID string, n int64) (count int64, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	count, known = a.counts.Get(messageID)
	count += n
	a.counts.Add(messageID, count)
	return count, known
}

func (a *attempts) forget(messageID string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counts.Remove(messageID)
}
