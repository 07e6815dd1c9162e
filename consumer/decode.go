package consumer

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/oncegate/oncegate/order"
)

// MessageIDKey is the metadata that names a message for deduplication. Without
// it the message's UUID does.
const MessageIDKey = "message_id"

// maxBody bounds the body of a message, in bytes.
const maxBody = 64 << 10

// messageID returns what a message is recognised by when it comes again.
func messageID(m *message.Message) string {
	if id := m.Metadata.Get(MessageIDKey); id != "" {
		return id
	}
	return m.UUID
}

// decode reads a message. The error says what is wrong with it; it is final.
func decode(m *message.Message, consumer string) (order.PaymentMessage, error) {
	if d := deliveryOf(m); d != nil && d.fault != nil {
		return order.PaymentMessage{}, d.fault
	}
	p, err := decodeBody(m.Payload)
	if err != nil {
		return order.PaymentMessage{}, err
	}
	p.Consumer, p.MessageID, p.Body = consumer, messageID(m), m.Payload
	if err := p.Validate(); err != nil {
		return order.PaymentMessage{}, err
	}
	p.Digest = p.ContentDigest()
	return p, nil
}

// decodeBody reads {"type","data":{"order_id","amount","provider_reference"}}:
// every member once, no other, names to the letter.
func decodeBody(body []byte) (p order.PaymentMessage, err error) {
	switch {
	case len(body) > maxBody:
		return p, fault("", "is too large")
	case !utf8.Valid(body):
		return p, fault("", "is not valid UTF-8")
	case !json.Valid(body):
		return p, fault("", "is not valid JSON")
	}
	r := reader{json.NewDecoder(bytes.NewReader(body))}
	r.UseNumber()
	err = r.object("", members{
		"type": r.text(func(s string) error { p.Type = order.EventType(s); return nil }),
		"data": func(path string) error {
			return r.object(path+".", members{
				"order_id":           r.text(func(s string) (err error) { p.OrderID, err = order.ParseID(s); return err }),
				"amount":             r.amount(&p.Amount),
				"provider_reference": r.text(func(s string) error { p.ProviderReference = s; return nil }),
			})
		},
	})
	return p, err
}

func fault(path, reason string) error {
	return &order.InvalidError{Faults: []order.FieldFault{{Path: path, Reason: reason}}}
}

// reader reads JSON whose grammar has been checked.
type reader struct{ *json.Decoder }

// members are what an object must have, each with what reads its value.
type members map[string]func(path string) error

func (r reader) object(prefix string, wanted members) error {
	path := strings.TrimSuffix(prefix, ".")
	if t, _ := r.Token(); t != json.Delim('{') {
		return fault(path, "must be a JSON object")
	}
	missing := maps.Clone(wanted)
	for r.More() {
		t, err := r.Token()
		if err != nil {
			return fault(path, "is not valid JSON")
		}
		name, _ := t.(string)
		read, known := wanted[name]
		switch {
		case !known: // its name is the sender's, and is not repeated
			return fault(path, "has an unknown member")
		case missing[name] == nil:
			return fault(prefix+name, "is given more than once")
		}
		delete(missing, name)
		if err := read(prefix + name); err != nil {
			return err
		}
	}
	if _, err := r.Token(); err != nil && !errors.Is(err, io.EOF) {
		return fault(path, "is not valid JSON")
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		return fault(prefix+name, "is required")
	}
	return nil
}

func (r reader) text(use func(string) error) func(path string) error {
	return func(path string) error {
		t, _ := r.Token()
		s, ok := t.(string)
		switch {
		case !ok:
			return fault(path, "must be a string")
		case strings.ContainsRune(s, utf8.RuneError):
			// A lone surrogate reads as this: two such texts must not become one.
			return fault(path, "has a character that stands for no character")
		}
		if err := use(s); err != nil {
			return fault(path, err.Error())
		}
		return nil
	}
}

func (r reader) amount(into *order.Amount) func(path string) error {
	return func(path string) (err error) {
		var token string
		switch t, _ := r.Token(); t := t.(type) {
		case string:
			token = t
		case json.Number:
			token = t.String()
		default:
			return fault(path, "must be a decimal number, as a string or as a number")
		}
		if *into, err = order.ParseAmount(token); err != nil {
			return fault(path, err.Error())
		}
		return nil
	}
}
