package configs

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// leaf is one setting of a [Config].
type leaf struct {
	name  string // such as "redis.op_timeout"
	doc   string
	live  bool          // may be changed while the gateway runs
	value reflect.Value // settable
}

// leaves yields the settings of c in the order of its declaration.
func leaves(c *Config) iter.Seq[leaf] {
	return func(yield func(leaf) bool) { walk(reflect.ValueOf(c).Elem(), "", yield) }
}

func walk(v reflect.Value, prefix string, yield func(leaf) bool) bool {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name := prefix + field.Tag.Get("conf")
		if isSection(field.Type) {
			if !walk(v.Field(i), name+".", yield) {
				return false
			}
			continue
		}
		if !yield(leaf{name, field.Tag.Get("doc"), field.Tag.Get("live") != "", v.Field(i)}) {
			return false
		}
	}
	return true
}

func isSection(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t != reflect.TypeFor[Secret]()
}

// env is the name of the variable that sets the leaf.
func (l leaf) env() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(l.name, ".", "__"))
}

func (l leaf) isSecret() bool {
	return l.value.Type() == reflect.TypeFor[Secret]()
}

func (l leaf) isBool() bool { return l.value.Kind() == reflect.Bool }

// What a value looks like.
const (
	kindDuration = "duration"
	kindSize     = "size"
	kindSecret   = "secret"
	kindList     = "list"
	kindText     = "text"
	kindNumber   = "number"
	kindBool     = "bool"
	kindInt      = "int"
)

// kind names what a value looks like, for help texts.
func (l leaf) kind() string {
	switch l.value.Interface().(type) {
	case time.Duration:
		return kindDuration
	case Size:
		return kindSize
	case Secret:
		return kindSecret
	case []string:
		return kindList
	case string:
		return kindText
	case float64:
		return kindNumber
	case bool:
		return kindBool
	default:
		return kindInt
	}
}

// text writes the value as the environment would spell it; secrets masked.
func (l leaf) text() string {
	switch v := l.value.Interface().(type) {
	case time.Duration:
		return FormatDuration(v)
	case []string:
		return strings.Join(v, ",")
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	default:
		return fmt.Sprint(v)
	}
}

// set takes a value as YAML has it, or as a text from the environment or a flag.
func (l leaf) set(raw any) error {
	value, err := convert(l.value.Interface(), raw)
	if err == nil {
		l.value.Set(reflect.ValueOf(value))
	}
	return err
}

var (
	errText   = errors.New("must be a text: put it in quotes")
	errBool   = errors.New("must be true or false")
	errInt    = errors.New("must be a whole number")
	errNumber = errors.New("must be a number")
	errList   = errors.New("must be a list of texts")
)

// convert turns raw into the type of old.
func convert(old, raw any) (any, error) {
	text, isText := raw.(string)
	switch old.(type) {
	case time.Duration:
		return ifText(text, isText, orMost(ParseDuration, errLong, longest), errDuration)
	case Secret:
		return ifText(text, isText, func(s string) (Secret, error) { return NewSecret(s), nil }, errText)
	case string:
		return ifText(text, isText, func(s string) (string, error) { return s, nil }, errText)
	case Size:
		if n, ok := raw.(int); ok && n >= 0 {
			return Size(n), nil
		}
		if isHuge(raw) {
			return largest, nil
		}
		return ifText(text, isText, orMost(ParseSize, errLarge, largest), errSize)
	case []string:
		return toList(raw)
	case bool:
		if b, ok := raw.(bool); ok {
			return b, nil
		}
		return ifText(text, isText, parseBool, errBool)
	case int:
		if n, ok := raw.(int); ok {
			return n, nil
		}
		if isHuge(raw) {
			return math.MaxInt, nil
		}
		return ifText(text, isText, orMost(parseInt, strconv.ErrRange, math.MaxInt), errInt)
	case float64:
		return toNumber(raw)
	default:
		return nil, fmt.Errorf("a setting cannot have the type %T", old)
	}
}

func ifText[T any](text string, isText bool, parse func(string) (T, error), otherwise error) (any, error) {
	if !isText {
		return nil, otherwise
	}
	return parse(text)
}

func parseBool(s string) (bool, error) {
	if s != "true" && s != "false" {
		return false, errBool
	}
	return s == "true", nil
}

// parseInt reads a number in its one spelling: in a file 010 would be 8.
func parseInt(s string) (int, error) {
	n, err := strconv.Atoi(s)
	switch {
	case err != nil && isDigits(s):
		return 0, strconv.ErrRange
	case err != nil, strconv.Itoa(n) != s:
		return 0, errInt
	}
	return n, nil
}

// orMost is parse with most in the place of whatever is too large to be held.
func orMost[T any](parse func(string) (T, error), tooLarge error, most T) func(string) (T, error) {
	return func(s string) (T, error) {
		v, err := parse(s)
		if errors.Is(err, tooLarge) {
			return most, nil
		}
		return v, err
	}
}

// isHuge reports whether a number of a file is larger than any int.
func isHuge(raw any) bool {
	f, isFloat := raw.(float64)
	_, isUint := raw.(uint64) // only what is no int
	return isUint || isFloat && f >= math.MaxInt
}

// number is what a number looks like: Go also takes 1_0, 010, 0x10 and Inf.
var number = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

func toNumber(raw any) (any, error) {
	switch n := raw.(type) {
	case int:
		return float64(n), nil
	case float64:
		if math.IsNaN(n) || math.IsInf(n, 0) {
			return nil, errNumber
		}
		return n, nil
	case string:
		f, err := strconv.ParseFloat(n, 64)
		if err != nil || !number.MatchString(n) || math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, errNumber
		}
		return f, nil
	default:
		return nil, errNumber
	}
}

func toList(raw any) (any, error) {
	var list []string
	switch items := raw.(type) {
	case string:
		for item := range strings.SplitSeq(items, ",") {
			list = append(list, strings.TrimSpace(item))
		}
		if items == "" {
			list = nil
		}
	case []any:
		for _, item := range items {
			text, ok := item.(string)
			if !ok {
				return nil, errList
			}
			list = append(list, text)
		}
	default:
		return nil, errList
	}
	return list, nil
}
