package main

import (
	"net/http"
	"strings"
	"testing"

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
