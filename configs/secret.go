package configs

import (
	"fmt"
	"log/slog"
)

// masked stands for a secret that is set, wherever one would be printed.
const masked = "[redacted]"

// Secret is a text that no verb, encoder or logger prints. It holds a pointer,
// so that even fmt's reflection, which sees through the methods of a value in
// an unexported field, finds an address only.
type Secret struct{ text *string }

// NewSecret wraps a text. The empty text makes the zero Secret.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{&text}
}

// Reveal returns the text.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsSet reports whether there is a text.
func (s Secret) IsSet() bool { return s.text != nil }

// String says only whether the secret is set.
func (s Secret) String() string {
	if s.text == nil {
		return ""
	}
	return masked
}

// Format answers every verb with what String says.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// LogValue says only whether the secret is set.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText says only whether the secret is set; JSON and YAML use it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
