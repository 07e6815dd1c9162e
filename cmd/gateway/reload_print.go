package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/oncegate/oncegate/configs"
)

// printRunning prints what is in force in the gateway with this configuration, a
// setting per line; with origin, where each value came from.
func printRunning(ctx context.Context, w io.Writer, cfg *configs.Config, origin bool) error {
	token, err := operatorToken(cfg)
	if err != nil {
		return err
	}
	var answer bytes.Buffer
	if err := probe(ctx, &answer, cfg, cfg.Admin.Listen, "/admin/v1/config", token); err != nil {
		return err
	}
	var running struct {
		Settings []struct{ Name, Value, Origin string }
	}
	if err := json.Unmarshal(answer.Bytes(), &running); err != nil {
		return fmt.Errorf("read the gateway's answer: %w", err)
	}
	for _, s := range running.Settings {
		line := s.Name + ": " + s.Value
		if origin {
			line += "  # " + s.Origin
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}
