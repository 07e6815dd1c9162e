//go:build linux

package chaos

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestThePageSaysWhatIsTested holds docs/faults.md against the faults, the crash
// points, the tests and the files that it names.
func TestThePageSaysWhatIsTested(t *testing.T) {
	t.Parallel()
	const root = "../.."
	text, err := os.ReadFile(filepath.Join(root, "docs/faults.md"))
	require.NoError(t, err)
	page := string(text)
	named := func(pattern string) (names []string) {
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(page, -1) {
			names = append(names, match[1])
		}
		require.NotEmpty(t, names, pattern)
		return names
	}

	points := 0
	for _, e := range endings() {
		points += len(e.points)
	}
	require.Equal(t, []string{strconv.Itoa(points)}, named(`(\d+) points of three endings`))
	var faults []string
	for _, f := range allFaults() {
		faults = append(faults, f.name)
	}
	require.Equal(t, []string{strconv.Itoa(len(faults))}, named(`which of (\d+) faults`))
	for i, number := range named(`(?m)^\| (\d+) \|`) {
		require.Equal(t, strconv.Itoa(i+1), number, "the matrix has no gaps")
	}
	// In the matrix, what is quoted is a fault: N "redis flushed".
	for _, row := range named(`(?m)^(\| \d+ \|.*)$`) {
		if _, injected, of := strings.Cut(row, `N "`); of {
			injected, _, _ = strings.Cut(injected, " |")
			for i, quoted := range strings.Split(`N "`+injected, `"`) {
				if i%2 == 1 {
					require.Contains(t, faults, quoted, row)
				}
			}
		}
	}

	var tests, files []string
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, match := range declared.FindAllStringSubmatch(string(source), -1) {
			tests = append(tests, match[1])
		}
		name, relErr := filepath.Rel(root, path)
		files = append(files, name)
		return errors.Join(err, relErr)
	}))
	for _, name := range named("`((?:Test|Fuzz)\\w+)") {
		require.Contains(t, tests, name)
	}
	for _, name := range named("`([\\w/]+_test\\.go)`") {
		require.Contains(t, files, name)
	}
}
