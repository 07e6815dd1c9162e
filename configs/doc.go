// Package configs is the configuration of the gateway: what can be set, what
// it defaults to, where it was set, and whether it makes sense.
//
// A setting comes from a flag, else the environment, else the YAML file, else
// the default. A name that does not exist, a value of the wrong type and a
// combination that would break a promise are errors, and all of them are
// reported at once, before any connection is made. Secrets never print.
//
// The package must not know what the settings are used for: it imports nothing
// of ours, and commands copy its values into the options of the parts.
package configs
