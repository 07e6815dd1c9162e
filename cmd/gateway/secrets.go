package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/gateway"
)

const (
	privateDir  = 0o700
	privateFile = 0o600
)

// errNoSigning says that this process cannot sign tokens.
var errNoSigning = errors.New("tokens are issued by whoever publishes auth.jwks_url, not by this gateway")

// signingSecret returns the secret that tokens are signed and verified with.
// With the embedded database it is made once and kept, so that tokens outlive
// restarts and the token command signs what the gateway believes.
func signingSecret(c *configs.Config) ([]byte, error) {
	switch {
	case c.Auth.JWKSURL != "":
		return nil, errNoSigning
	case c.Auth.HS256Secret.IsSet():
		return []byte(c.Auth.HS256Secret.Reveal()), nil
	default:
		return keptSecret(secretFile(c))
	}
}

// secretFile is where the secret is kept that nobody configured.
func secretFile(c *configs.Config) string { return filepath.Join(c.DataDir, "secrets", "hs256") }

// keptSecret returns the secret in a file, which it makes when there is none.
// Several processes at once agree on one.
func keptSecret(path string) ([]byte, error) {
	secret, err := readSecret(path)
	if !errors.Is(err, os.ErrNotExist) {
		return secret, err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, privateDir); err != nil {
		return nil, fmt.Errorf("make a directory for secrets: %w", err)
	}
	if err := publishSecret(dir, path, rand.Text()+rand.Text()); err != nil {
		return nil, fmt.Errorf("keep a generated secret: %w", err)
	}
	return readSecret(path)
}

// publishSecret makes the file whole or not at all, and leaves one alone that
// another process made first.
func publishSecret(dir, path, text string) (err error) {
	temp, err := os.CreateTemp(dir, ".new-*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(temp.Name())) }()
	_, err = temp.WriteString(text + "\n")
	if err = errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return err
	}
	if err := os.Link(temp.Name(), path); !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

func readSecret(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&^privateFile != 0 {
		return nil, fmt.Errorf("%s has the mode %o, and others could sign tokens with it: chmod 600 it, or remove it for a new one", path, mode)
	}
	text, err := os.ReadFile(path) //nolint:gosec // G304: below the operator's data_dir
	if err != nil {
		return nil, err
	}
	secret := []byte(strings.TrimRight(string(text), "\r\n"))
	if len(secret) < gateway.MinSecretLen {
		return nil, fmt.Errorf("%s has %d bytes of a secret, and a secret has at least %d: remove it for a new one", path, len(secret), gateway.MinSecretLen)
	}
	return secret, nil
}
