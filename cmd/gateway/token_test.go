package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
)

// TestEveryScopeOfTheHelpIsMinted holds the help of the command against what the
// gateway believes.
func TestEveryScopeOfTheHelpIsMinted(t *testing.T) {
	t.Parallel()
	cfg := embedded(t.TempDir())
	cfg.Admin.AllowLoopback = false
	r := start(t, cfg)
	_, help, _ := command(t, nil, "token", "--help")
	for scope, allowed := range map[string][2]int{
		"orders":      {http.StatusForbidden, http.StatusForbidden},
		"admin.read":  {http.StatusOK, http.StatusForbidden},
		"admin.write": {http.StatusOK, http.StatusOK},
		"admin":       {http.StatusOK, http.StatusOK},
	} {
		require.Contains(t, help, scope)
		code, stdout, stderr := command(t, []string{"ONCEGATE_DATA_DIR=" + cfg.DataDir}, "token", "--user", "ann", "--scope", scope)
		require.Equal(t, exitOK, code, stderr)
		ann := newCustomer(t, cfg, "ann")
		ann.bearer = "Bearer " + strings.TrimSpace(stdout)
		admin := "http://" + r.AdminAddr() + "/admin/v1"
		require.Equal(t, allowed[0], ann.do(http.MethodGet, admin+"/config", "", "").status, scope)
		require.Equal(t, allowed[1], ann.do(http.MethodPut, admin+"/users/zoe", "", `{"balance":"1.00"}`).status, scope)
	}
	require.Len(t, gateway.Scopes(), 4)
}

func TestATokenIsValidAsLongAsIsSaid(t *testing.T) {
	t.Parallel()
	vars := []string{"ONCEGATE_DATA_DIR=" + t.TempDir()}
	for ttl, want := range map[string]time.Duration{"7d": 7 * 24 * time.Hour, "90s": 90 * time.Second, "": 24 * time.Hour} {
		args := []string{"token", "--user", "ann"}
		if ttl != "" {
			args = append(args, "--ttl", ttl)
		}
		code, stdout, stderr := command(t, vars, args...)
		require.Equal(t, exitOK, code, stderr)
		var claims jwt.RegisteredClaims
		_, _, err := jwt.NewParser().ParseUnverified(strings.TrimSpace(stdout), &claims)
		require.NoError(t, err)
		require.Equal(t, want, claims.ExpiresAt.Sub(claims.IssuedAt.Time), ttl)
	}
	_, help, _ := command(t, nil, "token", "--help")
	require.Contains(t, help, "(default 1d)")
}
