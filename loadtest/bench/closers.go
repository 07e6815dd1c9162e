//go:build unix

package bench

import (
	"errors"
	"slices"
)

// closers are what has to be undone, the last first.
type closers []func() error

func (c *closers) add(f func() error) { *c = append(*c, f) }

func (c *closers) close() error {
	var err error
	for i := range slices.Backward(*c) {
		err = errors.Join(err, (*c)[i]())
	}
	*c = nil
	return err
}
