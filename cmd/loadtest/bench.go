//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncegate/oncegate/internal/loopback"
	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/loadtest/bench"
)

// The exit codes of a comparison of two builds.
const (
	exitSlower  = 1
	exitUnclear = 2
)

// baselineCommandName is for this program itself: it starts its baselines as
// processes, since the gateway is one as well.
const baselineCommandName = "bench-baseline"

func benchCommands() []*cobra.Command { return []*cobra.Command{benchCommand(), baselineCommand()} }

// benchFlags are the flags of `loadtest bench` as they were given.
type benchFlags struct {
	rounds           int
	seconds          float64
	connections      []int
	records          int64
	paths            []string
	keys             int
	open             int
	clients          int
	bufferPool       string
	profiles         string
	gateway, against string
	json             string
}

func benchCommand() *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure a gateway against baselines, as ratios",
		Long: "Measure a gateway against baselines, as ratios, on a MySQL and a Redis of its own. See docs/performance.md.\n\n" +
			"Exit codes: 0 measured, 2 usage, 97 it could not be measured, 130 interrupted. With --against: 0 not slower,\n" +
			"1 a path is below 0.9 × of the other build, 2 the noise is too large to tell.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.execute(cmd) },
	}
	s := cmd.Flags()
	s.SortFlags = false
	s.IntVar(&f.rounds, "rounds", 3, "turns of each side")
	s.Float64Var(&f.seconds, "seconds", 3, "that are measured in a turn; a quarter more goes before, to warm up")
	s.IntSliceVar(&f.connections, "connections", []int{16, 64, 256}, "numbers of connections, ascending")
	s.Int64Var(&f.records, "records", 0, "also measure new orders with so many records in the tables, such as 10000000")
	s.StringSliceVar(&f.paths, "paths", nil, "only these: new-http, new-sql, dup-redis, dup-process, idle, records; only measured when named: hot-user, hot-sku, gateways-2, gateways-4, redis-away-new, redis-away-dup, and memory, latency, storm, recovery, which compare nothing; with --against: new, dup-redis, dup-process")
	s.IntVar(&f.keys, "keys", 130_000, "orders whose receipts the path memory looks at; so many fill a gateway's memory for them")
	s.IntVar(&f.open, "open", 10_000, "idle connections that the path memory opens")
	s.IntVar(&f.clients, "clients", 1000, "that ask for one key at once on the path storm")
	s.StringVar(&f.bufferPool, "buffer-pool", "1G", "memory of MySQL for its tables, in M or G; a full table that does not fit is read from the disk")
	s.StringVar(&f.gateway, "gateway", "", "the oncegate binary; default: beside this program, or on PATH")
	s.StringVar(&f.against, "against", "", "another oncegate binary to compare with, in place of the baselines")
	s.StringVar(&f.profiles, "profiles", "", "directory for a CPU profile of the gateway on each path, and its first ten functions")
	s.StringVar(&f.json, "json", "", "file for all that was measured")
	return cmd
}

func (f *benchFlags) execute(cmd *cobra.Command) (err error) {
	c, err := f.config(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interruption does not wait for anything
	debug.SetGCPercent(gcPercent)
	report, err := benchOnServers(ctx, c, f.bufferPool)
	switch {
	case ctx.Err() != nil:
		return &exitError{exitInterrupted, err}
	case err != nil:
		return &exitError{exitUnreachable, err}
	}
	if err := report.Text(cmd.OutOrStdout()); err != nil {
		return err
	}
	if f.json != "" {
		if err := create(f.json, report.Write); err != nil {
			return err
		}
	}
	if f.against == "" {
		return nil
	}
	return conclude(cmd.OutOrStdout(), report)
}

// conclude makes the exit code of a comparison.
func conclude(w io.Writer, report *bench.Report) error {
	verdict, why := report.Verdict()
	fmt.Fprintf(w, "\n%s\n", why)
	switch verdict {
	case bench.Slower:
		return &exitError{code: exitSlower}
	case bench.Unclear:
		return &exitError{code: exitUnclear}
	case bench.Fine:
	}
	return nil
}

func (f *benchFlags) config(progress io.Writer) (bench.Config, error) {
	if err := checkBufferPool(f.bufferPool); err != nil {
		return bench.Config{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return bench.Config{}, fmt.Errorf("the path of this program: %w", err)
	}
	c := bench.Config{
		Rounds: f.rounds, Window: window(f.seconds), Connections: f.connections,
		Records: f.records, Paths: f.paths, Profiles: f.profiles,
		Keys: f.keys, Open: f.open, Clients: f.clients,
		Baseline: []string{self, baselineCommandName}, Reserve: reserve,
		Version: version(), Progress: progress,
	}
	if f.profiles != "" {
		if err := os.MkdirAll(f.profiles, 0o750); err != nil {
			return c, fmt.Errorf("--profiles: %w", err)
		}
	}
	if c.Gateway, err = findGateway(f.gateway, self); err != nil {
		return c, err
	}
	if f.against != "" {
		if c.Against, err = exec.LookPath(f.against); err != nil {
			return c, fmt.Errorf("--against: %w", err)
		}
	}
	return c, c.Check()
}

// window is so many seconds; what no time is becomes none.
func window(seconds float64) time.Duration {
	if !(seconds > 0 && seconds < 1e9) {
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}

// findGateway resolves the binary before any server is started.
func findGateway(given, self string) (string, error) {
	if given != "" {
		path, err := exec.LookPath(given)
		if err != nil {
			return "", fmt.Errorf("--gateway: %w", err)
		}
		return path, nil
	}
	if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), "oncegate")); err == nil {
		return path, nil
	}
	path, err := exec.LookPath("oncegate")
	if err != nil {
		return "", fmt.Errorf("--gateway: %w", err)
	}
	return path, nil
}

func reserve() (addr string, release func() error, err error) {
	port, err := loopback.Reserve()
	if err != nil {
		return "", nil, err
	}
	return port.Addr(), port.Release, nil
}

// smallestPool is MySQL's own bound, in M.
const smallestPool = 5

func checkBufferPool(text string) error {
	digits, inG := strings.CutSuffix(text, "G")
	if !inG {
		digits = strings.TrimSuffix(text, "M")
	}
	if n, err := strconv.ParseUint(digits, 10, 16); err != nil || digits == text || n == 0 || !inG && n < smallestPool {
		return fmt.Errorf("--buffer-pool: %q is not a size such as 512M or 1G, of %dM at least", text, smallestPool)
	}
	return nil
}

// roomy are settings of a server that is not starved of memory. Durability is
// as testserver has it: every commit is on disk, log and binary log.
func roomy(bufferPool string) []string {
	return []string{"--innodb-buffer-pool-size=" + bufferPool, "--innodb-redo-log-capacity=1G", "--max-connections=1000"}
}

// benchOnServers runs a bench on servers that it starts and stops.
func benchOnServers(ctx context.Context, c bench.Config, bufferPool string) (report *bench.Report, err error) {
	sql, stopSQL, err := testserver.LaunchMySQL(ctx, roomy(bufferPool)...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stopSQL()) }()
	redis, stopRedis, err := testserver.LaunchRedis(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stopRedis()) }()
	c.MySQL, c.Redis, c.Outage = sql.RootDSN, redis.Addr, redis.Outage
	return bench.Run(ctx, c)
}

func baselineCommand() *cobra.Command {
	var o bench.BaselineOptions
	cmd := &cobra.Command{
		Use:    baselineCommandName,
		Short:  "Serve a baseline of the bench",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return bench.ServeBaseline(ctx, o)
		},
	}
	s := cmd.Flags()
	s.StringVar(&o.Kind, "kind", bench.BaselineBare, "bare or redis")
	s.StringVar(&o.Listen, "listen", "127.0.0.1:0", "where to listen")
	s.StringVar(&o.Redis, "redis", "", "address of Redis")
	s.IntVar(&o.Connections, "connections", 16, "size of the pool")
	return cmd
}
