package insight

// ring keeps the last values that were put in. Not safe for concurrent use.
type ring[T any] struct {
	values []T
	next   int
	full   bool
}

func newRing[T any](size int) *ring[T] { return &ring[T]{values: make([]T, size)} }

func (r *ring[T]) put(v T) {
	r.values[r.next] = v
	r.next++
	if r.next == len(r.values) {
		r.next, r.full = 0, true
	}
}

func (r *ring[T]) len() int {
	if r.full {
		return len(r.values)
	}
	return r.next
}

// at returns the i-th value, the oldest first.
func (r *ring[T]) at(i int) T {
	if r.full {
		i += r.next
	}
	return r.values[i%len(r.values)]
}

// newest returns the values, the newest first, or none but never nil.
func (r *ring[T]) newest() []T {
	all := make([]T, 0, r.len())
	for i := r.len() - 1; i >= 0; i-- {
		all = append(all, r.at(i))
	}
	return all
}

// oldest returns the values, the oldest first, or none but never nil.
func (r *ring[T]) oldest() []T {
	all := make([]T, 0, r.len())
	for i := range r.len() {
		all = append(all, r.at(i))
	}
	return all
}
