package configs

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

// Sources are where settings come from, the weaker first.
type Sources struct {
	File    string         // path of a YAML file; empty: none
	Environ []string       // as os.Environ has it
	Flags   *pflag.FlagSet // parsed flags of [AddFlags]; nil: none
	// NoGateway says that no orders will be taken, so that a configuration is
	// valid without what verifies tokens, what signs receipts in Redis, or an
	// admin listener.
	NoGateway bool
	// Unchecked leaves out what cannot be read, a file that is no YAML as a whole,
	// and refuses nothing. It is for a question to a process that runs: it keeps its
	// settings when its file is refused.
	Unchecked bool
}

// Loaded is a configuration and where each of its values came from.
type Loaded struct {
	Config Config
	// Origins has every setting that is not a default, such as
	// "env ONCEGATE_HTTP__LISTEN".
	Origins map[string]string
	// noGateway is that of the [Sources].
	noGateway bool
}

// faults are those of the configuration, for what it is loaded for.
func (l *Loaded) faults() []string {
	faults := l.Config.faults()
	if l.noGateway {
		faults = slices.DeleteFunc(faults, ofGateway)
	}
	return faults
}

// Load reads and validates a configuration. The error is an [*InvalidError]
// that lists every fault, unless the file cannot be read.
func Load(s Sources) (*Loaded, error) {
	l := newLoader()
	if s.File != "" {
		if err := l.addFile(s.File); err != nil && !s.Unchecked {
			return nil, err
		}
	}
	if err := l.addEnvironment(s.Environ); err != nil {
		return nil, err
	}
	if s.Flags != nil {
		if err := l.addFlags(s.Flags); err != nil {
			return nil, err
		}
	}
	l.noGateway = s.NoGateway
	if s.Unchecked {
		l.decode()
		return &l.Loaded, nil
	}
	return l.finish()
}

type loader struct {
	Loaded
	merged *koanf.Koanf
	known  map[string]leaf
	wrong  []string
}

func newLoader() *loader {
	l := &loader{
		Loaded: Loaded{Config: Default(), Origins: map[string]string{}},
		merged: koanf.New("."),
		known:  map[string]leaf{},
	}
	for leaf := range leaves(&l.Config) {
		l.known[leaf.name] = leaf
	}
	return l
}

// finish decodes and validates what the layers gave.
func (l *loader) finish() (*Loaded, error) {
	l.decode()
	l.wrong = append(l.wrong, l.faults()...)
	if len(l.wrong) > 0 {
		return nil, &InvalidError{l.wrong}
	}
	return &l.Loaded, nil
}

func (l *loader) addFile(path string) error {
	content, err := os.ReadFile(path) //nolint:gosec // G304: the operator names the file
	if err != nil {
		return err
	}
	return l.addYAML(path, content)
}

func (l *loader) addYAML(path string, content []byte) error {
	layer := koanf.New(".")
	if err := layer.Load(rawbytes.Provider(content), strictYAML{}); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return l.add(layer, path, func(string) string { return "file " + path })
}

func (l *loader) addEnvironment(environ []string) error {
	var e environment
	layer := koanf.New(".")
	if err := layer.Load(e.provider(environ, l.known), nil); err != nil {
		return fmt.Errorf("environment: %w", err)
	}
	l.wrong = append(l.wrong, e.faults...)
	return l.add(layer, "the environment", func(name string) string { return "env " + e.names[name] })
}

func (l *loader) addFlags(flags *pflag.FlagSet) error {
	layer := koanf.New(".")
	if err := layer.Load(flagProvider(flags), nil); err != nil {
		return fmt.Errorf("flags: %w", err)
	}
	return l.add(layer, "the flags", func(name string) string { return "flag --" + name })
}

// add puts a stronger layer over those before it.
func (l *loader) add(layer *koanf.Koanf, where string, origin func(name string) string) error {
	known := slices.Sorted(maps.Keys(l.known))
	for _, name := range layer.Keys() {
		value := layer.Get(name)
		_, isLeaf := l.known[name]
		switch {
		case isNothing(value) && (isLeaf || isSectionName(name, known)):
			layer.Delete(name) // a name with nothing behind it leaves the default
		case isLeaf:
			l.Origins[name] = origin(name)
		case isSectionName(name, known):
			l.wrong = append(l.wrong, fmt.Sprintf("%s (in %s) is a section: its settings go below it", name, where))
			layer.Delete(name)
		default:
			l.wrong = append(l.wrong, unknown(name, where, nearest(name, known)))
			layer.Delete(name)
		}
	}
	return l.merged.Merge(layer)
}

// isNothing reports whether a name has nothing behind it, as a section has whose
// settings are all commented out.
func isNothing(value any) bool {
	section, ok := value.(map[string]any)
	return value == nil || ok && len(section) == 0
}

// unknown does not repeat what a missing space made a part of the name: it may be
// a secret.
func unknown(name, where, suggestion string) string {
	if i := strings.IndexAny(name, ": @/"); i >= 0 {
		name = name[:i] + "…"
	}
	fault := fmt.Sprintf("%s (in %s) is not a setting", name, where)
	if suggestion != "" {
		fault += ": did you mean " + suggestion + "?"
	}
	return fault
}

func isSectionName(name string, known []string) bool {
	return slices.ContainsFunc(known, func(k string) bool {
		return len(k) > len(name) && k[:len(name)] == name && k[len(name)] == '.'
	})
}

func (l *loader) decode() {
	for leaf := range leaves(&l.Config) {
		origin, set := l.Origins[leaf.name]
		if !set {
			continue
		}
		if err := leaf.set(l.merged.Get(leaf.name)); err != nil {
			l.wrong = append(l.wrong, fmt.Sprintf("%s (%s) %v", leaf.name, origin, err))
		}
	}
}
