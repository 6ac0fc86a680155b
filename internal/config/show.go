package config

import (
	"bytes"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
)

const mask = "********"

// show returns the value of a key as TOML, without its secrets.
func (k *key) show(c *Config) string { return k.format(k.load(c)) }

func (k *key) format(value any) string {
	switch v := value.(type) {
	case string:
		switch {
		case k.secret && v != "":
			v = mask
		case k.address:
			v = maskAddress(v, k.token)
		}
		return quote(v)
	case time.Duration:
		return quote(formatDuration(v))
	case int64:
		if k.kind == kindSize {
			return quote(formatSize(v))
		}
		return strconv.FormatInt(v, 10)
	case []string:
		quoted := make([]string, len(v))
		for i, s := range v {
			quoted[i] = quote(s)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	default:
		return fmt.Sprint(v)
	}
}

// maskAddress takes the password, and what may be a token, out of a URL.
func maskAddress(address string, path bool) string {
	u, err := url.Parse(address)
	if err != nil {
		return mask
	}
	if _, has := u.User.Password(); has {
		u.User = url.UserPassword(u.User.Username(), mask)
	}
	if path && len(u.Path) > 1 {
		u.Path, u.RawPath = "/"+mask, ""
	}
	query := u.Query()
	for name := range query {
		query.Set(name, mask)
	}
	u.RawQuery = query.Encode()
	return strings.ReplaceAll(u.String(), url.QueryEscape(mask), mask)
}

// quote writes a TOML basic string.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func formatDuration(d time.Duration) string {
	s := d.String()
	s = strings.TrimSuffix(s, "0s")
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	if s == "" || !strings.ContainsAny(s[len(s)-1:], "hms") {
		return d.String()
	}
	return s
}

func formatSize(n int64) string {
	for i := 3; i >= 0; i-- {
		unit := int64(sizeUnits[i].bytes)
		if n >= unit && n%unit == 0 {
			return strconv.FormatInt(n/unit, 10) + sizeUnits[i].name
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

// Print writes what is in force as TOML, each key with where it was set; secrets are masked.
func (c *Config) Print(w io.Writer) error {
	var b bytes.Buffer
	section := ""
	for _, k := range keys {
		if k.section != section {
			if section != "" {
				b.WriteByte('\n')
			}
			section = k.section
			fmt.Fprintf(&b, "[%s]\n", section)
		}
		fmt.Fprintf(&b, "%-58s # %s\n", k.name+" = "+k.show(c), c.origin(k.path()))
	}
	_, err := w.Write(b.Bytes())
	return err
}

// Change is a key whose value differs between two configurations, as shown: secrets are masked.
type Change struct {
	Key, From, To string
	// Restart says that the new value counts only after a restart.
	Restart bool
}

// Changes lists the keys whose values differ.
func Changes(from, to *Config) []Change {
	var changes []Change
	for _, k := range keys {
		if !reflect.DeepEqual(k.load(from), k.load(to)) {
			changes = append(changes, Change{k.path(), k.show(from), k.show(to), k.restart})
		}
	}
	return changes
}

// Example returns the example file: every key with its default and what it is for.
func Example() []byte {
	var b bytes.Buffer
	b.WriteString("# Every key with its default. Environment variables and flags win over this file; docs/configuration.md names them.\n")
	section := ""
	for _, k := range keys {
		if k.section != section {
			section = k.section
			fmt.Fprintf(&b, "\n[%s]\n", section)
		}
		fmt.Fprintf(&b, "# %s\n%s = %s\n", k.help, k.name, k.format(k.fallback))
	}
	return b.Bytes()
}

// Table returns the table of all keys for the documentation, in Markdown.
func Table() []byte {
	var b bytes.Buffer
	b.WriteString("| key | environment | flag | default | allowed | |\n|---|---|---|---|---|---|\n")
	cell := func(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
	for _, k := range keys {
		flag := ""
		if k.flag != "" {
			flag = "`--" + k.flag + "`"
		}
		help := k.help
		if k.restart {
			help += " *At the start only.*"
		}
		fmt.Fprintf(&b, "| `[%s] %s` | `%s` | %s | `%s` | %s | %s |\n", k.section, k.name, k.env(), flag,
			cell(k.format(k.fallback)), cell(k.allowed()), cell(help))
	}
	return b.Bytes()
}
