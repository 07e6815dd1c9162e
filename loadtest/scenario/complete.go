package scenario

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/oncegate/oncegate/loadtest/measure"
)

const (
	defaultUsers = 1000
	maxUsers     = 1_000_000
	maxCopies    = 100_000
	maxRows      = 500
	maxAttempts  = 100
	longestWait  = 24 * time.Hour
)

// complete fills in the defaults.
func (s *Scenario) complete() {
	if s.Users.Count == 0 {
		s.Users.Count = defaultUsers
	}
	for i := range s.Behaviours {
		s.Behaviours[i].complete()
	}
}

// check refuses what cannot be meant.
func (s *Scenario) check() error {
	if s.Name == "" {
		return errors.New("it needs a name")
	}
	if s.Users.Count < 1 || s.Users.Count > maxUsers {
		return fmt.Errorf("users.count must be from 1 to %d", maxUsers)
	}
	if z := s.Users.Zipf; z != 0 && !(z > 1 && z <= 10) {
		return errors.New("users.zipf must be above 1 and at most 10, or absent")
	}
	if len(s.Behaviours) == 0 {
		return errors.New("it needs at least one behaviour")
	}
	seen := map[string]bool{}
	for i := range s.Behaviours {
		b := &s.Behaviours[i]
		if b.Name == "" || seen[b.Name] {
			return fmt.Errorf("behaviour %d needs a name of its own", i+1)
		}
		seen[b.Name] = true
		if err := b.check(); err != nil {
			return fmt.Errorf("behaviour %q: %w", b.Name, err)
		}
	}
	return nil
}

func (b *Behaviour) complete() {
	if b.Endpoint == "" {
		b.Endpoint = Orders
	}
	if b.Copies.Range == (Range{}) {
		b.Copies.Range = Range{1, 1}
	}
	if b.Retry.Attempts == 0 {
		b.Retry.Attempts = 1
	}
	if b.Endpoint == Batch && b.Rows == (Range{}) {
		b.Rows = Range{2, 10}
	}
}

func (b *Behaviour) check() error {
	switch {
	case !(b.Share > 0) || math.IsInf(b.Share, 0):
		return errors.New("share must be above 0")
	case b.Endpoint != Orders && b.Endpoint != Alias && b.Endpoint != Batch:
		return fmt.Errorf("endpoint %q: want orders, alias or batch", b.Endpoint)
	case b.Endpoint == Batch && !b.Rows.within(1, maxRows):
		return fmt.Errorf("rows must be from 1 to %d", maxRows)
	case b.Endpoint != Batch && b.Rows != (Range{}):
		return errors.New("rows belong to a batch")
	case !b.Copies.Range.within(1, maxCopies) || !sane(b.Copies.Within):
		return fmt.Errorf("copies must be from 1 to %d, within a positive time", maxCopies)
	case !(b.HangUp.Share >= 0 && b.HangUp.Share <= 1) || !sane(b.HangUp.After) || (b.HangUp.Share > 0) != (b.HangUp.After > 0):
		return errors.New("hang_up needs a share from 0 to 1 and a time")
	case b.Retry.Attempts < 1 || b.Retry.Attempts > maxAttempts || !sane(b.Retry.Base) || b.Retry.Cap < b.Retry.Base || !sane(b.Retry.Cap):
		return fmt.Errorf("retry needs 1 to %d attempts and base <= cap", maxAttempts)
	case b.Retry.Attempts > 1 && b.Retry.Base == 0:
		return errors.New("retry needs a base")
	case b.Repeat.Times < 0 || b.Repeat.Times > maxAttempts || !sane(b.Repeat.After) || (b.Repeat.Times > 0) != (b.Repeat.After > 0):
		return errors.New("repeat needs times and after")
	case b.OtherBody != "" && b.OtherBody != "after" && b.OtherBody != "at_once":
		return errors.New(`other_body must be "after" or "at_once"`)
	case b.Callback != nil && (b.Callback.Copies < 1 || b.Callback.Copies > maxAttempts):
		return fmt.Errorf("callback.copies must be from 1 to %d", maxAttempts)
	case b.Callback != nil && b.Endpoint == Batch:
		return errors.New("callbacks need single orders")
	}
	for _, o := range b.Forbidden {
		if o >= measure.Read {
			return fmt.Errorf("forbidden: %s is not an outcome of an order", o)
		}
		if o == measure.Reused && b.OtherBody != "" {
			return errors.New("forbidden: reused is the right answer to other_body")
		}
	}
	return nil
}

func (r Range) within(low, high int) bool { return r.Min >= low && r.Max >= r.Min && r.Max <= high }

func sane(d time.Duration) bool { return d >= 0 && d <= longestWait }
