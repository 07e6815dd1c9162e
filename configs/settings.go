package configs

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
)

// The origins of a setting that no source gives.
const (
	originDefault = "default"
	// originAPI marks a value that [Loaded.Override] put there.
	originAPI = "api"
)

// Setting describes one setting and the value it has.
type Setting struct {
	Name        string // such as "ttl.receipt"
	Value       string // as the environment would spell it; a secret that is set: ***
	Default     string
	Type        string // what a value looks like, such as "duration"
	Description string
	// Origin is "default", "file NAME", "environment VARIABLE", "flag NAME" or
	// "api".
	Origin string
	// Live says that it may be changed while the gateway runs.
	Live bool
	// Pinned says that a file, the environment or a flag gives the value.
	Pinned bool
}

// Settings describes all settings, in the order of their declaration.
func (l *Loaded) Settings() []Setting {
	fallback := Default()
	var defaults []string
	for leaf := range leaves(&fallback) {
		defaults = append(defaults, leaf.plain())
	}
	all := make([]Setting, 0, len(defaults))
	for leaf := range leaves(&l.Config) {
		all = append(all, Setting{
			Name: leaf.name, Value: leaf.plain(), Default: defaults[len(all)], Type: leaf.kind(), Description: leaf.doc,
			Origin: l.origin(leaf.name), Live: leaf.live, Pinned: l.pinned(leaf.name),
		})
	}
	return all
}

// Setting describes one setting; false when there is none of that name.
func (l *Loaded) Setting(name string) (Setting, bool) {
	for _, s := range l.Settings() {
		if s.Name == name {
			return s, true
		}
	}
	return Setting{}, false
}

func (l *Loaded) pinned(name string) bool {
	origin, set := l.Origins[name]
	return set && origin != originAPI
}

// The origins of the environment and of flags: in short, as a command line knows
// them, and in full.
const (
	shortEnv, fullEnv   = "env ", "environment "
	shortFlag, fullFlag = "flag --", "flag "
)

func (l *Loaded) origin(name string) string {
	origin, set := l.Origins[name]
	if !set {
		return originDefault
	}
	if variable, ok := strings.CutPrefix(origin, shortEnv); ok {
		return fullEnv + variable
	}
	if flag, ok := strings.CutPrefix(origin, shortFlag); ok {
		return fullFlag + flag
	}
	return origin
}

// shortOrigin is the short form of an origin in full.
func shortOrigin(origin string) string {
	if variable, ok := strings.CutPrefix(origin, fullEnv); ok {
		return shortEnv + variable
	}
	if flag, ok := strings.CutPrefix(origin, fullFlag); ok {
		return shortFlag + flag
	}
	return origin
}

// maxSettingName is far above the longest name, in bytes.
const maxSettingName = 64

// NearestSetting returns the setting that a wrong name was probably meant to be,
// or "".
func NearestSetting(name string) string {
	if len(name) > maxSettingName {
		return ""
	}
	c := Default()
	var known []string
	for leaf := range leaves(&c) {
		known = append(known, leaf.name)
	}
	slices.Sort(known)
	return nearest(name, known)
}

// plain is text with secrets as ***.
func (l leaf) plain() string {
	if v, ok := reflect.TypeAssert[Secret](l.value); ok && v.IsSet() {
		return "***"
	}
	return l.text()
}

// WriteLive writes the list of the settings that may be changed while the
// gateway runs, in Markdown.
func WriteLive(w io.Writer) error {
	c := Default()
	var names []string
	for leaf := range leaves(&c) {
		if leaf.live {
			names = append(names, "`"+leaf.name+"`")
		}
	}
	_, err := fmt.Fprintln(w, strings.Join(names, ", "))
	return err
}
