package configs

import (
	"github.com/knadh/koanf/providers/posflag"
	"github.com/spf13/pflag"
)

// settingFlag marks flags of ours among those of a command.
const settingFlag = "oncegate-setting"

// AddFlags gives a command a flag for every setting, named like the setting.
// Secrets have none: everybody on a machine can read a command line.
func AddFlags(flags *pflag.FlagSet) {
	c := Default()
	for l := range leaves(&c) {
		if l.isSecret() {
			continue
		}
		f := flags.VarPF(&flagText{l.text(), l.kind()}, l.name, "", l.doc)
		f.Annotations = map[string][]string{settingFlag: nil}
		if l.isBool() {
			f.NoOptDefVal = "true"
		}
	}
}

// flagText is the text of a flag; it is read with all other sources at once.
type flagText struct{ text, kind string }

func (f *flagText) String() string { return f.text }
func (f *flagText) Type() string   { return f.kind }

func (f *flagText) Set(s string) error {
	f.text = s
	return nil
}

// HideFlags leaves the settings out of a command's help.
func HideFlags(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if isSetting(f) {
			f.Hidden = true
		}
	})
}

func isSetting(f *pflag.Flag) bool {
	_, ok := f.Annotations[settingFlag]
	return ok
}

func flagProvider(flags *pflag.FlagSet) *posflag.Posflag {
	return posflag.ProviderWithFlag(flags, ".", nil, func(f *pflag.Flag) (string, any) {
		if !isSetting(f) {
			return "", nil
		}
		return f.Name, f.Value.String()
	})
}
