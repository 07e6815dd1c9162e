//go:build unix

package testserver

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// installation is an engine that can be started on this machine.
type installation struct {
	binary  string // path as the process sees it
	root    string // directory that the process is locked into; empty for none
	image   string // Docker image, when there is no binary
	version version
}

func (i installation) String() string {
	switch {
	case i.image != "":
		return "Docker image " + i.image
	case i.root != "":
		return fmt.Sprintf("%s (%s in %s)", i.version, i.binary, i.root)
	default:
		return fmt.Sprintf("%s (%s)", i.version, i.binary)
	}
}

// locate finds the engine, or installs it.
func locate(ctx context.Context, e engine) (installation, error) {
	if found, ok := findInstalled(ctx, e); ok {
		return found, nil
	}
	found, installErr := install(ctx, e)
	if installErr == nil {
		return found, nil
	}
	if err := dockerAnswers(ctx); err != nil {
		return installation{}, fmt.Errorf("%s: %w: no binary on PATH; %w; %w", e.name, ErrMissing, installErr, err)
	}
	return installation{image: e.image}, nil
}

// findInstalled looks on PATH and then in the cache directory.
func findInstalled(ctx context.Context, e engine) (installation, bool) {
	paths := onPath(e.binaries)
	if len(onPath(e.tools)) < len(e.tools) {
		paths = nil // of no use without them
	}
	for _, path := range paths {
		if v, err := probe(ctx, e, "", path); err == nil {
			return installation{binary: path, version: v}, true
		}
	}
	if e.chroot == "" || os.Geteuid() != 0 {
		return installation{}, false
	}
	root, err := chrootDir(e)
	if err != nil {
		return installation{}, false
	}
	path := filepath.Join("/usr/sbin", e.binaries[0])
	v, err := probe(ctx, e, root, path)
	if err != nil {
		return installation{}, false
	}
	return installation{binary: path, root: root, version: v}, true
}

// onPath also looks where Debian keeps servers, which is not on the PATH of
// ordinary users.
func onPath(names []string) []string {
	var paths []string
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			paths = append(paths, path)
			continue
		}
		for _, dir := range []string{"/usr/local/sbin", "/usr/sbin"} {
			if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				paths = append(paths, path)
				break
			}
		}
	}
	return paths
}

// probe asks a program for its version and says whether it is the engine and
// new enough.
func probe(ctx context.Context, e engine, root, path string) (version, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	out, err := confined(ctx, root, path, "--version").CombinedOutput()
	if err != nil {
		return version{}, fmt.Errorf("ask %s for its version: %w", path, err)
	}
	match := e.banner.FindSubmatch(out)
	// A mysqld on PATH is often MariaDB's.
	if match == nil || bytes.Contains(out, []byte("MariaDB")) != (e.id == "mariadb") {
		return version{}, fmt.Errorf("%s is not %s: %s", path, e.name, strings.TrimSpace(string(out)))
	}
	v, err := parseVersion(string(match[1]))
	if err != nil {
		return version{}, err
	}
	if v.before(e.oldest) {
		return version{}, fmt.Errorf("%s is %s %s, older than %s", path, e.name, v, e.oldest)
	}
	return v, nil
}
