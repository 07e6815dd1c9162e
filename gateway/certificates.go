package gateway

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// minTLS is the oldest version of TLS that is spoken (RFC 9325, section 3.1.1).
const minTLS = tls.VersionTLS12

// Certificates are the certificate and the key of two PEM files, which are read
// again when they change: a renewed certificate is shown from the next handshake
// on. A pair that cannot be used, as while only one of the files has been
// replaced, leaves the one before in force. Safe for concurrent use.
type Certificates struct {
	certFile, keyFile string
	log               *slog.Logger

	mu        sync.Mutex
	inForce   *tls.Certificate
	cert, key os.FileInfo // what was last read
}

// NewCertificates reads the files, which must be usable now.
func NewCertificates(certFile, keyFile string, log *slog.Logger) (*Certificates, error) {
	c := &Certificates{certFile: certFile, keyFile: keyFile, log: log}
	if _, err := c.refresh(); err != nil {
		return nil, err
	}
	return c, nil
}

// config is the TLS of a listener.
func (c *Certificates) config() *tls.Config {
	return &tls.Config{
		MinVersion: minTLS,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			changed, err := c.refresh()
			switch {
			case err != nil:
				c.log.Error("the certificate cannot be read again; the one before stays in force", "error", err)
			case changed:
				c.log.Info("the certificate was replaced", "not_after", c.expiry())
			}
			return c.current(), nil
		},
	}
}

// refresh reads the files if they are others than before. Each pair that could be
// read is tried once, good or not.
func (c *Certificates) refresh() (changed bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cert, err := os.Stat(c.certFile)
	if err != nil {
		return false, c.gone(err)
	}
	key, err := os.Stat(c.keyFile)
	if err != nil {
		return false, c.gone(err)
	}
	if same(c.cert, cert) && same(c.key, key) {
		return false, nil
	}
	// What cannot be read now may be readable later, and look the same: a process
	// that had no file descriptor left, a key that was not yet its to read.
	chain, err := os.ReadFile(c.certFile)
	if err != nil {
		return false, c.gone(err)
	}
	private, err := os.ReadFile(c.keyFile)
	if err != nil {
		return false, c.gone(err)
	}
	// As they were before they were read: what is written meanwhile is seen as a change.
	c.cert, c.key = cert, key
	pair, err := tls.X509KeyPair(chain, private)
	if err != nil {
		return false, fmt.Errorf("read a certificate: %w", err)
	}
	c.inForce = &pair
	return true, nil
}

// gone says once that a file is not there or cannot be read, and has both read again
// at the next look.
func (c *Certificates) gone(err error) error {
	if c.inForce != nil && c.cert == nil {
		return nil
	}
	c.cert, c.key = nil, nil
	return fmt.Errorf("read a certificate: %w", err)
}

// same tells whether two looks at a path saw the same file with the same
// content. Kubernetes and certbot replace files by links to others.
func same(a, b os.FileInfo) bool {
	return a != nil && os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

func (c *Certificates) current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inForce
}

func (c *Certificates) expiry() time.Time {
	if leaf := c.current().Leaf; leaf != nil {
		return leaf.NotAfter
	}
	return time.Time{}
}
