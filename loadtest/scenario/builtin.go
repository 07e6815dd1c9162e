package scenario

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

//go:embed builtin/*.yaml
var builtin embed.FS

// Default is the scenario of a run that names none.
const Default = "mixed"

// Builtin lists the scenarios that come with the harness, by name.
func Builtin() ([]*Scenario, error) {
	entries, err := fs.ReadDir(builtin, "builtin")
	if err != nil {
		return nil, fmt.Errorf("list the scenarios: %w", err)
	}
	all := make([]*Scenario, 0, len(entries))
	for _, e := range entries {
		s, err := Load(strings.TrimSuffix(e.Name(), ".yaml"))
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// Text returns the YAML of a built-in scenario, comments included.
func Text(name string) ([]byte, error) {
	text, err := builtin.ReadFile("builtin/" + name + ".yaml")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no scenario is called %q; `loadtest scenarios` lists them", name)
	}
	return text, err
}

// Load returns a built-in scenario by name, or reads a file: a name with a slash
// or a .yaml at its end is a file.
func Load(name string) (*Scenario, error) {
	var text []byte
	var err error
	if strings.ContainsRune(name, os.PathSeparator) || strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml") {
		text, err = os.ReadFile(name) //nolint:gosec // G304: the path is the operator's own
	} else {
		text, err = Text(name)
	}
	if err != nil {
		return nil, err
	}
	s, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}
