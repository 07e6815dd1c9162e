package exact

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNamesAreTakenAsTheyAreSpelled(t *testing.T) {
	t.Parallel()
	o, err := Parse([]byte(` {"Order_ID":"a","ORDER_ID":"b","orders":[{"\u0073ku":"tea","\u017fku":"no"}],"n":"2","x":null} `))
	require.NoError(t, err)
	require.Empty(t, o.Text("order_id"))
	require.Equal(t, "a", o.Text("Order_ID"))
	require.Equal(t, `"2"`, string(o["n"]), "as it is spelled")
	var rows []Object
	require.NoError(t, o.Read("orders", &rows))
	require.Len(t, rows, 1)
	require.Equal(t, "tea", rows[0].Text("sku"), "an escape is another spelling of the same name")
	left := 7
	require.NoError(t, o.Read("x", &left), "null is as good as absent")
	require.NoError(t, o.Read("y", &left))
	require.Equal(t, 7, left)
	require.ErrorContains(t, o.Read("n", &left), `"n"`)
	require.Empty(t, Object(nil).Text("n"))
}

func TestWhatIsNoObjectIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{``, `null`, `[]`, `"a"`, `1`, `{`, `{"a":1}{}`, `{"a":1} x`, `{"a"}`, `{"a":1,"a":1}`, `{"a":1,"\u0061":2}`, `{1:2}`} {
		o, err := Parse([]byte(text))
		require.Error(t, err, text)
		require.Empty(t, o, text)
	}
	o, err := Parse([]byte(`{"orders":[{"sku":"tea","sku":"tea"}],"none":null}`))
	require.NoError(t, err)
	var rows []Object
	require.ErrorContains(t, o.Read("orders", &rows), "twice")
	require.NoError(t, o.Read("none", &rows))
}
