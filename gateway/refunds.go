package gateway

import (
	"fmt"

	lru "github.com/hashicorp/golang-lru/v2"
)

// maxRefunds bounds the callbacks that are remembered for owing a refund.
const maxRefunds = 10_000

// refunds remembers the callbacks that owe a refund and were told of by this
// process. Who dealt with one first may have ended before it told, or not have
// known that it was committed; so whoever hears of it again tells, once.
type refunds struct{ told *lru.Cache[string, struct{}] }

func newRefunds() (*refunds, error) {
	told, err := lru.New[string, struct{}](maxRefunds)
	if err != nil {
		return nil, fmt.Errorf("refunds: %w", err)
	}
	return &refunds{told}, nil
}

// first reports whether this process has not told of the callback.
func (r *refunds) first(messageID string) bool {
	told, _ := r.told.ContainsOrAdd(messageID, struct{}{})
	return !told
}
