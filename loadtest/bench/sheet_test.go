//go:build unix

package bench

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSheetsShowMedianSpreadAndWhatIsNotTold(t *testing.T) {
	t.Parallel()
	sheet := Sheet{
		ID: "memory", Title: "Memory", Of: "state",
		Columns: []Column{{"resident", octets}, {"keys", count}, {"p99", elapsed}, {"answers", rate}},
	}
	sheet.add("idle", once(50*mebi), once(100_000), once(0.0125), once(1234))
	sheet.add("rounds", Figure{300, 100, 20_000}, untold(), Figure{0.001, 0.002}, Figure{5, 5})
	sheet.note("said %d times", 1)
	sheet.note("said %d times", 1)
	r := Report{Schema: schema, Environment: Environment{Settings: map[string]string{}}, Sheets: []Sheet{sheet}}
	var text, file bytes.Buffer
	require.NoError(t, r.Text(&text))
	require.Contains(t, text.String(), `
**Memory**

| state  | resident               | keys    | p99                       | answers |
| ------ | ---------------------- | ------- | ------------------------- | ------- |
| idle   | 50.0 MiB               | 100,000 | 12.50 ms                  | 1,234/s |
| rounds | 300 B (100 B–20,000 B) | –       | 1.50 ms (1.00 ms–2.00 ms) | 5/s     |

- said 1 times
`)
	require.NotContains(t, text.String(), "took turns", "nothing was compared")
	require.NoError(t, r.Write(&file))
	var back Report
	require.NoError(t, json.Unmarshal(file.Bytes(), &back))
	require.Equal(t, r.Sheets, back.Sheets)
}
