package openai

import (
	"bytes"
	"errors"

	"github.com/tidwall/gjson"
)

// MaxDepth is the deepest nesting of arrays and objects that a body may have. Parsers behind the proxy recurse; what is
// deeper than this is an attack and not a request.
const MaxDepth = 9999

// ErrSyntax says that a body is not the JSON object that the dialect expects.
var ErrSyntax = errors.New("the body is not a complete JSON object")

// ErrTooDeep says that a body is nested deeper than MaxDepth.
var ErrTooDeep = errors.New("the body is nested too deeply")

// Range is a half-open range of bytes. The zero Range stands for something that is absent.
type Range struct{ Start, End int }

// Of returns the bytes of the range.
func (r Range) Of(b []byte) []byte { return b[r.Start:r.End] }

// Absent reports whether nothing stands there, or nothing that could be read.
func (r Range) Absent() bool { return r.End <= 0 }

func (r Range) shift(by int) Range {
	if r.Absent() {
		return r
	}
	return Range{r.Start + by, r.End + by}
}

// member is one key and its value within an object.
type member struct {
	Key   []byte // unescaped
	Whole Range  // key, colon and value
	Value Range
}

const failed = -1

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the index behind the string at b[i]. A quote ends it when an even number of backslashes stands
// before it. Most strings are short: those are looked at byte by byte.
func skipString(b []byte, i int) int {
	const short = 16
	p := i + 1
	for end := min(p+short, len(b)); p < end; p++ {
		switch b[p] {
		case '"':
			return p + 1
		case '\\':
			p++
		}
	}
	for p < len(b) {
		k := bytes.IndexByte(b[p:], '"')
		if k < 0 {
			return failed
		}
		quote := p + k
		n := quote - 1
		for n > i && b[n] == '\\' {
			n--
		}
		if (quote-1-n)&1 == 0 {
			return quote + 1
		}
		p = quote + 1
	}
	return failed
}

var structural = [256]bool{'"': true, '{': true, '}': true, '[': true, ']': true}

// skipValue returns the index behind the value at b[i]. It follows the structure and does not validate scalars, but for
// quotes and opening brackets in them: so a walk through the parts of a value never leads out of it, even where it is no
// JSON.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return failed
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
	case ',', ':', '}', ']':
		return failed
	default:
		for i < len(b) {
			switch b[i] {
			case ',', '}', ']', ' ', '\n', '\t', '\r':
				return i
			case '"', '{', '[':
				return failed
			}
			i++
		}
		return i
	}
	depth := 0
	for i < len(b) {
		c := b[i]
		if !structural[c] {
			i++
			continue
		}
		switch c {
		case '"':
			if i = skipString(b, i); i < 0 {
				return failed
			}
			continue
		case '{', '[':
			depth++
			if depth > MaxDepth {
				return failed
			}
		default:
			depth--
			if depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return failed
}

// eachMember calls f for every member of the object at b[i] and returns the index behind the object, or failed. f may
// take over reading the value: it gets the index at which the value starts and returns the index behind it.
func eachMember(b []byte, i int, f func(key []byte, keyStart, valueStart int) int) int {
	if i >= len(b) || b[i] != '{' {
		return failed
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1
	}
	for i < len(b) {
		start := i
		if b[i] != '"' {
			return failed
		}
		if i = skipString(b, i); i < 0 {
			return failed
		}
		key := unescaped(b[start+1 : i-1])
		i = skipSpace(b, i)
		if i >= len(b) || b[i] != ':' {
			return failed
		}
		i = skipSpace(b, i+1)
		if i = f(key, start, i); i < 0 {
			return failed
		}
		i = skipSpace(b, i)
		if i >= len(b) {
			return failed
		}
		switch b[i] {
		case '}':
			return i + 1
		case ',':
			i = skipSpace(b, i+1)
		default:
			return failed
		}
	}
	return failed
}

// eachValue calls f for every member of the object at b[i], as far as it can be read.
func eachValue(b []byte, i int, f func(key []byte, value Range)) {
	eachMember(b, i, func(key []byte, _, start int) int {
		end := skipValue(b, start)
		if end >= 0 {
			f(key, Range{start, end})
		}
		return end
	})
}

// eachElement calls f for the start of every element of the array at b[i]; f returns the index behind the element.
func eachElement(b []byte, i int, f func(start int) int) int {
	if i >= len(b) || b[i] != '[' {
		return failed
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == ']' {
		return i + 1
	}
	for i < len(b) {
		if i = f(i); i < 0 {
			return failed
		}
		i = skipSpace(b, i)
		if i >= len(b) {
			return failed
		}
		switch b[i] {
		case ']':
			return i + 1
		case ',':
			i = skipSpace(b, i+1)
		default:
			return failed
		}
	}
	return failed
}

// appendMembers appends the members of the object at b[i] to dst; ok is false if it is no complete object.
func appendMembers(dst []member, b []byte, i int) (_ []member, ok bool) {
	end := eachMember(b, i, func(key []byte, keyStart, start int) int {
		end := skipValue(b, start)
		if end >= 0 {
			dst = append(dst, member{key, Range{keyStart, end}, Range{start, end}})
		}
		return end
	})
	return dst, end >= 0
}

// elements returns the ranges of the elements of the array at b[i], nil if it is none.
func elements(b []byte, i int) []Range {
	var out []Range
	if eachElement(b, i, func(start int) int {
		end := skipValue(b, start)
		out = append(out, Range{start, end})
		return end
	}) < 0 {
		return nil
	}
	return out
}

// find returns the value of a member of the object at b[i]; of repeated keys the last counts, as parsers have it.
func find(b []byte, i int, name string) Range {
	var found Range
	eachMember(b, i, func(key []byte, _, start int) int {
		end := skipValue(b, start)
		if end >= 0 && string(key) == name {
			found = Range{start, end}
		}
		return end
	})
	return found
}

// unescaped resolves escapes in the inner bytes of a string; without any it returns them as they are.
func unescaped(inner []byte) []byte {
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	quoted := make([]byte, 0, len(inner)+2)
	quoted = append(append(append(quoted, '"'), inner...), '"')
	return []byte(gjson.ParseBytes(quoted).String())
}

// text returns the string at the range, "" if it is no string.
func text(b []byte, r Range) string {
	if !isString(b, r) {
		return ""
	}
	return string(unescaped(b[r.Start+1 : r.End-1]))
}

func isString(b []byte, r Range) bool { return r.End-r.Start >= 2 && b[r.Start] == '"' }

func isNull(b []byte, r Range) bool { return r.Absent() || string(r.Of(b)) == "null" }

func isTrue(b []byte, r Range) bool { return !r.Absent() && string(r.Of(b)) == "true" }

// startsWith reports whether the value at the range opens with c.
func startsWith(b []byte, r Range, c byte) bool { return !r.Absent() && b[r.Start] == c }
