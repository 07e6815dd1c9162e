package configs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/knadh/koanf/providers/env/v2"
)

const (
	envPrefix  = "ONCEGATE_"
	fileSuffix = "_FILE"
	// FileVariable names the YAML file where no flag does.
	FileVariable = envPrefix + "CONFIG"
	// maxSecretFile is far above any key or DSN.
	maxSecretFile = 64 << 10
)

// What else has our prefix: the variable that names the file, those of the tests,
// and those that Kubernetes puts into every container beside a Service whose name
// is oncegate or begins with oncegate-, such as that of a Redis. Two underscores are
// a setting's, or were meant for one.
var (
	foreign = regexp.MustCompile(`^ONCEGATE_(CONFIG|TEST_.*|([A-Z0-9]+_)*(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?))$`)
	// Of a Service as well, by its value: a number there is meant for a setting.
	servicePort  = regexp.MustCompile(`^ONCEGATE_([A-Z0-9]+_)*PORT$`)
	servicePlace = regexp.MustCompile(`^(tcp|udp|sctp)://`)
)

func isForeign(variable, value string) bool {
	return foreign.MatchString(variable) || servicePort.MatchString(variable) && servicePlace.MatchString(value)
}

// environment is the layer of variables. An empty variable counts as not set:
// that is how compose files pass on what nobody gave them.
type environment struct {
	names  map[string]string // setting → the variable that set it
	faults []string
}

// provider reads ONCEGATE_SECTION__NAME, and for secrets ONCEGATE_…_FILE.
func (e *environment) provider(environ []string, known map[string]leaf) *env.Env {
	e.names = map[string]string{}
	return env.Provider(".", env.Opt{
		Prefix: envPrefix,
		EnvironFunc: func() []string {
			sorted := slices.Clone(environ)
			slices.Sort(sorted)
			return sorted
		},
		TransformFunc: func(variable, value string) (string, any) {
			if value == "" || isForeign(variable, value) {
				return "", nil
			}
			return e.setting(variable, value, known)
		},
	})
}

func (e *environment) setting(variable, value string, known map[string]leaf) (string, any) {
	name := settingName(variable)
	_, direct := known[name]
	if base, ok := strings.CutSuffix(variable, fileSuffix); ok && !direct {
		if l, ok := known[settingName(base)]; ok && l.isSecret() {
			text, err := readSecret(value)
			if err != nil {
				e.faults = append(e.faults, fmt.Sprintf("%s: %v", variable, err))
				return "", nil
			}
			name, value, direct = l.name, text, true
		}
	}
	if !direct {
		e.faults = append(e.faults, unknownVariable(variable, known))
		return "", nil
	}
	if other, twice := e.names[name]; twice {
		e.faults = append(e.faults, fmt.Sprintf("%s and %s are both set: keep one", other, variable))
		return "", nil
	}
	e.names[name] = variable
	return name, value
}

func settingName(variable string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(variable, envPrefix), "__", "."))
}

func unknownVariable(variable string, known map[string]leaf) string {
	var variables []string
	for _, l := range known {
		variables = append(variables, l.env())
		if l.isSecret() {
			variables = append(variables, l.env()+fileSuffix)
		}
	}
	slices.Sort(variables)
	return unknown(variable, "the environment", nearest(variable, variables))
}

// isPath reports whether a text was surely meant for a path.
func isPath(text string) bool { return filepath.IsAbs(text) || strings.HasPrefix(text, ".") }

// readSecret returns the content of a file without the line end that editors add.
func readSecret(path string) (string, error) {
	file, err := os.Open(path) //nolint:gosec // G304: the operator names the file
	if missing, ok := errors.AsType[*os.PathError](err); ok && !isPath(path) {
		// It may be the secret itself, which was meant for the variable without _FILE.
		return "", fmt.Errorf("names a file that cannot be opened: %w; its value is not shown, for it does not begin with . or /, as paths do", missing.Err)
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	b, err := io.ReadAll(io.LimitReader(file, maxSecretFile+1))
	if err != nil {
		return "", err
	}
	text := strings.TrimRight(string(b), "\r\n")
	switch {
	case len(b) > maxSecretFile:
		return "", fmt.Errorf("%s is larger than %s", path, Size(maxSecretFile))
	case text == "":
		return "", fmt.Errorf("%s is empty", path)
	default:
		return text, nil
	}
}
