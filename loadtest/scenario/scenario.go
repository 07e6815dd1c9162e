package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/oncegate/oncegate/loadtest/measure"
)

// Scenario is a mix of behaviours.
type Scenario struct {
	Name        string      `yaml:"name"`
	Description string      `yaml:"description"`
	Users       Users       `yaml:"users"`
	Behaviours  []Behaviour `yaml:"behaviours"`
	Thresholds  []string    `yaml:"thresholds"`
}

// Users says who sends.
type Users struct {
	Count int     `yaml:"count"` // when the harness makes them; default 1000
	Zipf  float64 `yaml:"zipf"`  // above 1: the exponent of the skew; 0: everybody alike
}

// Endpoint is what an intent is sent to.
type Endpoint string

// The endpoints.
const (
	Orders Endpoint = "orders" // POST /api/orders
	Alias  Endpoint = "alias"  // POST /order/create_user_order
	Batch  Endpoint = "batch"  // POST /api/order-batches
)

// Behaviour is one way in which a customer's intent reaches the server.
type Behaviour struct {
	Name      string            `yaml:"name"`
	Share     float64           `yaml:"share"` // relative to the other behaviours
	Endpoint  Endpoint          `yaml:"endpoint"`
	Rows      Range             `yaml:"rows"`       // of a batch
	Copies    Copies            `yaml:"copies"`     // the same request several times, without waiting for an answer
	HangUp    HangUp            `yaml:"hang_up"`    // the first attempt does not hear the answer
	Retry     Retry             `yaml:"retry"`      // again with the same key after a bad answer
	Repeat    Repeat            `yaml:"repeat"`     // again with the same key after a good answer
	OtherBody string            `yaml:"other_body"` // the same key with another content: "after" or "at_once"
	Status    bool              `yaml:"status"`     // ask GET /api/requests/{key} in the end
	Callback  *Callback         `yaml:"callback"`   // payment callbacks for the order
	Forbidden []measure.Outcome `yaml:"forbidden"`  // each of these is a violation here
}

// Range is an inclusive range of whole numbers.
type Range struct {
	Min int `yaml:"min"`
	Max int `yaml:"max"`
}

// Copies says how many copies of a request are sent, and within which time.
type Copies struct {
	Range  `yaml:",inline"`
	Within time.Duration `yaml:"within"` // zero: all at once
}

// HangUp closes the connection before the answer, as a lost network does.
type HangUp struct {
	Share float64       `yaml:"share"` // of the intents, 0 to 1
	After time.Duration `yaml:"after"` // at the latest; the instant is drawn
}

// Retry is exponential back-off with full jitter, or Retry-After when it is longer.
type Retry struct {
	Attempts int           `yaml:"attempts"` // in all, the first one included
	Base     time.Duration `yaml:"base"`
	Cap      time.Duration `yaml:"cap"`
}

// Repeat sends the request again when it had long been answered.
type Repeat struct {
	Times int           `yaml:"times"`
	After time.Duration `yaml:"after"`
}

// Callback sends payment callbacks for a created order.
type Callback struct {
	Copies int `yaml:"copies"` // deliveries of the same message
}

// Parse reads one scenario strictly: an unknown member is an error.
func Parse(text []byte) (*Scenario, error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	var s Scenario
	switch err := d.Decode(&s); {
	case errors.Is(err, io.EOF):
		return nil, errors.New("scenario: there is nothing in it")
	case err != nil:
		return nil, fmt.Errorf("scenario: %w", err)
	}
	if err := wholeNumbers(text); err != nil {
		return nil, fmt.Errorf("scenario: %w", err)
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, errors.New("scenario: more than one document")
	}
	s.complete()
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("scenario %q: %w", s.Name, err)
	}
	return &s, nil
}

// wholeNumbers refuses a fraction where a number of things is meant: the decoder
// would cut it off.
func wholeNumbers(text []byte) error {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return err
	}
	rest := []*yaml.Node{&document}
	for len(rest) > 0 {
		n := rest[0]
		rest = append(rest[1:], n.Content...)
		if n.Kind != yaml.MappingNode {
			continue
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			name, value := n.Content[i].Value, n.Content[i+1]
			if value.Kind == yaml.AliasNode {
				value = value.Alias
			}
			switch name {
			case "count", "min", "max", "attempts", "times", "copies":
				if value.ShortTag() == "!!float" {
					return fmt.Errorf("line %d: %s must be a whole number", value.Line, name)
				}
			}
		}
	}
	return nil
}

// NeedsWebhookSecret reports whether callbacks are part of the scenario.
func (s *Scenario) NeedsWebhookSecret() bool {
	for i := range s.Behaviours {
		if s.Behaviours[i].Callback != nil {
			return true
		}
	}
	return false
}

// SetUsers replaces the number of users.
func (s *Scenario) SetUsers(n int) error {
	s.Users.Count = n
	return s.check()
}

// SetRepeatAfter replaces the waiting time of every behaviour that repeats, to
// fit the TTL of a deployment. It is an error when there is none.
func (s *Scenario) SetRepeatAfter(d time.Duration) error {
	found := false
	for i := range s.Behaviours {
		if s.Behaviours[i].Repeat.Times > 0 {
			s.Behaviours[i].Repeat.After = d
			found = true
		}
	}
	if !found {
		return errors.New("nothing repeats in this scenario")
	}
	return s.check()
}

// SetCopies replaces the number of copies of every behaviour that has copies. It
// is an error when there is none.
func (s *Scenario) SetCopies(n int) error {
	found := false
	for i := range s.Behaviours {
		if s.Behaviours[i].Copies.Max > 1 {
			s.Behaviours[i].Copies.Range = Range{n, n}
			found = true
		}
	}
	if !found {
		return errors.New("nothing has copies in this scenario")
	}
	return s.check()
}
