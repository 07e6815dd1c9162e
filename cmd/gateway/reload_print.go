package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/oncegate/oncegate/configs"
)

// printRunning prints what is in force in the gateway with this configuration, in
// the form in which the configuration is printed; with origin, where each value
// came from.
func printRunning(ctx context.Context, w io.Writer, cfg *configs.Config, origin bool) error {
	token, err := operatorToken(cfg)
	if err != nil {
		return err
	}
	answer, err := probe(ctx, cfg, "/admin/v1/config", token)
	if err != nil {
		return err
	}
	all, err := settingsIn(answer)
	if err != nil {
		return err
	}
	return configs.PrintSettings(w, all, origin)
}

// settingsIn reads a gateway's answer.
func settingsIn(answer []byte) ([]configs.Setting, error) {
	var running struct {
		Settings []struct{ Name, Value, Type, Origin string }
	}
	if err := json.Unmarshal(answer, &running); err != nil {
		return nil, fmt.Errorf("read the gateway's answer: %w", err)
	}
	all := make([]configs.Setting, 0, len(running.Settings))
	for _, s := range running.Settings {
		all = append(all, configs.Setting{Name: printable(s.Name), Value: printable(s.Value), Type: s.Type, Origin: printable(s.Origin)})
	}
	return all, nil
}
