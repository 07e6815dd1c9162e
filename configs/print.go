package configs

import (
	"fmt"
	"io"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Print writes the configuration as YAML, secrets masked; with origin, each
// value is followed by where it came from.
func (l *Loaded) Print(w io.Writer, origin bool) error {
	var b strings.Builder
	section := ""
	for leaf := range leaves(&l.Config) {
		parent, name, nested := strings.Cut(leaf.name, ".")
		if !nested {
			parent, name = "", leaf.name
		}
		if parent != section && nested {
			b.WriteString(parent + ":\n")
		}
		section = parent
		if nested {
			b.WriteString("  ")
		}
		value, err := leaf.yaml()
		if err != nil {
			return fmt.Errorf("%s: %w", leaf.name, err)
		}
		b.WriteString(name + ": " + value)
		if origin {
			from, set := l.Origins[leaf.name]
			if !set {
				from = "default"
			}
			b.WriteString("  # " + from)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// yaml writes the value on one line.
func (l leaf) yaml() (string, error) {
	var node yaml.Node
	var value any = l.text()
	switch v := l.value.Interface().(type) {
	case bool, int, float64, []string:
		value = v
	case time.Duration, Size:
		return l.text(), nil // plain texts, never read as something else
	}
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
