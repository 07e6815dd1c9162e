package main

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

func versionCommand(env environment) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(env.stdout, "oncegate", version())
			return err
		},
	}
}

// build is what the build recorded of itself.
type build struct {
	version   string // of the module
	revision  string // the commit, with "(modified)" where it is not the whole truth; empty where git was not there
	goVersion string
}

func readBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return build{version: "unknown"}
	}
	b := build{version: info.Main.Version, goVersion: info.GoVersion}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			b.revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			b.revision += " (modified)"
		}
	}
	return b
}

// version is one line: the module's version, the commit, and Go's.
func version() string {
	b := readBuild()
	return strings.Join(strings.Fields(b.version+" "+b.revision+" "+b.goVersion), " ")
}
