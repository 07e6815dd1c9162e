package gateway

import (
	"encoding/json"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"
)

// Client developers copy the examples of the document: they are what is answered.
func TestTheProblemsOfTheDocumentAreThoseThatAreAnswered(t *testing.T) {
	t.Parallel()
	doc, err := openapi3.NewLoader().LoadFromFile("../api/openapi.yaml")
	require.NoError(t, err)
	compared := 0
	for name, response := range doc.Components.Responses {
		media := response.Value.Content["application/problem+json"]
		if media == nil {
			continue
		}
		for example, given := range media.Examples {
			text, err := json.Marshal(given.Value.Value)
			require.NoError(t, err)
			var p struct {
				Type, Title, Detail, Code, Outcome string

				Status     int
				Retryable  bool
				SafeNewKey bool `json:"safe_new_key"`
			}
			require.NoError(t, json.Unmarshal(text, &p))
			kind := Code(p.Code).kind()
			at := name + "/" + example
			require.Equal(t, DefaultProblemBase+Code(p.Code).slug(), p.Type, at)
			require.Equal(t, kind.title, p.Title, at)
			require.Equal(t, kind.status, p.Status, at)
			require.Equal(t, string(kind.outcome), p.Outcome, at)
			require.Equal(t, kind.retryable, p.Retryable, at)
			require.Equal(t, kind.safeNewKey, p.SafeNewKey, at)
			if Code(p.Code) != CodeStateConflict { // which tells of the order's state
				require.Equal(t, kind.detail, p.Detail, at)
			}
			compared++
		}
	}
	require.Greater(t, compared, 4)
}
