package openai

import "io"

// WriteUserText writes what the user said in an item, in a form that does not depend on how the client wraps it: a content
// string and a single text part are the same, and ids, names and cache marks do not count. Images and files count by
// their bytes.
func (v *View) WriteUserText(w io.Writer, item Item) {
	b := v.Body
	separator := []byte{0}
	switch {
	case isString(b, item.Content):
		_, _ = w.Write(b[item.Content.Start+1 : item.Content.End-1])
	case startsWith(b, item.Content, '['):
		for i, part := range elements(b, item.Content.Start) {
			if i > 0 {
				_, _ = w.Write(separator)
			}
			if startsWith(b, part, '{') {
				if t := find(b, part.Start, "text"); isString(b, t) {
					_, _ = w.Write(b[t.Start+1 : t.End-1])
					continue
				}
			}
			_, _ = w.Write(part.Of(b))
		}
	default:
		_, _ = w.Write(item.Of(b))
	}
	_, _ = w.Write([]byte{0, 0})
}
