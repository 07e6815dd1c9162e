//go:build unix

package browser

import (
	"context"
	"os/exec"

	"github.com/oncegate/oncegate/internal/testserver"
)

// names are what Chromium is called: by Debian, by other distributions, by its
// vendor.
func names() []string {
	return []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}
}

// find returns the browser's path, and installs it where there is none.
func find(ctx context.Context) (string, error) {
	var path string
	err := testserver.InstallPackages(ctx, func() (ok bool) {
		path, ok = onPath()
		return ok
	}, "chromium")
	return path, err
}

func onPath() (string, bool) {
	for _, name := range names() {
		if path, err := exec.LookPath(name); err == nil {
			return path, true
		}
	}
	return "", false
}
