//go:build unix

package bench

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// gauges are the values of a gateway's metrics, each by its name with labels as
// it is written.
type gauges map[string]float64

func parseGauges(metrics string) gauges {
	g := gauges{}
	for line := range strings.Lines(metrics) {
		line = strings.TrimSpace(line)
		if i := strings.LastIndexByte(line, ' '); i > 0 && line[0] != '#' {
			if n, err := strconv.ParseFloat(line[i+1:], 64); err == nil {
				g[line[:i]] = n
			}
		}
	}
	return g
}

// need is for a value that says nothing when it is missing.
func (g gauges) need(name string) (float64, error) {
	v, ok := g[name]
	if !ok {
		return 0, fmt.Errorf("the gateway's metrics have no %s", name)
	}
	return v, nil
}

// metricsText reads the metrics from a gateway's admin listener.
func metricsText(ctx context.Context, admin string) (string, error) {
	var text bytes.Buffer
	if err := askAdmin(ctx, admin, "/metrics", &text); err != nil {
		return "", fmt.Errorf("read the gateway's metrics: %w", err)
	}
	return text.String(), nil
}

func askAdmin(ctx context.Context, admin, path string, to *bytes.Buffer) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	status, err := get(ctx, client, "http://"+admin+path, to)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("status %d", status)
	}
	return err
}

func readGauges(ctx context.Context, admin string) (gauges, error) {
	text, err := metricsText(ctx, admin)
	if err != nil {
		return nil, err
	}
	return parseGauges(text), nil
}
