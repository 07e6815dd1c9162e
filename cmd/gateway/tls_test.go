package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/configs"
)

// certified makes a certificate for localhost, and the settings that name it.
func certified(t *testing.T) (configs.TLS, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	require.NoError(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	dir := t.TempDir()
	files := configs.TLS{CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key")}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	require.NoError(t, os.WriteFile(files.CertFile, cert, privateFile))
	require.NoError(t, os.WriteFile(files.KeyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), privateFile))
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(cert))
	return files, pool
}

func TestBothListenersSpeakTLS(t *testing.T) {
	t.Parallel()
	c := embedded(t.TempDir())
	var pool *x509.CertPool
	c.TLS, pool = certified(t)
	g := start(t, c)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "localhost", MinVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	get := func(url string) (int, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		require.NoError(t, err)
		resp, err := (&http.Client{Transport: transport}).Do(r)
		if err != nil {
			return 0, err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, resp.Body.Close()
	}
	for _, address := range []string{g.Addr() + "/livez", g.AdminAddr() + "/metrics"} {
		status, err := get("https://" + address)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, status)
		status, err = get("http://" + address)
		require.True(t, err != nil || status == http.StatusBadRequest, "plain HTTP is not served: %d", status)
	}

	// The commands of this machine know the certificate by the file.
	eventually(t, "it is never well", func() bool { // a Redis of a busy machine may seem to be away for a moment
		var out bytes.Buffer
		require.NoError(t, probeHealth(t.Context(), &out, &c, g.Addr(), "/readyz"))
		return strings.Contains(out.String(), `"status":"ok"`)
	})
	c.Admin.Listen = g.AdminAddr()
	body, err := probe(t.Context(), &c, "/admin/v1/keys/ann/k", "")
	require.NoError(t, err)
	require.Contains(t, string(body), `"layers"`)
	other := c
	other.TLS, _ = certified(t)
	_, err = probe(t.Context(), &other, "/admin/v1/keys/ann/k", "")
	require.ErrorIs(t, err, errOtherCertificate)
}

// While a renewal is amiss the listeners show the pair before. Whoever asked the
// files would have a healthy gateway ended, and it would not start again.
func TestARenewalThatWentWrongDoesNotMakeAGatewayUnhealthy(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(configs.TLS) error{
		"half of a pair": func(f configs.TLS) error {
			other, _ := certified(t)
			return os.Rename(other.CertFile, f.CertFile)
		},
		"nonsense": func(f configs.TLS) error { return os.WriteFile(f.CertFile, []byte("nonsense"), privateFile) },
		"no files": func(f configs.TLS) error { return errors.Join(os.Remove(f.CertFile), os.Remove(f.KeyFile)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := embedded(t.TempDir())
			c.TLS, _ = certified(t)
			app, err := New(t.Context(), c, slog.New(slog.DiscardHandler))
			require.NoError(t, err)
			require.NoError(t, spoil(c.TLS))
			m := newManager(t)
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- app.supervised(ctx, supervisor{m.socket, 20 * time.Millisecond}, &c) }()
			require.Equal(t, stateReady, m.hears())
			require.Equal(t, stateAlive, m.hears())
			c.HTTP.Listen = app.Addr()
			require.NoError(t, probeHealth(t.Context(), io.Discard, &c, app.Addr(), "/readyz"), "which is what healthcheck asks")
			stop()
			require.NoError(t, <-ended)
		})
	}
}

func TestACertificateThatCannotBeReadIsNamed(t *testing.T) {
	t.Parallel()
	c := embedded(t.TempDir())
	c.TLS = configs.TLS{CertFile: "/nowhere/tls.crt", KeyFile: "/nowhere/tls.key"}
	_, err := New(t.Context(), c, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "tls.cert_file")
}
