// Package composetest holds the tests of docker-compose.yml and the Dockerfile:
// that the file is valid, starts things in the right order, keeps its secrets
// out of sight, and configures the gateway with settings that it has. The
// gateway's own loader judges those; it must not know the gateway otherwise.
package composetest
