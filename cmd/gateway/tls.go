package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/gateway"
)

// openCertificates reads what both listeners show; nil where they speak plain
// HTTP.
func openCertificates(cfg *configs.Config, log *slog.Logger) (*gateway.Certificates, error) {
	if !cfg.Encrypted() {
		return nil, nil
	}
	certs, err := gateway.NewCertificates(cfg.TLS.CertFile, cfg.TLS.KeyFile, log)
	if err != nil {
		return nil, fmt.Errorf("tls.cert_file, tls.key_file: %w", err)
	}
	return certs, nil
}

// scheme is that of the listeners' addresses.
func scheme(cfg *configs.Config) string {
	if cfg.Encrypted() {
		return "https"
	}
	return "http"
}

var errOtherCertificate = errors.New("the certificate is not that of tls.cert_file")

// directTransport reaches who is asked, such as this machine, and not by a proxy
// that the environment names.
func directTransport() *http.Transport { return &http.Transport{DisableKeepAlives: true} }

// healthClient asks a listener on this machine how it is, and tells it nothing
// that is worth a certificate. It needs none of the files: while a renewal is
// amiss, the listener shows the pair before, and is as healthy as before.
func healthClient() *http.Client {
	transport := directTransport()
	transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // G402: see above
	return &http.Client{Transport: transport}
}

// localClient asks a listener of this configuration on this machine. The
// certificate is for the name that clients use and not for the loopback address,
// so it is held against the file instead.
func localClient(cfg *configs.Config) (*http.Client, error) {
	transport := directTransport()
	if cfg.Encrypted() {
		pair, err := tls.LoadX509KeyPair(cfg.TLS.CertFile, cfg.TLS.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("tls.cert_file, tls.key_file: %w", err)
		}
		transport.TLSClientConfig = &tls.Config{
			InsecureSkipVerify: true, //nolint:gosec // G402: VerifyConnection knows the certificate itself
			VerifyConnection: func(s tls.ConnectionState) error {
				if len(s.PeerCertificates) == 0 || !bytes.Equal(s.PeerCertificates[0].Raw, pair.Certificate[0]) {
					return errOtherCertificate
				}
				return nil
			},
		}
	}
	return &http.Client{Transport: transport}, nil
}
