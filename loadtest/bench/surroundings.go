//go:build unix

package bench

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Environment is where the numbers come from.
type Environment struct {
	System     string            `json:"system"`
	Processor  string            `json:"processor,omitempty"`
	Processors int               `json:"processors"`
	Memory     string            `json:"memory,omitempty"`
	Go         string            `json:"go"`
	MySQL      string            `json:"mysql"`
	Settings   map[string]string `json:"mysql_settings"`
	Redis      string            `json:"redis"`
	Gateway    string            `json:"gateway"`
	Against    string            `json:"against,omitempty"`
	LoadBefore float64           `json:"load_before"`
	LoadAfter  float64           `json:"load_after"`
}

// shown are the MySQL settings that the numbers depend on.
func shown() []string {
	return []string{"innodb_flush_log_at_trx_commit", "sync_binlog", "log_bin", "innodb_buffer_pool_size", "innodb_redo_log_capacity"}
}

func (s *stage) lookAround(ctx context.Context) (Environment, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	e := Environment{
		System: runtime.GOOS + "/" + runtime.GOARCH, Processors: runtime.NumCPU(), Go: runtime.Version(),
		Processor: fileField("/proc/cpuinfo", "model name"), Memory: fileField("/proc/meminfo", "MemTotal"),
		LoadBefore: loadAverage(), Settings: map[string]string{},
	}
	if err := s.admin.QueryRowContext(ctx, "SELECT VERSION()").Scan(&e.MySQL); err != nil {
		return e, fmt.Errorf("ask MySQL for its version: %w", err)
	}
	for _, name := range shown() {
		value, err := variable(ctx, s.admin, name)
		if err != nil {
			return e, err
		}
		e.Settings[name] = value
	}
	info, err := s.redis.Info(ctx, "server").Result()
	if err != nil {
		return e, fmt.Errorf("ask Redis for its version: %w", err)
	}
	_, after, _ := strings.Cut(info, "redis_version:")
	e.Redis, _, _ = strings.Cut(after, "\r")
	if e.Gateway, err = programVersion(ctx, s.c.Gateway); err != nil {
		return e, err
	}
	if s.c.Against != "" {
		if e.Against, err = programVersion(ctx, s.c.Against); err != nil {
			return e, err
		}
	}
	return e, nil
}

func variable(ctx context.Context, db *sql.DB, name string) (value string, err error) {
	if err := db.QueryRowContext(ctx, "SHOW GLOBAL VARIABLES WHERE Variable_name = '"+name+"'").Scan(new(string), &value); err != nil {
		return "", fmt.Errorf("ask MySQL for %s: %w", name, err)
	}
	return value, nil
}

func programVersion(ctx context.Context, path string) (string, error) {
	out, err := exec.CommandContext(ctx, path, "version").Output()
	if err != nil {
		return "", fmt.Errorf("ask %s for its version: %w", path, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// fileField reads "name : value" from one of the kernel's files; "" where there
// is no such file.
func fileField(path, name string) string {
	text, err := os.ReadFile(path) //nolint:gosec // G304: one of two files of the kernel
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// loadAverage is that of the last minute; 0 where the system does not tell.
func loadAverage() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return load
}

// busy says whether others used a good part of the machine before the bench began.
func (e *Environment) busy() bool { return e.LoadBefore > float64(e.Processors)/4 }

func (e *Environment) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %d processors", e.System, e.Processors)
	for _, known := range []string{e.Processor, e.Memory} {
		if known != "" {
			b.WriteString(", " + known)
		}
	}
	fmt.Fprintf(&b, "; load %.1f before, %.1f after\n%s; MySQL %s; Redis %s\n", e.LoadBefore, e.LoadAfter, e.Go, e.MySQL, e.Redis)
	for i, name := range shown() {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(name + "=" + e.Settings[name])
	}
	b.WriteString("\n" + e.Gateway)
	if e.Against != "" {
		b.WriteString("\nagainst " + e.Against)
	}
	return b.String() + "\n"
}
