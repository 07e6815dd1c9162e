package configs

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Print writes the configuration as YAML, secrets masked; with origin, each
// value is followed by where it came from.
func (l *Loaded) Print(w io.Writer, origin bool) error { return PrintSettings(w, l.Settings(), origin) }

// PrintSettings writes settings as [Loaded.Print] does, so that those of a
// configuration and those in force elsewhere can be compared line by line. The
// settings of a section must follow one another.
func PrintSettings(w io.Writer, all []Setting, origin bool) error {
	var b strings.Builder
	section := ""
	for i := range all {
		s := &all[i]
		parent, name, nested := strings.Cut(s.Name, ".")
		if !nested {
			parent, name = "", s.Name
		}
		if parent != section && nested {
			b.WriteString(parent + ":\n")
		}
		section = parent
		if nested {
			b.WriteString("  ")
		}
		value, err := s.yaml()
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		b.WriteString(name + ": " + value)
		if origin {
			b.WriteString("  # " + shortOrigin(s.Origin))
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// yaml writes the value on one line, as the file would have it.
func (s *Setting) yaml() (string, error) {
	var value any = s.Value
	switch s.Type {
	case kindDuration:
		d, err := ParseDuration(s.Value)
		return FormatDuration(d), err
	case kindSize, kindBool, kindInt:
		return s.Value, nil // plain texts, never read as something else
	case kindNumber:
		n, err := strconv.ParseFloat(s.Value, 64)
		if err != nil {
			return "", errNumber
		}
		value = n
	case kindList:
		list, err := toList(s.Value)
		if err != nil {
			return "", err
		}
		value = list
	case kindSecret:
		if s.Value != "" {
			value = masked
		}
	}
	var node yaml.Node
	if err := node.Encode(value); err != nil {
		return "", err
	}
	node.Style |= yaml.FlowStyle
	out, err := yaml.Marshal(&node)
	return strings.TrimSpace(string(out)), err
}

// WriteReference writes the table of every setting, in Markdown.
func WriteReference(w io.Writer) error {
	var b strings.Builder
	b.WriteString("| setting | environment | default | what it does |\n|---|---|---|---|\n")
	c := Default()
	for leaf := range leaves(&c) {
		env := "`" + leaf.env() + "`"
		if leaf.isSecret() {
			env += ", `…" + fileSuffix + "`"
		}
		fallback := "–"
		if text := leaf.text(); text != "" {
			fallback = "`" + text + "`"
		}
		b.WriteString("| `" + leaf.name + "` | " + env + " | " + fallback + " | " + strings.ReplaceAll(leaf.doc, "|", `\|`) + " |\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
