// Package mark keeps notes of what happened while a run was going on, such as
// "redis down", in a file that the run reads at its end: one note on a line, its
// instant first. Whoever breaks things needs to know nothing of the run but this
// file.
package mark

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Mark is one note.
type Mark struct {
	At   time.Time
	Text string
}

const maxText = 200

// DefaultPath is where marks go when nobody says otherwise.
func DefaultPath() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a place for marks: %w", err)
	}
	return filepath.Join(dir, "oncegate-loadtest", "marks"), nil
}

// Append adds a note.
func Append(path string, m Mark) error {
	text := strings.Join(strings.Fields(m.Text), " ")
	if text == "" || len(text) > maxText {
		return fmt.Errorf("a mark has 1 to %d characters", maxText)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("mark: %w", err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // G304: the path is the operator's own
	if err != nil {
		return fmt.Errorf("mark: %w", err)
	}
	_, err = fmt.Fprintf(f, "%s\t%s\n", m.At.UTC().Format(time.RFC3339Nano), text)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("mark: %w", err)
	}
	return nil
}

// Read returns the notes between two instants. No file is no notes; a line that
// cannot be read is an error.
func Read(path string, from, to time.Time) ([]Mark, error) {
	f, err := os.Open(path) //nolint:gosec // G304: the path is the operator's own
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read marks: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	var marks []Mark
	s := bufio.NewScanner(f)
	for n := 1; s.Scan(); n++ {
		at, text, ok := strings.Cut(s.Text(), "\t")
		if !ok {
			at, text, ok = strings.Cut(s.Text(), " ")
		}
		t, err := time.Parse(time.RFC3339Nano, at)
		if err != nil || !ok {
			return nil, fmt.Errorf("read marks: line %d of %s: want an RFC 3339 time and a text", n, path)
		}
		if !t.Before(from) && !t.After(to) {
			marks = append(marks, Mark{t, text})
		}
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("read marks: %w", err)
	}
	return marks, nil
}
