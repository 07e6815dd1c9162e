//go:build unix

package testserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// template returns an initialised data directory of the engine, to be copied
// for every server: initialising one takes ten seconds, copying it a fraction
// of one. It is made once per version and kept in the cache.
func template(ctx context.Context, e engine, found installation, base string) (string, error) {
	dir := filepath.Join(base, "template-"+e.id+"-"+found.version.String())
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(base, 0o755); err != nil { //nolint:gosec // servers that drop their privileges must reach their files below it
		return "", fmt.Errorf("template: %w", err)
	}
	unlock, err := lockFile(ctx, dir+".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(dir); err == nil { // made while this process waited
		return dir, nil
	}
	making := dir + ".making"
	if err := os.RemoveAll(making); err != nil {
		return "", fmt.Errorf("template: %w", err)
	}
	if err := initialise(ctx, e, found, making); err != nil {
		return "", errors.Join(fmt.Errorf("initialise %s: %w", e.name, err), os.RemoveAll(making))
	}
	// The identity of a server must be its own: the server makes a new one.
	if err := os.Remove(filepath.Join(making, "auto.cnf")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("template: %w", err)
	}
	if err := os.Rename(making, dir); err != nil {
		return "", fmt.Errorf("template: %w", err)
	}
	return dir, nil
}

// initialise makes an empty data directory with the engine's own tool.
func initialise(ctx context.Context, e engine, found installation, dir string) error {
	inside := found.inside(dir)
	if e.id == "mysql" {
		args := append(asRoot("--no-defaults"), "--initialize-insecure", "--datadir="+inside, redoSize(e))
		return run(confined(ctx, found.root, found.binary, args...))
	}
	tools := onPath(e.tools)
	if len(tools) < len(e.tools) {
		return fmt.Errorf("%v are not all on PATH", e.tools)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	// Force: it does not matter whether the name of the machine can be resolved.
	args := append(asRoot("--no-defaults"), "--force", "--auth-root-authentication-method=normal", "--skip-test-db", "--datadir="+inside, redoSize(e))
	return run(confined(ctx, found.root, tools[0], args...))
}

// asRoot adds what MySQL and MariaDB ask for before they run as root. They
// stay root: a change of user would clear the signal that ends a server with
// its test process.
func asRoot(args ...string) []string {
	if os.Geteuid() == 0 {
		return append(args, "--user=root")
	}
	return args
}

// redoSize keeps data directories small and quick to copy.
func redoSize(e engine) string {
	if e.id == "mysql" {
		return "--innodb-redo-log-capacity=64M"
	}
	return "--innodb-log-file-size=64M"
}

// inside turns a path of this machine into the same path as the server's
// process sees it.
func (i installation) inside(path string) string {
	return strings.TrimPrefix(path, i.root)
}

// base is the directory for templates and work directories: it has to be
// visible to the server.
func (i installation) base() (string, error) {
	if i.root != "" {
		return filepath.Join(i.root, "oncegate"), nil
	}
	return cacheDir()
}
