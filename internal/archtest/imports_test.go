package archtest_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/oncegate/oncegate/"

// rule says what the packages below a folder may depend on, directly or not.
type rule struct {
	ours      []string // folders of ours beside its own
	inTests   []string // and those that its tests may use as well
	foreign   bool     // modules of others
	forbidden []string // of others, never
}

const (
	gin    = "github.com/gin-gonic/gin"
	redis  = "github.com/redis/go-redis"
	mysql  = "github.com/go-sql-driver/mysql"
	sqlite = "modernc.org/sqlite"
)

// rules has the longest folder that fits first. A folder without a rule fails
// the test: whoever adds one says here what it may know.
func rules() []struct {
	folder string
	rule   rule
} {
	return []struct {
		folder string
		rule   rule
	}{
		{"order/ordertest", rule{ours: []string{"order"}, foreign: true}},
		{"order", rule{}},
		// Its values are what the admin API shows; it knows nothing of HTTP.
		{"gateway", rule{ours: []string{"order", "insight", "internal/crashpoint"}, foreign: true, forbidden: []string{redis, mysql, sqlite}}},
		{"insight", rule{ours: []string{"order"}}},
		{"cache", rule{ours: []string{"order", "internal/crashpoint"}, foreign: true, forbidden: []string{gin, mysql, sqlite}}},
		{"store", rule{ours: []string{"order", "internal/crashpoint"}, foreign: true, forbidden: []string{gin, redis}}},
		// Its tests crash between a real ledger's commit and the acknowledgement.
		{"consumer", rule{ours: []string{"order"}, inTests: []string{"store"}, foreign: true, forbidden: []string{gin, mysql, sqlite}}},
		// The MySQL driver is what parses a DSN.
		{"configs", rule{foreign: true, forbidden: []string{gin, redis, sqlite}}},
		// Whoever imports the client gets it alone.
		{"client/retryable", rule{ours: []string{"client"}, foreign: true, forbidden: []string{gin, redis, mysql, sqlite}}},
		{"client", rule{}},
		{"loadtest", rule{foreign: true}},
		{"api", rule{}},
		{"examples/storefront", rule{}},
		{"cmd/gateway", rule{ours: []string{"order", "gateway", "cache", "store", "consumer", "configs", "api", "examples/storefront", "insight", "internal/crashpoint"}, inTests: []string{"deploy"}, foreign: true}},
		// The bench starts private servers.
		{"cmd/loadtest", rule{ours: []string{"loadtest", "internal/testserver", "internal/loopback"}, foreign: true}},
		// The rules and the dashboard, read for the tests that hold them against a scrape.
		{"deploy", rule{foreign: true}},
		{"internal/loopback", rule{}},
		{"internal/testserver", rule{ours: []string{"internal/loopback"}, foreign: true}},
		{"internal/browser", rule{ours: []string{"internal/testserver", "internal/loopback"}, foreign: true}},
		{"internal/faultproxy", rule{ours: []string{"internal/loopback"}, foreign: true}},
		{"internal/crashpoint", rule{}},
		// It drives the binaries as anybody could; the harness judges what they did.
		{"internal/chaos", rule{inTests: []string{"loadtest", "internal/crashpoint"}, foreign: true}},
		// So does this one, on engines that fail over.
		{"internal/hatest", rule{inTests: []string{"loadtest", "store"}, foreign: true}},
		{"internal/archtest", rule{}},
		// The gateway's own loader judges the environment in the compose file.
		{"internal/composetest", rule{ours: []string{"configs"}, foreign: true}},
		{"internal/deploytest", rule{ours: []string{"configs"}, foreign: true}},
	}
}

// forTests are the folders that any test may use.
func forTests() []string {
	return []string{"order", "order/ordertest", "internal/testserver", "internal/faultproxy", "internal/loopback", "internal/browser"}
}

// listed is what go list tells of a package.
type listed struct {
	ImportPath string

	Deps         []string
	TestImports  []string
	XTestImports []string
}

func TestPackagesKnowOnlyWhatTheyMay(t *testing.T) {
	t.Parallel()
	for _, p := range ourPackages(t) {
		folder := strings.TrimPrefix(p.ImportPath, module)
		own, r, ok := ruleFor(folder)
		require.True(t, ok, "%s has no rule", folder)
		for _, dependency := range p.Deps {
			require.True(t, allowed(dependency, own, r, nil), "%s must not depend on %s", folder, dependency)
		}
		// Tests also use what is for tests; foreign modules as they like.
		r.foreign, r.forbidden = true, nil
		for _, dependency := range slices.Concat(p.TestImports, p.XTestImports) {
			require.True(t, allowed(dependency, own, r, slices.Concat(forTests(), r.inTests)), "a test of %s must not import %s", folder, dependency)
		}
	}
}

func TestRulesCatchForbiddenImports(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ folder, dependency string }{
		{"order", module + "store"},
		{"order", "github.com/google/uuid"},
		{"gateway", module + "store"},
		{"gateway", module + "cache"},
		{"gateway", module + "order/ordertest"},
		{"gateway", redis + "/v9"},
		{"store/migrations", module + "cache"},
		{"store", gin},
		{"cache", module + "configs"},
		{"loadtest/verdict", module + "order"},
		{"cmd/gateway", module + "internal/faultproxy"},
		{"internal/testserver", module + "store"},
	} {
		own, r, ok := ruleFor(c.folder)
		require.True(t, ok)
		require.False(t, allowed(c.dependency, own, r, nil), "%s may import %s", c.folder, c.dependency)
	}
	_, _, ok := ruleFor("orders")
	require.False(t, ok, "a name that only begins like another is not its folder")
}

func ruleFor(folder string) (own string, r rule, ok bool) {
	for _, c := range rules() {
		if within(folder, c.folder) {
			return c.folder, c.rule, true
		}
	}
	return "", rule{}, false
}

func allowed(dependency, own string, r rule, more []string) bool {
	if folder, ours := strings.CutPrefix(dependency, module); ours {
		target, _, _ := ruleFor(folder)
		return target == own || slices.Contains(r.ours, target) || slices.Contains(more, target)
	}
	// The first element of a module's path is a host; of the standard
	// library's, it is a word.
	host, _, _ := strings.Cut(dependency, "/")
	if !strings.Contains(host, ".") {
		return true
	}
	for _, forbidden := range r.forbidden {
		if within(dependency, forbidden) {
			return false
		}
	}
	return r.foreign
}

// within says whether a path is a folder or below it.
func within(p, folder string) bool {
	return p == folder || strings.HasPrefix(p, folder+"/")
}

func ourPackages(t *testing.T) []listed {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Deps,TestImports,XTestImports", path.Join(module, "..."))
	out, err := command.Output()
	require.NoError(t, err)
	var packages []listed
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		packages = append(packages, p)
	}
	require.NotEmpty(t, packages)
	return packages
}
