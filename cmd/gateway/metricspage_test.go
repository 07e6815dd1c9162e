package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is scraped is explained, on the page for operators or that of messages.
func TestEveryMetricIsOnAPage(t *testing.T) {
	t.Parallel()
	g, _, _ := observed(t, true)
	var pages strings.Builder
	for _, name := range []string{"../../docs/operating.md", "../../docs/messages.md"} {
		page, err := os.ReadFile(name)
		require.NoError(t, err)
		pages.Write(page)
	}
	ours := 0
	for name := range scrape(t, g) {
		if !strings.HasPrefix(name, "oncegate_") {
			continue
		}
		ours++
		if !strings.HasPrefix(name, "oncegate_redis_pool_") { // of which the page has one line
			require.Contains(t, pages.String(), "`"+name)
		}
	}
	require.Greater(t, ours, 30)
}
