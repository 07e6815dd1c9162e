package configs

import (
	"bytes"
	"errors"
	"io"

	"go.yaml.in/yaml/v3"
)

// strictYAML is a koanf parser that refuses what would be passed over silently:
// a second document. Duplicate names are refused by the decoder itself.
type strictYAML struct{}

func (strictYAML) Unmarshal(b []byte) (map[string]any, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(b))
	var out map[string]any
	if err := decoder.Decode(&out); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var second yaml.Node
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, errors.Join(errors.New("must hold one YAML document"), err)
	}
	return out, nil
}

func (strictYAML) Marshal(m map[string]any) ([]byte, error) { return yaml.Marshal(m) }
