//go:build unix

package testserver

import (
	"bytes"
	"sync"
)

// keptOutput is how many bytes of an [Output] are kept at least.
const keptOutput = 1 << 20

// Output is what a process writes: the last mebibyte of it, at least. It may be
// read while the process writes. The zero value is empty and ready.
type Output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write adds to it and never fails.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.buf.Len() > 2*keptOutput {
		o.buf.Next(o.buf.Len() - keptOutput)
	}
	return o.buf.Write(p)
}

// String is all that is kept.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// Tail is the last n lines.
func (o *Output) Tail(n int) string { return tail(o.String(), n) }
