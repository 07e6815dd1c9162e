package main

import (
	"io"
	"log/slog"
	"os"

	"github.com/oncegate/oncegate/configs"
)

// newLogger makes the logger that the configuration asks for.
func newLogger(w io.Writer, c configs.Log) (*slog.Logger, error) {
	return newLeveledLogger(w, c, new(slog.LevelVar))
}

// newLeveledLogger is newLogger for a level that may change later.
func newLeveledLogger(w io.Writer, c configs.Log, level *slog.LevelVar) (*slog.Logger, error) {
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		return nil, err
	}
	o := &slog.HandlerOptions{Level: level}
	if c.Format == "text" || c.Format == "auto" && isTerminal(w) {
		return slog.New(slog.NewTextHandler(w, o)), nil
	}
	return slog.New(slog.NewJSONHandler(w, o)), nil
}

func isTerminal(w io.Writer) bool {
	if r, ok := w.(*relay); ok {
		w = r.to
	}
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
