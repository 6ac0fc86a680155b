package projection

import "github.com/tidwall/gjson"

// deepestSchema bounds how deep a schema is read. What lies deeper is skipped, so that neither the stack nor the time grows
// with nesting.
const deepestSchema = 48

// schemaReader walks a JSON schema in one pass over its bytes. It asks nothing of them: whatever is no schema, or no JSON,
// just gives fewer words. References are not followed; what they point to is read where it stands.
type schemaReader struct {
	raw []byte
	at  int
	// name takes the name of a parameter, text a description or a value out of an enumeration.
	name, text func(string)
}

// role is what a value means at its place in a schema.
type role uint8

const (
	ignored   role = iota
	schema         // a schema, or a list of schemas
	schemas        // an object of schemas whose keys say nothing to a user
	parameter      // an object of schemas whose keys are parameter names
	text           // a string, or a list of strings
)

func roleOf(key string) role {
	switch key {
	case "properties", "patternProperties":
		return parameter
	case "$defs", "definitions", "dependentSchemas":
		return schemas
	case "items", "prefixItems", "additionalProperties", "unevaluatedProperties", "anyOf", "oneOf", "allOf", "not", "if",
		"then", "else", "contains":
		return schema
	case "description", "enum", "const":
		return text
	}
	return ignored
}

// read walks the schema in raw.
func (s *schemaReader) read(raw []byte) {
	s.raw, s.at = raw, 0
	s.value(schema, 0)
}

// value reads the value at the current place and leaves at behind it. It always moves on, or to the end.
func (s *schemaReader) value(r role, depth int) {
	s.blanks()
	if s.at >= len(s.raw) {
		return
	}
	switch c := s.raw[s.at]; c {
	case '{', '[':
		if r == ignored || depth >= deepestSchema {
			s.skip()
			return
		}
		s.at++
		s.members(r, depth, c == '{')
	case '"':
		quoted := s.quoted()
		if r == text {
			s.text(unquote(quoted))
		}
	default:
		s.at++
		for s.at < len(s.raw) && !structural(s.raw[s.at]) {
			s.at++
		}
	}
}

// members reads the members of an object or the elements of a list, the opening bracket being behind.
func (s *schemaReader) members(r role, depth int, object bool) {
	for {
		s.blanks()
		if s.at >= len(s.raw) {
			return
		}
		switch s.raw[s.at] {
		case '}', ']':
			s.at++
			return
		case ',', ':':
			s.at++
			continue
		}
		inner := r
		if object {
			if s.raw[s.at] != '"' {
				s.value(ignored, depth+1)
				continue
			}
			key := unquote(s.quoted())
			switch r {
			case schema:
				inner = roleOf(key)
			case schemas:
				inner = schema
			case parameter:
				s.name(key)
				inner = schema
			default:
				inner = ignored
			}
			s.blanks()
			if s.at < len(s.raw) && s.raw[s.at] == ':' {
				s.at++
			}
		} else if r == parameter || r == schemas {
			inner = ignored
		}
		s.value(inner, depth+1)
	}
}

// skip passes an object or list without recursion.
func (s *schemaReader) skip() {
	open := 0
	for s.at < len(s.raw) {
		switch s.raw[s.at] {
		case '"':
			s.quoted()
			continue
		case '{', '[':
			open++
		case '}', ']':
			open--
		}
		s.at++
		if open == 0 {
			return
		}
	}
}

// quoted passes a string and returns it with its quotes.
func (s *schemaReader) quoted() []byte {
	start := s.at
	for s.at++; s.at < len(s.raw); s.at++ {
		switch s.raw[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			return s.raw[start:s.at]
		}
	}
	s.at = len(s.raw)
	return s.raw[start:]
}

func (s *schemaReader) blanks() {
	for s.at < len(s.raw) && (s.raw[s.at] == ' ' || s.raw[s.at] == '\n' || s.raw[s.at] == '\t' || s.raw[s.at] == '\r') {
		s.at++
	}
}

func structural(c byte) bool {
	return c == ',' || c == ':' || c == '{' || c == '}' || c == '[' || c == ']' || c == '"'
}

// unquote returns the text of a JSON string.
func unquote(quoted []byte) string { return gjson.ParseBytes(quoted).String() }
