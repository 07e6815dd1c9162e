// Package archtest holds the test of the import graph: the domain imports
// nothing of ours, the adapters never import one another, and what is for
// tests stays out of the binaries.
//
// The linter says the same at the offending line; this test also sees what is
// imported through others, and runs where no linter is installed.
package archtest
