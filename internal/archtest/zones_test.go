package archtest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What depends on a time zone, and on its rules for summer time: names of package
// time, and methods of a time. Times are moments, and are written in UTC.
var (
	zoned        = []string{"Local", "LoadLocation", "ParseInLocation", "FixedZone", "Date"}
	zonedMethods = []string{"Local", "In", "AddDate", "Date", "Clock", "Year", "YearDay", "Month", "Day", "Weekday", "ISOWeek", "Hour", "Minute"}
)

func TestNothingDependsOnATimeZone(t *testing.T) {
	t.Parallel()
	files := 0
	require.NoError(t, filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".." || entry.Name() == "testdata"):
			return fs.SkipDir
		case entry.IsDir(), !strings.HasSuffix(path, ".go"), strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files++
		for _, use := range zonedIn(t, path, nil) {
			t.Errorf("%s depends on a time zone", use)
		}
		return nil
	}))
	require.Greater(t, files, 100, "the files were found")
}

func TestUsesOfATimeZoneAreSeen(t *testing.T) {
	t.Parallel()
	uses := zonedIn(t, "x.go", `package x
import "time"
var a = time.Now().UTC().Add(time.Hour)
var b = time.Now().Local()
var c, _ = time.ParseInLocation("", "", time.Local)
var d = a.AddDate(0, 0, 1)
`)
	require.Equal(t, []string{"x.go:4:9: Local", "x.go:5:12: ParseInLocation", "x.go:5:41: Local", "x.go:6:9: AddDate"}, uses)
}

// zonedIn lists the uses in a file, or in a source.
func zonedIn(t *testing.T, path string, source any) (uses []string) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.SkipObjectResolution)
	require.NoError(t, err)
	called := map[ast.Expr]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			called[n.Fun] = true
		case *ast.SelectorExpr:
			from, named := n.X.(*ast.Ident)
			inTime := named && from.Name == "time"
			if inTime && slices.Contains(zoned, n.Sel.Name) || !inTime && called[n] && slices.Contains(zonedMethods, n.Sel.Name) {
				uses = append(uses, files.Position(n.Pos()).String()+": "+n.Sel.Name)
			}
		}
		return true
	})
	return uses
}
