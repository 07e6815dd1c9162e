package gateway_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// net/http/pprof looks for its parameters in a form as well, whatever the method:
// one would pass by the bound on seconds, and its files would go to the disk.
func TestAProfileReadsNoBody(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	gone, leave := context.WithCancel(context.Background())
	leave()
	const form = "--b\r\nContent-Disposition: form-data; name=\"seconds\"\r\n\r\n100000\r\n--b--\r\n"
	for _, path := range []string{"profile", "trace", "heap", "goroutine"} {
		body := strings.NewReader(form)
		req := httptest.NewRequestWithContext(gone, http.MethodGet, "/debug/pprof/"+path, io.NopCloser(body))
		req.Host, req.RemoteAddr = "127.0.0.1:9090", here
		req.Header.Set("Content-Type", "multipart/form-data; boundary=b")
		d.admin.Handler().ServeHTTP(httptest.NewRecorder(), req)
		require.Equal(t, len(form), body.Len(), path)
	}
}
