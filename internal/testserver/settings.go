//go:build unix

package testserver

import "strings"

// rootAt runs at every start: with name resolution off, a connection from
// 127.0.0.1 does not match root@localhost. It stays out of the binary log: a
// server that replicates another would have a transaction of its own.
func rootAt(host string) string {
	return "SET SESSION sql_log_bin = 0;\n" +
		"CREATE USER IF NOT EXISTS 'root'@'" + host + "';\n" +
		"GRANT ALL PRIVILEGES ON *.* TO 'root'@'" + host + "' WITH GRANT OPTION;\n"
}

// settings are those of a server that may not lose or reorder anything, on a
// small machine. Later arguments win over earlier ones.
func settings(e engine, extra []string) []string {
	var args []string
	switch e.id {
	case "redis":
		// Nothing on disk: a restarted Redis is an empty one, the worst case.
		args = []string{"--save", "", "--appendonly", "no"}
	default:
		args = []string{
			"--innodb-flush-log-at-trx-commit=1",
			"--sync-binlog=1",
			"--server-id=1",
			"--log-bin=binlog",
			"--innodb-buffer-pool-size=128M",
			redoSize(e),
			"--skip-name-resolve",
			"--performance-schema=OFF",
			"--max-connections=500",
		}
	}
	switch e.id {
	case "mysql":
		// Row format is the only one that newer versions do not warn of.
		args = append(args, "--mysqlx=OFF", "--secure-file-priv=NULL")
	case "mariadb":
		args = append(args, "--binlog-format=ROW")
	}
	return append(args, extra...)
}

// placement says where a server on this machine listens and keeps its files;
// dir is its work directory as the server sees it.
func placement(e engine, dir, port string) []string {
	if e.id == "redis" {
		return []string{"--port", port, "--bind", "127.0.0.1", "--dir", dir, "--daemonize", "no"}
	}
	return append(asRoot("--no-defaults"),
		"--datadir="+dir+"/data",
		"--tmpdir="+dir,
		"--pid-file="+dir+"/pid",
		"--init-file="+dir+"/init.sql",
		"--socket=", // none: paths of sockets are too short for cache directories
		"--bind-address=127.0.0.1",
		"--port="+port,
	)
}

// arguments is the whole command line; the first of placement must stay first.
func arguments(e engine, dir, port string, extra []string) []string {
	return append(placement(e, dir, port), settings(e, extra)...)
}

// describe shortens a command line for error texts.
func describe(e engine, args []string) string {
	return e.name + " " + strings.Join(args, " ")
}
