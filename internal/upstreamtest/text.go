package upstreamtest

import (
	"bytes"
	"encoding/json"
	"strings"
)

// quote writes a JSON string without HTML escapes.
func quote(text string) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string always encodes
	return strings.TrimSuffix(out.String(), "\n")
}

func quoteOrNull(text string) string {
	if text == "" {
		return "null"
	}
	return quote(text)
}

// object writes a JSON object of keys and raw values, in order; a pair with an empty value is left out.
func object(pairs ...string) string {
	var out strings.Builder
	out.WriteByte('{')
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		out.WriteString(quote(pairs[i]))
		out.WriteByte(':')
		out.WriteString(pairs[i+1])
	}
	out.WriteByte('}')
	return out.String()
}

func array(values []string) string { return "[" + strings.Join(values, ",") + "]" }

// event is one server-sent event.
type event struct {
	name string
	data string
}

// events reads a whole event stream: any line ends, joined data lines, no event for comments or an unfinished end.
// It returns what is left after the last blank line, too.
func events(body []byte) (list []event, rest string) {
	text := strings.TrimPrefix(string(body), "\ufeff")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	var current event
	var data []string
	for {
		line, after, found := strings.Cut(text, "\n")
		if !found {
			return list, strings.Join(append(data, line), "\n")
		}
		text = after
		if line == "" {
			if len(data) > 0 {
				current.data = strings.Join(data, "\n")
				list = append(list, current)
			}
			current, data = event{}, nil
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			current.name = value
		case "data":
			data = append(data, value)
		}
	}
}
