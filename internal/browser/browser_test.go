//go:build unix

package browser

import (
	"net/http"
	"net/http/httptest"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oncegate/oncegate/internal/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testserver.Settling(m)) }

// serve serves one page under a policy that allows its own scripts only.
func serve(t *testing.T, page string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'self'")
		if r.URL.Path == "/page.js" {
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = w.Write([]byte(`document.title = "run"; throw new Error("nobody caught me")`))
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(page))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestAPageIsShown(t *testing.T) {
	t.Parallel()
	page := New(t)
	require.NoError(t, chromedp.Do(page, chromedp.Navigate(serve(t, "<p id=p>fresh dumplings</p>"))))
	text, err := chromedp.Run(page, chromedp.Text("#p"))
	require.NoError(t, err)
	require.Equal(t, "fresh dumplings", text)
}

func TestTheWorldOutsideIsNotThere(t *testing.T) {
	t.Parallel()
	err := chromedp.Do(New(t), chromedp.Navigate("http://example.com/"))
	require.ErrorContains(t, err, "ERR_NAME_NOT_RESOLVED")
}

// recorder is a test that notes what it is told and goes on.
type recorder struct {
	testing.TB
	dir      string
	cleanups []func()
	errors   []string
}

func (r *recorder) Cleanup(f func())             { r.cleanups = append(r.cleanups, f) }
func (r *recorder) TempDir() string              { return r.dir }
func (r *recorder) Errorf(_ string, args ...any) { r.errors = append(r.errors, args[0].(string)) }

func TestComplaintsOfThePageFailTheTest(t *testing.T) {
	t.Parallel()
	New(t) // skips where there is no browser
	path, ok := onPath()
	require.True(t, ok)
	r := &recorder{TB: t, dir: t.TempDir()}
	page := start(r, path)
	heard := &complaints{}
	require.NoError(t, chromedp.Listen(page, heard.hear))
	require.NoError(t, chromedp.Do(page, chromedp.Navigate(serve(t,
		`<script>document.title = "inline"</script><script src="/page.js"></script>`))))
	require.Eventually(t, func() bool { return len(heard.all()) == 2 }, time.Minute, 10*time.Millisecond)
	for _, f := range r.cleanups {
		f()
	}
	require.Len(t, r.errors, 2)
	require.Contains(t, r.errors[0]+r.errors[1], "nobody caught me")
	require.Contains(t, r.errors[0]+r.errors[1], "Content Security Policy")
}

func TestTheBrowserEndsWithTheTest(t *testing.T) {
	t.Parallel()
	New(t) // skips where there is no browser
	path, ok := onPath()
	require.True(t, ok)
	r := &recorder{TB: t, dir: t.TempDir()}
	process := chromedp.FromContext(start(r, path)).Browser.Process()
	require.NoError(t, process.Signal(syscall.Signal(0)))
	for _, f := range r.cleanups {
		f()
	}
	require.ErrorIs(t, process.Signal(syscall.Signal(0)), os.ErrProcessDone)
	require.Empty(t, r.errors)
}
