//go:build unix

package testserver

import "regexp"

// engine describes one kind of server: how it is named, found and installed.
type engine struct {
	name       string            // for people
	id         string            // in file names
	addressEnv string            // variable that names a server to use as it is
	binaries   []string          // names on PATH
	tools      []string          // other programs that have to be on PATH
	banner     *regexp.Regexp    // what --version of the right program looks like
	oldest     version           // oldest version that is supported
	packages   []string          // Debian packages that bring it; none where Debian stable lacks it
	chroot     string            // Debian package to bootstrap into a directory of the cache instead
	image      string            // Docker image
	imagePort  string            // port inside the container
	imageEnv   map[string]string // environment of the container
}

func mysqlEngine() engine {
	return engine{
		name:       "MySQL",
		id:         "mysql",
		addressEnv: "ONCEGATE_TEST_MYSQL_DSN",
		binaries:   []string{"mysqld"},
		banner:     regexp.MustCompile(`Ver (\d+\.\d+\.\d+)`),
		oldest:     version{8, 0, 0},
		chroot:     "mysql-server-core",
		image:      "mysql:9",
		imagePort:  "3306",
		imageEnv:   map[string]string{"MYSQL_ALLOW_EMPTY_PASSWORD": "yes", "MYSQL_ROOT_HOST": "%"},
	}
}

func mariaDBEngine() engine {
	return engine{
		name:       "MariaDB",
		id:         "mariadb",
		addressEnv: "ONCEGATE_TEST_MARIADB_DSN",
		binaries:   []string{"mariadbd", "mysqld"},
		banner:     regexp.MustCompile(`Ver (\d+\.\d+\.\d+)-MariaDB`),
		oldest:     version{10, 6, 0},
		tools:      []string{"mariadb-install-db", "my_print_defaults"},
		// Server and installer without the service; the installer calls a
		// program that comes with the client.
		packages:  []string{"mariadb-server-core", "mariadb-client-core"},
		image:     "mariadb:10.11",
		imagePort: "3306",
		imageEnv:  map[string]string{"MARIADB_ALLOW_EMPTY_ROOT_PASSWORD": "1", "MARIADB_ROOT_HOST": "%"},
	}
}

func redisEngine() engine {
	return engine{
		name:       "Redis",
		id:         "redis",
		addressEnv: "ONCEGATE_TEST_REDIS_ADDR",
		binaries:   []string{"redis-server"},
		banner:     regexp.MustCompile(`Redis server v=(\d+\.\d+\.\d+)`),
		oldest:     version{7, 0, 0},
		packages:   []string{"redis-server"},
		image:      "redis:7",
		imagePort:  "6379",
	}
}
