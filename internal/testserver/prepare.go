//go:build unix

package testserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// Prepare finds or installs everything that tests need and makes the
// templates, so that this time is not inside a test's time limit. It writes
// one line per engine. An engine that is not to be had is an error only where
// CI=true.
func Prepare(ctx context.Context, w io.Writer) error {
	if err := prepareCompiler(ctx, w); err != nil {
		return err
	}
	var all error
	for _, e := range []engine{mysqlEngine(), mariaDBEngine(), redisEngine()} {
		begin := time.Now()
		line, err := prepareEngine(ctx, e)
		if err != nil {
			if !Excused(err) {
				all = errors.Join(all, err)
			}
			line = err.Error()
		}
		if _, err := fmt.Fprintf(w, "%-8s %s (%s)\n", e.name, line, time.Since(begin).Round(time.Millisecond)); err != nil {
			return fmt.Errorf("report: %w", err)
		}
	}
	return all
}

func prepareEngine(ctx context.Context, e engine) (string, error) {
	if os.Getenv(e.addressEnv) != "" {
		return "named by " + e.addressEnv, nil
	}
	found, err := locate(ctx, e)
	if err != nil {
		return "", err
	}
	if found.image != "" {
		return found.String(), run(exec.CommandContext(ctx, "docker", "pull", "--quiet", found.image))
	}
	if e.id != "redis" {
		base, err := found.base()
		if err != nil {
			return "", err
		}
		if _, err := template(ctx, e, found, base); err != nil {
			return "", err
		}
	}
	return found.String(), nil
}

// prepareCompiler sees to the C compiler that the race detector needs.
func prepareCompiler(ctx context.Context, w io.Writer) error {
	if _, err := exec.LookPath("cc"); err == nil {
		return nil
	}
	if _, err := exec.LookPath("gcc"); err == nil {
		return nil
	}
	if os.Geteuid() != 0 {
		_, err := fmt.Fprintln(w, "no C compiler: go test -race needs one")
		return err
	}
	return aptInstall(ctx, "gcc", "libc6-dev")
}
