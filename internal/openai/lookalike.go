package openai

import "bytes"

// lookalike knows a chunk that went to the client as it came and shows nothing but text. Most chunks of a stream differ from
// the one before in their text only: that is seen by comparing bytes, and they need not be taken apart.
type lookalike struct {
	known  bool
	before []byte // up to the text
	behind []byte // from the end of the text to the obfuscation, or to the end
	padded bool   // there is an obfuscation behind the text
	last   []byte // from the end of the obfuscation on
}

// learn takes over the chunk of an event, if its content is a string.
func (l *lookalike) learn(ev Event, c *chunk) {
	l.known = isString(c.data, c.content) && ev.dataAt >= 0
	if !l.known {
		return
	}
	text, padding := c.content.shift(ev.dataAt), c.scrambled.shift(ev.dataAt)
	l.before = append(l.before[:0], ev.Raw[:text.Start+1]...)
	behind := ev.Raw[text.End-1:]
	if l.padded = isString(ev.Raw, padding) && padding.Start > text.End; l.padded {
		behind = ev.Raw[text.End-1 : padding.Start+1]
		l.last = append(l.last[:0], ev.Raw[padding.End-1:]...)
	}
	l.behind = append(l.behind[:0], behind...)
}

// text returns where the text stands in the raw bytes of an event that differs from the known one in its text and its
// obfuscation only. Strings with a quote in them are left to the parser.
func (l *lookalike) text(raw []byte) (_ Range, ok bool) {
	if !l.known || !bytes.HasPrefix(raw, l.before) {
		return Range{}, false
	}
	start := len(l.before)
	end := plainEnd(raw, start)
	if end < 0 || !bytes.HasPrefix(raw[end:], l.behind) {
		return Range{}, false
	}
	rest := raw[end+len(l.behind):]
	if l.padded {
		padding := plainEnd(rest, 0)
		if padding < 0 || !bytes.Equal(rest[padding:], l.last) {
			return Range{}, false
		}
		rest = nil
	}
	return Range{start - 1, end + 1}, len(rest) == 0
}

// plainEnd returns the index of the quote that ends the string whose inner bytes begin at i, failed if that takes a parser.
func plainEnd(b []byte, i int) int {
	n := bytes.IndexByte(b[i:], '"')
	if n < 0 || n > 0 && b[i+n-1] == '\\' {
		return failed
	}
	return i + n
}
