package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// fileValue is a value of the file, which has a type of its own; all others are text.
type fileValue struct{ value any }

// allowed says in words what a key may hold.
func (k *key) allowed() string {
	switch {
	case k.choices != nil:
		return `"` + strings.Join(k.choices, `", "`) + `"`
	case k.may != "":
		return k.may
	}
	switch k.kind {
	case kindBool:
		return "true or false"
	case kindInteger:
		return fmt.Sprintf("a whole number, at least %d", k.least)
	case kindSize:
		return fmt.Sprintf("a number of bytes such as 1048576 or \"1MiB\", at least %s", formatSize(k.least))
	case kindDuration:
		return fmt.Sprintf("a duration such as \"1m30s\", at least %s", time.Duration(k.least))
	case kindList:
		return "a list of texts"
	default:
		return "a text"
	}
}

// parse reads a value as the key wants it.
func (k *key) parse(value any) (any, error) {
	switch k.kind {
	case kindBool:
		return parseBool(value)
	case kindInteger:
		return k.parseInteger(value)
	case kindSize:
		return k.parseSize(value)
	case kindDuration:
		return k.parseDuration(value)
	case kindList:
		return k.parseList(value)
	default:
		return k.parseText(value)
	}
}

// quoted shows a value that is wrong, unless it may be a secret.
func (k *key) quoted(value any) string {
	if f, ok := value.(fileValue); ok {
		value = f.value
	}
	if k.secret || k.address {
		return "the value"
	}
	if s, ok := value.(string); ok {
		return strconv.Quote(s)
	}
	return fmt.Sprint(value)
}

func parseBool(value any) (any, error) {
	if f, ok := value.(fileValue); ok {
		if b, ok := f.value.(bool); ok {
			return b, nil
		}
		return nil, fmt.Errorf("%#v is neither true nor false", f.value)
	}
	switch strings.ToLower(strings.TrimSpace(value.(string))) {
	case "true", "1", "yes", "on":
		return true, nil
	case "false", "0", "no", "off":
		return false, nil
	}
	return nil, fmt.Errorf("%q is neither true nor false", value)
}

func (k *key) parseInteger(value any) (any, error) {
	var n int64
	if f, ok := value.(fileValue); ok {
		if n, ok = f.value.(int64); !ok {
			return nil, fmt.Errorf("%s is no whole number", k.quoted(value))
		}
	} else {
		var err error
		if n, err = strconv.ParseInt(strings.TrimSpace(value.(string)), 10, 64); err != nil {
			return nil, fmt.Errorf("%s is no whole number", k.quoted(value))
		}
	}
	if n < k.least && k.clamp {
		n = k.least
	}
	if n < k.least || n > math.MaxInt32 {
		return nil, fmt.Errorf("%d is out of range", n)
	}
	return int(n), nil
}

var sizeUnits = []struct {
	name  string
	bytes float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
}

func (k *key) parseSize(value any) (any, error) {
	if f, ok := value.(fileValue); ok {
		if n, ok := f.value.(int64); ok {
			return k.inRange(n, formatSize(n))
		}
		if value, ok = f.value.(string); !ok {
			return nil, fmt.Errorf("%v is no size", f.value)
		}
	}
	text, unit := strings.TrimSpace(value.(string)), 1.0
	for _, u := range sizeUnits {
		if number, ok := strings.CutSuffix(text, u.name); ok {
			text, unit = strings.TrimSpace(number), u.bytes
			break
		}
	}
	number, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(number) || math.IsInf(number, 0) || number*unit > math.MaxInt64/2 {
		return nil, fmt.Errorf("%s is no size", k.quoted(value))
	}
	return k.inRange(int64(number*unit), k.quoted(value))
}

func (k *key) parseDuration(value any) (any, error) {
	if f, ok := value.(fileValue); ok {
		if value, ok = f.value.(string); !ok {
			return nil, fmt.Errorf("%v is no duration: a unit is missing", f.value)
		}
	}
	d, err := time.ParseDuration(strings.TrimSpace(value.(string)))
	if err != nil {
		return nil, fmt.Errorf("%s is no duration", k.quoted(value))
	}
	n, err := k.inRange(int64(d), d.String())
	if err != nil {
		return nil, err
	}
	return time.Duration(n.(int64)), nil
}

func (k *key) inRange(n int64, shown string) (any, error) {
	if n < k.least {
		return nil, fmt.Errorf("%s is too small", shown)
	}
	return n, nil
}

func (k *key) parseText(value any) (any, error) {
	if f, ok := value.(fileValue); ok {
		if value, ok = f.value.(string); !ok {
			return nil, fmt.Errorf("%s is no text", k.quoted(f.value))
		}
	}
	text := value.(string)
	if k.secret {
		text = strings.TrimSpace(text) // files end with a line break, and so do secrets that were read from them
		if strings.ContainsFunc(text, unicode.IsControl) {
			return nil, errors.New("it holds a control character")
		}
	}
	if k.choices != nil && !slices.Contains(k.choices, text) {
		return nil, fmt.Errorf("%s is none of the choices", k.quoted(text))
	}
	if k.check != nil {
		if err := k.check(text); err != nil {
			return nil, fmt.Errorf("%s is not allowed: %w", k.quoted(text), err)
		}
	}
	return text, nil
}

// parseList reads an array of the file, or text with commas between; a text that looks like an array is one.
func (k *key) parseList(value any) (any, error) {
	list := []string{}
	if f, ok := value.(fileValue); ok {
		array, ok := f.value.([]any)
		if !ok {
			return nil, fmt.Errorf("%#v is no array", f.value)
		}
		for _, element := range array {
			text, ok := element.(string)
			if !ok {
				return nil, fmt.Errorf("the element %v is no text", element)
			}
			list = append(list, strings.TrimSpace(text))
		}
	} else if text := strings.TrimSpace(value.(string)); strings.HasPrefix(text, `["`) {
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return nil, fmt.Errorf("%s is no array of texts", k.quoted(text))
		}
	} else {
		list = splitList(text)
	}
	for _, text := range list {
		if err := k.check(text); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// splitList splits text at its commas, but for those within the braces of a glob.
func splitList(text string) []string {
	list := []string{}
	depth, from := 0, 0
	for i, c := range text + "," {
		switch {
		case c == '{':
			depth++
		case c == '}':
			depth--
		case c == ',' && (depth <= 0 || i == len(text)):
			if entry := strings.TrimSpace(text[from:i]); entry != "" {
				list = append(list, entry)
			}
			from = i + 1
		}
	}
	return list
}

// store puts a parsed value into its field.
func (k *key) store(c *Config, value any) {
	switch field := k.field(c).(type) {
	case *string:
		*field = value.(string)
	case *bool:
		*field = value.(bool)
	case *int:
		*field = value.(int)
	case *int64:
		*field = value.(int64)
	case *time.Duration:
		*field = value.(time.Duration)
	case *[]string:
		*field = value.([]string)
	}
}

// load returns the value of a key's field.
func (k *key) load(c *Config) any {
	switch field := k.field(c).(type) {
	case *string:
		return *field
	case *bool:
		return *field
	case *int:
		return *field
	case *int64:
		return *field
	case *time.Duration:
		return *field
	case *[]string:
		return *field
	}
	return nil
}
