package gateway_test

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fetch asks for a file, as a browser does: without a token.
func (d *desk) fetch(peer, path string, headers ...header) reply {
	d.t.Helper()
	req := httptest.NewRequestWithContext(d.t.Context(), http.MethodGet, path, http.NoBody)
	req.Host, req.RemoteAddr = "127.0.0.1:9090", peer
	for _, h := range headers {
		h(req.Header)
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
		req.Header.Del("Host")
	}
	rec := httptest.NewRecorder()
	d.admin.Handler().ServeHTTP(rec, req)
	return reply{rec.Code, rec.Header(), rec.Body.String()}
}

func TestTheConsoleIsServedUnderAStrictPolicy(t *testing.T) {
	t.Parallel()
	w := newWatched(t)
	for path, contentType := range map[string]string{
		"/": "text/html", "/console/": "text/html", "/console/app.js": "text/javascript", "/console/style.css": "text/css",
		"/console/icon.svg": "image/svg+xml", "/console/vendor/LICENSES.txt": "text/plain", "/console/vendor/preact.js": "text/javascript",
	} {
		r := w.fetch(elsewhere, path)
		require.Equal(t, http.StatusOK, r.status, path)
		require.True(t, strings.HasPrefix(r.header.Get("Content-Type"), contentType), path)
		policy := r.header.Get("Content-Security-Policy")
		require.Contains(t, policy, "default-src 'none'")
		require.Contains(t, policy, "script-src 'self';")
		require.NotContains(t, policy, "unsafe")
		require.Equal(t, "nosniff", r.header.Get("X-Content-Type-Options"))

		again := w.fetch(elsewhere, path, with("If-None-Match", r.header.Get("ETag")))
		require.Equal(t, http.StatusNotModified, again.status, path)
	}
	require.Equal(t, http.StatusMovedPermanently, w.fetch(here, "/console").status)
	require.Equal(t, http.StatusUnauthorized, w.ask(elsewhere, http.MethodGet, "/console/nothing", "").status)
	require.Equal(t, http.StatusNotFound, w.ask(here, http.MethodGet, "/console/nothing", "").status)
	require.Equal(t, http.StatusForbidden, w.ask(here, http.MethodGet, "/", "", with("Host", "evil.example")).status)
	require.Equal(t, "METHOD_NOT_ALLOWED", w.ask(here, http.MethodPost, "/console/app.js", "{}").problem(t).Code)
}

var imports = regexp.MustCompile(`(?m)(?:\bfrom|\bimport)\s*["']([^"'\s]+)["']`)

func TestTheConsoleImportsItsOwnFilesOnly(t *testing.T) {
	t.Parallel()
	w := newWatched(t)
	seen := 0
	require.NoError(t, filepath.WalkDir("console", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".js" {
			return err
		}
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NotContains(t, string(text), "sourceMappingURL", name)
		for _, m := range imports.FindAllStringSubmatch(string(text), -1) {
			target := "/" + filepath.ToSlash(filepath.Join(filepath.Dir(name), m[1]))
			require.True(t, strings.HasPrefix(m[1], "./"), "%s imports %s", name, m[1])
			require.Equal(t, http.StatusOK, w.fetch(here, target).status, "%s imports %s", name, m[1])
			seen++
		}
		return nil
	}))
	require.Greater(t, seen, 20)
}

func TestTheConsoleKeepsToItsPolicyInItsOwnText(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("console/index.html")
	require.NoError(t, err)
	require.NotRegexp(t, `<script(?:[^>]*)>[^<]|\son[a-z]+=|style=|https?://`, string(page))
}
