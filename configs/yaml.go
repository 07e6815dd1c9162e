package configs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"
)

// strictYAML is a koanf parser that refuses what would be passed over silently, a
// second document, and what would be read as something else, 010 as 8. Duplicate
// names are refused by the decoder itself, but not a.b beside a: {b: …}, of which
// koanf takes the one that a random order has last.
type strictYAML struct{}

func (strictYAML) Unmarshal(b []byte) (map[string]any, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(b))
	var document yaml.Node
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return nil, withoutValues(err)
	}
	if err := misread(&document); err != nil {
		return nil, err
	}
	var out map[string]any
	if err := document.Decode(&out); err != nil {
		return nil, withoutValues(err)
	}
	var second yaml.Node
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, errors.Join(errors.New("must hold one YAML document"), withoutValues(err))
	}
	if err := spelledTwice(out, "", map[string]bool{}); err != nil {
		return nil, err
	}
	return out, nil
}

// What the decoder's errors say of values: the beginning of one that it cannot
// read, and all of one that begins with * and so is taken for an alias.
var (
	quoted = regexp.MustCompile("(?s)`.*`")
	alias  = regexp.MustCompile(`unknown anchor '.*' referenced`)
)

// withoutValues is an error of the decoder that may be shown: a value may be a
// secret, and the file one of secrets that was taken for this one.
func withoutValues(err error) error {
	if err == nil {
		return nil
	}
	text := alias.ReplaceAllString(err.Error(), "a text that begins with * must be in quotes")
	return errors.New(quoted.ReplaceAllString(text, "(a value)"))
}

// spelledTwice finds a name that is given below its section and in full as well.
func spelledTwice(section map[string]any, prefix string, seen map[string]bool) error {
	for _, key := range slices.Sorted(maps.Keys(section)) {
		name := prefix + key
		below, isSection := section[key].(map[string]any)
		if !isSection {
			if seen[name] {
				return fmt.Errorf("%s is given twice: below its section and in full", name)
			}
			seen[name] = true
			continue
		}
		if err := spelledTwice(below, name+".", seen); err != nil {
			return err
		}
	}
	return nil
}

func (strictYAML) Marshal(m map[string]any) ([]byte, error) { return yaml.Marshal(m) }

var leadingZero = regexp.MustCompile(`^[-+]?0[0-9_]`)

// misread finds a number with a leading zero, which is octal here and nowhere else
// that settings are given.
func misread(n *yaml.Node) error {
	if tag := n.ShortTag(); n.Kind == yaml.ScalarNode && (tag == "!!int" || tag == "!!float") && leadingZero.MatchString(n.Value) {
		return fmt.Errorf("line %d: a number must be written without a leading zero, or in quotes", n.Line)
	}
	for _, child := range n.Content {
		if err := misread(child); err != nil {
			return err
		}
	}
	return nil
}
