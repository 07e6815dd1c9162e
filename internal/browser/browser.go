//go:build unix

package browser

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// Bounds on a busy machine.
const (
	installTimeout = 5 * time.Minute
	startTimeout   = 90 * time.Second
	lifetime       = 5 * time.Minute // of one browser: a page that hangs must not hang the tests
)

// New starts a browser with one empty page, 1280 by 800, and returns the
// context of that page for chromedp.Run and chromedp.Do. It lives as long as the test and at
// most five minutes.
func New(tb testing.TB) context.Context {
	tb.Helper()
	installing, cancel := context.WithTimeout(tb.Context(), installTimeout)
	defer cancel()
	path, err := find(installing)
	if err != nil {
		if os.Getenv("CI") == "true" {
			tb.Fatalf("browser: no Chromium: %v", err)
		}
		tb.Skipf("browser: no Chromium: %v", err)
	}
	return start(tb, path)
}

func start(tb testing.TB, path string) context.Context {
	tb.Helper()
	// The test's own context ends before its clean-up, which has to speak to the
	// browser.
	living, end := context.WithTimeout(context.WithoutCancel(tb.Context()), lifetime)
	allocated, _ := chromedp.NewExecAllocator(living, options(path, tb.TempDir())...)
	complaints := &complaints{}
	page, _ := chromedp.NewContext(allocated, chromedp.WithListener(complaints.hear))
	tb.Cleanup(func() {
		_ = chromedp.Cancel(page) // an orderly end; if it fails, the next line is a harder one
		end()
		chromedp.FromContext(page).Allocator.Wait()
		for _, text := range complaints.all() {
			tb.Errorf("browser: %s", text)
		}
	})
	// The first Do starts the browser and must not have a deadline of its own:
	// the browser would end with it.
	slow := time.AfterFunc(startTimeout, end)
	err := chromedp.Do(page)
	slow.Stop()
	if err != nil {
		tb.Fatalf("browser: start %s: %v", path, err)
	}
	return page
}

func options(path, profile string) []chromedp.ExecAllocatorOption {
	return append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.UserDataDir(profile),
		chromedp.NoSandbox, // a container's root has no other choice; pages are our own
		chromedp.WindowSize(1280, 800),
		chromedp.WSURLReadTimeout(startTimeout),
		chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("no-proxy-server", true),
		// A page that loads anything from elsewhere finds nothing there.
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"),
	)
}
