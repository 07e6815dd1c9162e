package gateway_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
)

var contract = sync.OnceValues(func() (*openapi3.T, error) {
	return openapi3.NewLoader().LoadFromFile("../api/openapi.yaml")
})

func document(t testing.TB) *openapi3.T {
	t.Helper()
	doc, err := contract()
	require.NoError(t, err)
	return doc
}

// operation finds what the document says of a request; for what it does not
// name, that every answer is a problem.
func operation(doc *openapi3.T, method, escapedPath string) *openapi3.Operation {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	var best *openapi3.Operation
	bestLiterals := -1
	for template, item := range doc.Paths.Map() {
		op := item.GetOperation(method)
		if literals, ok := matches(template, escapedPath); ok && op != nil && literals > bestLiterals {
			best, bestLiterals = op, literals
		}
	}
	if best == nil {
		best = &openapi3.Operation{Responses: openapi3.NewResponses(
			openapi3.WithName("default", doc.Components.Responses["AdminProblem"].Value))}
	}
	return best
}

func matches(template, path string) (literals int, ok bool) {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return 0, false
	}
	for i := range want {
		switch {
		case strings.HasPrefix(want[i], "{"):
		case want[i] != got[i]:
			return 0, false
		default:
			literals++
		}
	}
	return literals, true
}

// conforms holds an answer against the document: status, headers, type, body.
func conforms(t testing.TB, req *http.Request, r reply) {
	t.Helper()
	doc := document(t)
	if req.Method == http.MethodHead {
		require.Empty(t, r.body)
	}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: req,
			Route:   &routers.Route{Spec: doc, Operation: operation(doc, req.Method, req.URL.EscapedPath())},
		},
		Status: r.status,
		Header: r.header,
		Body:   io.NopCloser(strings.NewReader(r.body)),
		Options: &openapi3filter.Options{
			IncludeResponseStatus: true,
		},
	}
	require.NoError(t, openapi3filter.ValidateResponse(context.Background(), input), "%s %s: %d %s", req.Method, req.URL, r.status, r.body)
	require.Empty(t, undocumented(input.RequestValidationInput.Route.Operation, r), "%s %s: %d", req.Method, req.URL, r.status)
	if r.status >= http.StatusBadRequest && !strings.HasSuffix(req.URL.Path, "z") {
		require.Equal(t, "no-store", r.header.Get("Cache-Control"))
	}
}

// ofAnyAnswer are headers that HTTP itself knows, and the trace's.
func ofAnyAnswer() []string {
	return []string{"Connection", "Content-Length", "Content-Type", "Date", "Traceresponse", "Transfer-Encoding"}
}

// undocumented lists the headers of an answer that the document does not name.
func undocumented(op *openapi3.Operation, r reply) (names []string) {
	said := op.Responses.Status(r.status)
	if said == nil {
		said = op.Responses.Default()
	}
	known := ofAnyAnswer()
	for name := range said.Value.Headers {
		known = append(known, http.CanonicalHeaderKey(name))
	}
	for name := range r.header {
		if !slices.Contains(known, name) {
			names = append(names, name)
		}
	}
	return names
}

func TestTheDocumentIsValid(t *testing.T) {
	t.Parallel()
	doc := document(t)
	require.NoError(t, doc.Validate(context.Background()))
	require.True(t, doc.IsOpenAPI31OrLater())
}

func TestTheDocumentNamesEveryCode(t *testing.T) {
	t.Parallel()
	var codes []any
	for _, c := range gateway.Codes() {
		codes = append(codes, string(c))
	}
	require.ElementsMatch(t, codes, document(t).Components.Schemas["Problem"].Value.Properties["code"].Value.Enum)
}

func TestEveryPathOfTheDocumentIsServed(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	for template, item := range document(t).Paths.Map() {
		if strings.HasPrefix(template, "/admin") || template == "/metrics" {
			continue
		}
		path := strings.NewReplacer("{id}", "x", "{key}", "x").Replace(template)
		for method := range item.Operations() {
			r := k.do(method, path, "")
			require.NotEqual(t, http.StatusMethodNotAllowed, r.status, "%s %s", method, path)
			if r.status == http.StatusNotFound {
				t.Errorf("%s %s is not served", method, path)
			}
		}
	}
}
