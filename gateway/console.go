package gateway

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strconv"
)

// consoleFiles are the console: a page that is nothing but a client of this
// listener's API, as it is in the repository.
//
//go:embed console
var consoleFiles embed.FS

// asset is one file of the console.
type asset struct {
	contentType, etag string
	body              []byte
}

// consolePolicy lets the page run its own files only, and talk to nobody else.
const consolePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// consoleRoutes are what the console asks.
func (a *Admin) consoleRoutes() []adminRoute {
	if a.o.Insight == nil {
		return nil
	}
	return []adminRoute{
		{http.MethodGet, "/admin/v1/stats", a.getStats},
		{http.MethodGet, "/admin/v1/events", a.getEvents},
		{http.MethodGet, "/admin/v1/conflicts", a.getConflicts},
		{http.MethodGet, "/admin/v1/breaker", a.getBreaker},
		{http.MethodGet, "/admin/v1/ttl", a.getTTL},
	}
}

// mountConsole adds the console's files, if anything answers it.
func (a *Admin) mountConsole(mux *http.ServeMux) {
	if a.o.Insight == nil {
		return
	}
	for name, file := range readConsole() {
		mux.Handle("/console/"+name, a.serveAsset(file))
		if name == "index.html" {
			mux.Handle("/{$}", a.serveAsset(file))
			mux.Handle("/console/{$}", a.serveAsset(file))
			mux.Handle("/console", http.RedirectHandler("/", http.StatusMovedPermanently))
		}
	}
}

func readConsole() map[string]asset {
	files := map[string]asset{}
	err := fs.WalkDir(consoleFiles, "console", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := consoleFiles.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		files[name[len("console/"):]] = asset{assetType(path.Ext(name)), `"` + hex.EncodeToString(sum[:8]) + `"`, body}
		return nil
	})
	if err != nil {
		panic(err) // the files are in the binary
	}
	return files
}

func assetType(extension string) string {
	switch extension {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	default:
		return "text/plain; charset=utf-8"
	}
}

// serveAsset serves a file to whoever can connect: a browser cannot show a token
// before it has the page that asks for one, and there is nothing to see in it.
func (a *Admin) serveAsset(f asset) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := requestID(r, "")
		w.Header().Set("X-Request-Id", id)
		h := w.Header()
		if p := a.sameSite(r); p != nil {
			a.problem(w, p)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", http.MethodGet)
			a.problem(w, newProblem(CodeMethodNotAllowed))
			return
		}
		h.Set("Content-Security-Policy", consolePolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-cache") // ask each time, by the ETag
		h.Set("ETag", f.etag)
		h.Set("Content-Type", f.contentType)
		if r.Header.Get("If-None-Match") == f.etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		h.Set("Content-Length", strconv.Itoa(len(f.body)))
		_, _ = w.Write(f.body) // the client is gone if it fails, and there is nobody to tell
	})
}
