package exact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Object is a JSON object: each member as it is spelled, by its exact name. The nil
// object has no members.
type Object map[string]json.RawMessage

// Parse reads a text that is one object and nothing else.
func Parse(text []byte) (Object, error) {
	var o Object
	err := json.Unmarshal(text, &o)
	return o, err
}

var errNoObject = errors.New("it is no JSON object")

// UnmarshalJSON reads an object. Two members of one name are an error: readers
// disagree about which of them counts.
func (o *Object) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return errors.Join(errNoObject, err)
	}
	members := Object{}
	for d.More() {
		token, err := d.Token()
		name, isName := token.(string)
		if err != nil || !isName {
			return errors.Join(errNoObject, err)
		}
		if _, twice := members[name]; twice {
			return fmt.Errorf("member %q is there twice", name)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return fmt.Errorf("member %q: %w", name, err)
		}
		members[name] = value
	}
	*o = members
	return nil
}

// Read reads a member into what a pointer points to, which an absent one and null
// leave as it is. It must hold no struct, whose members encoding/json would match by
// more than their names: an object inside is an [Object].
func (o Object) Read(name string, into any) error {
	value, there := o[name]
	if !there || string(value) == "null" {
		return nil
	}
	if err := json.Unmarshal(value, into); err != nil {
		return fmt.Errorf("member %q: %w", name, err)
	}
	return nil
}

// Text is a member that is a string; "" when there is none.
func (o Object) Text(name string) string {
	var text string
	if o.Read(name, &text) != nil {
		return ""
	}
	return text
}
