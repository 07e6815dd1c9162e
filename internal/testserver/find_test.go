//go:build unix

package testserver

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProbeTellsEnginesApartByTheirBanner(t *testing.T) {
	t.Parallel()
	const (
		mysql97   = "/usr/sbin/mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))"
		mysql80   = "mysqld  Ver 8.0.41 for Linux on x86_64 (MySQL Community Server - GPL)"
		mysql57   = "mysqld  Ver 5.7.44 for Linux on x86_64 (MySQL Community Server (GPL))"
		mariadb   = "mysqld  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)"
		mariadb10 = "mariadbd  Ver 10.5.2-MariaDB for Linux on x86_64"
		redis7    = "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.2.1 bits=64 build=d1"
		redis6    = "Redis server v=6.2.14 sha=00000000:0 malloc=jemalloc-5.2.1 bits=64 build=d1"
	)
	for _, c := range []struct {
		engine engine
		banner string
		want   string
		reason string
	}{
		{mysqlEngine(), mysql97, "9.7.4", ""},
		{mysqlEngine(), mysql80, "8.0.41", ""},
		{mysqlEngine(), mysql57, "", "older than 8.0.0"},
		{mysqlEngine(), mariadb, "", "is not MySQL"},
		{mariaDBEngine(), mariadb, "10.11.19", ""},
		{mariaDBEngine(), mariadb10, "", "older than 10.6.0"},
		{mariaDBEngine(), mysql97, "", "is not MariaDB"},
		{redisEngine(), redis7, "7.0.15", ""},
		{redisEngine(), redis6, "", "older than 7.0.0"},
		{redisEngine(), "segmentation fault", "", "is not Redis"},
	} {
		v, err := probe(t.Context(), c.engine, "", program(t, "echo '"+c.banner+"'"))
		if c.reason != "" {
			require.ErrorContains(t, err, c.reason)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, v.String())
	}
}

// program writes a shell script that stands for a program.
func program(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	// A child that is forked meanwhile would have it open for writing: "text file busy".
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755)
	syscall.ForkLock.RUnlock()
	require.NoError(t, err)
	return path
}
