package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// FileKeys is a [KeyStore] in a directory of its own, for programs of one
// machine. Every key is a file that appears whole or not at all, under a name
// that any number of processes agree on. Nothing is ever removed: a key is
// worth its file as long as somebody could press the button again.
type FileKeys struct {
	dir  string
	sync func(dir string) error // makes the names in a directory durable
}

// OpenFileKeys makes the directory if there is none. Others must not read it:
// who has a key and a token can read the customer's order.
func OpenFileKeys(dir string) (*FileKeys, error) {
	return openFileKeys(dir, syncDir)
}

func openFileKeys(dir string, sync func(string) error) (*FileKeys, error) {
	var absent []string
	for d, below := filepath.Clean(dir), ""; d != below; d, below = filepath.Dir(d), d {
		if _, err := os.Stat(d); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		absent = append(absent, d)
	}
	err := os.MkdirAll(dir, 0o700)
	// A key is no more durable than the name of the directory it is in.
	for i := len(absent) - 1; i >= 0 && err == nil; i-- {
		err = sync(filepath.Dir(absent[i]))
	}
	if err != nil {
		return nil, fmt.Errorf("client: directory of keys: %w", err)
	}
	return &FileKeys{dir: dir, sync: sync}, nil
}

// Claim implements [KeyStore].
func (f *FileKeys) Claim(_ context.Context, intent, fresh string) (string, error) {
	for {
		key, next, err := f.newest(intent)
		if err != nil {
			return "", err
		}
		if key != "" {
			// Whoever made it may not have come to this yet, or never will.
			if err := f.sync(f.dir); err != nil {
				return "", err
			}
			return key, nil
		}
		if err := f.publish(next, fresh); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
}

// Replace implements [KeyStore].
func (f *FileKeys) Replace(_ context.Context, intent, old, fresh string) error {
	key, next, err := f.newest(intent)
	if err != nil {
		return err
	}
	if key == old {
		// Whoever was faster has replaced the same key.
		if err := f.publish(next, fresh); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return f.sync(f.dir)
}

// newest returns the key of the intent that counts, or "", and the file of the
// one after it. A replaced key stays beside its successor, whose name is the
// next number: making a file is atomic where changing one is not.
func (f *FileKeys) newest(intent string) (key, next string, err error) {
	name := sha256.Sum256([]byte(intent)) // any text is an intent, but not a file name
	base := filepath.Join(f.dir, hex.EncodeToString(name[:]))
	for n := 1; ; n++ {
		next = base + "." + strconv.Itoa(n)
		text, err := os.ReadFile(next) //nolint:gosec // G304: a hash below the caller's directory
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return key, next, nil
		case err != nil:
			return "", "", err
		}
		if key = strings.TrimSpace(string(text)); key == "" {
			return "", "", fmt.Errorf("%s is empty: it was damaged from outside", next)
		}
	}
}

// publish makes the file of a key; fs.ErrExist when another process was faster.
// The text in it is durable, its name not before the directory is synced.
func (f *FileKeys) publish(path, key string) (err error) {
	temp, err := os.CreateTemp(f.dir, ".new-*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(temp.Name())) }()
	_, err = temp.WriteString(key + "\n")
	if err = errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return err
	}
	return os.Link(temp.Name(), path)
}

// syncDir makes the names in a directory durable. Windows cannot, and need not
// be asked.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir) //nolint:gosec // G304: the caller's directory
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
