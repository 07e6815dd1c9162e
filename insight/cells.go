package insight

import "github.com/oncegate/oncegate/order"

// A cell is what becomes of a command: the kind of its answer and the layer that
// gave it, or that there was none.
type cell int

const (
	layers     = int(order.LayerProcess) + 1
	failedCell = cell((int(order.Accepted) + 1) * layers)
	cellCount  = int(failedCell) + 1
)

func cellOf(a *order.Answer, err error) cell {
	if err != nil || a.Kind > order.Accepted || int(a.Layer) >= layers {
		return failedCell
	}
	return cell(int(a.Kind)*layers + int(a.Layer))
}

func (c cell) kind() order.Kind   { return order.Kind(int(c) / layers) }  //nolint:gosec // G115: below cellCount
func (c cell) layer() order.Layer { return order.Layer(int(c) % layers) } //nolint:gosec // G115: below layers

// outcome names what the console shows a line of latency for; empty for a cell
// that nothing falls into.
func (c cell) outcome() string {
	if c == failedCell {
		return "failed"
	}
	switch c.kind() {
	case order.Replayed:
		return "replayed_" + c.layer().String()
	case order.Created, order.Rejected, order.Reused, order.InProgress, order.Accepted:
		return c.kind().String()
	default:
		return ""
	}
}

// outcomes are the names in the order in which they are shown.
func outcomes() []string {
	return []string{
		"created", "replayed_process", "replayed_redis", "replayed_mysql",
		"in_progress", "reused", "rejected", "accepted", "failed",
	}
}

// isRetry tells an answer to somebody who asked before from one to a new key.
func (c cell) isRetry() bool {
	if c == failedCell {
		return false
	}
	k := c.kind()
	return k == order.Replayed || k == order.InProgress
}

// isNewKey says that an entry for a key was written that had none.
func (c cell) isNewKey() bool {
	k := c.kind()
	return k == order.Created || k == order.Rejected || k == order.Accepted
}

// Totals count commands by what became of them.
type Totals struct {
	Received uint64 `json:"received"`
	// Answered by a layer without a new order: replays, conflicts of keys, and
	// "still running".
	Process uint64 `json:"process"`
	Redis   uint64 `json:"redis"`
	MySQL   uint64 `json:"mysql"`
	// Decided anew.
	Created  uint64 `json:"created"`
	Rejected uint64 `json:"rejected"` // for a business reason
	Accepted uint64 `json:"accepted"` // batches that are carried out later
	Failed   uint64 `json:"failed"`   // ended without an answer
	// Of those above: a key that belongs to another content.
	Reused uint64 `json:"reused"`
	// Of those above: replays and "still running".
	Duplicates uint64 `json:"duplicates"`
}

func totalsOf(n *[cellCount]uint64) (t Totals) {
	for i, v := range n {
		c := cell(i)
		t.Received += v
		if c.isRetry() {
			t.Duplicates += v
		}
		switch c.outcome() {
		case "created":
			t.Created += v
		case "rejected":
			t.Rejected += v
		case "accepted":
			t.Accepted += v
		case "failed":
			t.Failed += v
		case "reused":
			t.Reused += v
			t.answeredBy(c.layer(), v)
		case "":
		default:
			t.answeredBy(c.layer(), v)
		}
	}
	return t
}

func (t *Totals) answeredBy(l order.Layer, n uint64) {
	switch l {
	case order.LayerProcess:
		t.Process += n
	case order.LayerRedis:
		t.Redis += n
	default:
		t.MySQL += n
	}
}
