package openai

import "slices"

// Edit replaces the bytes of At by With; an empty At at some index inserts there. Everything outside the edits of a body
// is copied byte for byte.
type Edit struct {
	At   Range
	With []byte
}

// applyEdits appends body with the edits to dst, in one pass. Edits must not overlap; insertions at one index keep their
// order.
func applyEdits(dst, body []byte, edits []Edit) []byte {
	slices.SortStableFunc(edits, func(a, b Edit) int { return a.At.Start - b.At.Start })
	size := len(body)
	for _, e := range edits {
		size += len(e.With) - (e.At.End - e.At.Start)
	}
	dst = slices.Grow(dst, size)
	at := 0
	for _, e := range edits {
		dst = append(dst, body[at:e.At.Start]...)
		dst = append(dst, e.With...)
		at = e.At.End
	}
	return append(dst, body[at:]...)
}

func insert(at int, with []byte) Edit { return Edit{Range{at, at}, with} }

// appendElements returns the edit that puts raw, comma-separated elements at the end of the array at the range.
func appendElements(body []byte, array Range, raw []byte) Edit {
	last := array.End - 1
	if emptyArray(body, array) {
		return insert(last, raw)
	}
	return insert(last, append([]byte{','}, raw...))
}

func emptyArray(body []byte, array Range) bool {
	return skipSpace(body, array.Start+1) == array.End-1
}

// AppendString appends s to dst as a JSON string. Only what JSON demands is escaped: <, > and & stay as they are, since
// escapes cost tokens and models copy them.
func AppendString(dst []byte, s string) []byte {
	return append(appendInner(append(dst, '"'), s), '"')
}

// appendInner appends s as the inner bytes of a JSON string.
func appendInner(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	if cap(dst)-len(dst) < len(s) {
		dst = slices.Grow(dst, len(s)+len(s)/16+16)
	}
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(dst, s[from:]...)
}
