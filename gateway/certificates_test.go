package gateway_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/internal/testserver"
)

// pair is a certificate and its key in files, renewed as certbot and Kubernetes
// do it: another file takes the place of the one before.
type pair struct{ dir, cert, key string }

func newPair(t testing.TB) pair {
	t.Helper()
	dir := t.TempDir()
	p := pair{dir, filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")}
	p.renew(t, 1)
	return p
}

// made makes a self-signed certificate for localhost.
func made(t testing.TB, serial int64) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, private.Public(), private)
	require.NoError(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

func put(t testing.TB, path string, content []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path+".new", content, 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}

func (p pair) renew(t testing.TB, serial int64) {
	t.Helper()
	cert, key := made(t, serial)
	put(t, p.cert, cert)
	put(t, p.key, key)
}

func (p pair) pool(t testing.TB) *x509.CertPool {
	t.Helper()
	content, err := os.ReadFile(p.cert)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(content))
	return pool
}

// dialTLS opens a connection that ends with the test.
func dialTLS(t testing.TB, k *kit, config *tls.Config) *tls.Conn {
	t.Helper()
	conn, err := (&tls.Dialer{Config: config}).DialContext(context.Background(), "tcp", k.server.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn.(*tls.Conn)
}

// shown is the serial number of the certificate that a new connection sees.
func shown(t testing.TB, k *kit) int64 {
	t.Helper()
	conn := dialTLS(t, k, &tls.Config{InsecureSkipVerify: true})
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

func TestARenewedCertificateIsShownFromTheNextHandshakeOn(t *testing.T) {
	t.Parallel()
	files := newPair(t)
	logs := &testserver.Output{}
	certs, err := gateway.NewCertificates(files.cert, files.key, slog.New(slog.NewJSONHandler(logs, nil)))
	require.NoError(t, err)
	k := newLiveKit(t, func(o *gateway.Options) { o.Certificates = certs })
	require.EqualValues(t, 1, shown(t, k))
	files.renew(t, 2)
	require.EqualValues(t, 2, shown(t, k))

	// Half of a renewal is no certificate: the one before stays.
	cert, key := made(t, 3)
	put(t, files.cert, cert)
	require.EqualValues(t, 2, shown(t, k))
	require.Contains(t, logs.String(), "stays in force")
	put(t, files.key, key)
	require.EqualValues(t, 3, shown(t, k))

	put(t, files.cert, []byte("nonsense"))
	require.EqualValues(t, 3, shown(t, k))
	require.NoError(t, os.Remove(files.cert))
	require.EqualValues(t, 3, shown(t, k))
	require.EqualValues(t, 3, shown(t, k))

	// As Kubernetes does it: the path is a link, and the link is turned.
	cert, key = made(t, 4)
	put(t, filepath.Join(files.dir, "4.crt"), cert)
	put(t, files.key, key)
	require.NoError(t, os.Symlink(filepath.Join(files.dir, "4.crt"), files.cert))
	require.EqualValues(t, 4, shown(t, k))
}

// A process without a free file descriptor sees that the files are others, and
// cannot read them: they are read when it has one again, the same as they are. It
// runs alone, for the limit is the whole process's.
func TestACertificateThatCannotBeReadForAMomentIsReadLater(t *testing.T) { //nolint:paralleltest // see above
	files := newPair(t)
	certs, err := gateway.NewCertificates(files.cert, files.key, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	files.renew(t, 2)
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	none := limit
	none.Cur = 0
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none))
	_, err = certs.Refresh()
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	require.ErrorIs(t, err, syscall.EMFILE)
	changed, err := certs.Refresh()
	require.NoError(t, err)
	require.True(t, changed)
}

func TestCertificatesThatCannotBeUsedAreNotTaken(t *testing.T) {
	t.Parallel()
	files, other := newPair(t), newPair(t)
	log := slog.New(slog.DiscardHandler)
	for name, paths := range map[string][2]string{
		"no certificate":  {filepath.Join(files.dir, "none"), files.key},
		"no key":          {files.cert, filepath.Join(files.dir, "none")},
		"another's key":   {files.cert, other.key},
		"the wrong order": {files.key, files.cert},
		"a directory":     {files.dir, files.key},
	} {
		_, err := gateway.NewCertificates(paths[0], paths[1], log)
		require.ErrorContains(t, err, "read a certificate", name)
	}
}

func TestOldVersionsOfTLSAreRefused(t *testing.T) {
	t.Parallel()
	k, config := newTLSKit(t)
	for version, allowed := range map[uint16]bool{
		tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true,
	} {
		c := config.Clone()
		c.MinVersion, c.MaxVersion = version, version
		conn, err := (&tls.Dialer{Config: c}).DialContext(context.Background(), "tcp", k.server.Addr().String())
		if !allowed {
			require.Error(t, err, tls.VersionName(version))
			continue
		}
		require.NoError(t, err, tls.VersionName(version))
		require.NoError(t, conn.Close())
	}
}
