package configs

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Override returns this configuration with other values for some of its
// settings, validated as a whole; the one it is called on stays as it is. The
// error is an [*InvalidError].
//
// What cannot be overridden here is passed over and named: a setting that a
// file, the environment or a flag gives, one that is not live, and one that
// this program does not know.
func (l *Loaded) Override(values map[string]string) (next *Loaded, passed []string, err error) {
	next = &Loaded{Config: l.Config, Origins: maps.Clone(l.Origins), noGateway: l.noGateway}
	if next.Origins == nil {
		next.Origins = map[string]string{}
	}
	var faults []string
	known := map[string]bool{}
	for leaf := range leaves(&next.Config) {
		value, given := values[leaf.name]
		if !given || !leaf.live || l.pinned(leaf.name) {
			continue
		}
		known[leaf.name] = true
		if err := leaf.set(value); err != nil {
			faults = append(faults, fmt.Sprintf("%s %v", leaf.name, err))
			continue
		}
		next.Origins[leaf.name] = originAPI
	}
	for name := range values {
		if !known[name] {
			passed = append(passed, name)
		}
	}
	slices.Sort(passed)
	if faults = append(faults, next.faults()...); len(faults) > 0 {
		return nil, passed, &InvalidError{faults}
	}
	return next, passed, nil
}

// Differences names the settings in which two configurations differ: those that
// are live, and those that only a restart can change.
func Differences(a, b *Config) (live, fixed []string) {
	var before []any
	for leaf := range leaves(a) {
		before = append(before, leaf.value.Interface())
	}
	i := 0
	for leaf := range leaves(b) {
		if !reflect.DeepEqual(before[i], leaf.value.Interface()) {
			if leaf.live {
				live = append(live, leaf.name)
			} else {
				fixed = append(fixed, leaf.name)
			}
		}
		i++
	}
	return live, fixed
}
