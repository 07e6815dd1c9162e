// Package observability holds the Prometheus alert rules and the Grafana
// dashboard of oncegate, as files, and reads them for the tests.
//
// It promises that every expression in them can be taken out ([Queries]) with
// the metrics it names. It must not know the gateway: a test of the gateway
// holds those names against a scrape.
package observability
