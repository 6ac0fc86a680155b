package openai

import (
	"bytes"

	"github.com/tidwall/gjson"
)

// merged accumulates the deltas of one message into the object that they describe: strings are joined, arrays appended or
// merged by their elements' index, objects merged, everything else replaced. Null, empty and absent stay different.
type merged struct {
	members []mergedMember
}

type mergedMember struct {
	name     string
	text     []byte // inner bytes of a string, still escaped
	elements []mergedElement
	object   *merged
	raw      []byte // any other value
	kind     byte   // '"', '[', '{' or 0
}

type mergedElement struct {
	index  string // raw index of an object that has one
	object *merged
	raw    []byte
	ours   bool // a part that was made of strings
}

func (m *merged) member(name string) *mergedMember {
	for i := range m.members {
		if m.members[i].name == name {
			return &m.members[i]
		}
	}
	m.members = append(m.members, mergedMember{name: name})
	return &m.members[len(m.members)-1]
}

// add joins one member of a delta to what is there.
func (m *merged) add(b []byte, key []byte, value Range) {
	var at *mergedMember
	for i := range m.members {
		if m.members[i].name == string(key) {
			at = &m.members[i]
		}
	}
	if at == nil {
		at = m.member(string(key))
	}
	switch b[value.Start] {
	case '"':
		inner := b[value.Start+1 : value.End-1]
		if at.kind == '[' {
			at.addTextPart(inner)
			return
		}
		at.kind = '"'
		at.text = append(at.text, inner...)
	case '[':
		if at.kind == '"' {
			at.addTextPart(at.text)
			at.text = nil
		}
		at.kind = '['
		for _, e := range elements(b, value.Start) {
			at.addElement(b, e)
		}
	case '{':
		at.kind = '{'
		if at.object == nil {
			at.object = &merged{}
		}
		at.object.addAll(b, value)
	default:
		if at.kind == 0 && (at.raw == nil || !isNull(b, value)) {
			at.raw = bytes.Clone(value.Of(b))
		}
	}
}

// addTextPart joins a text, escaped as it is, to the parts of a content: some servers give their reasoning in parts and
// the answer in strings.
func (at *mergedMember) addTextPart(inner []byte) {
	if at.name != "content" || len(inner) == 0 {
		return
	}
	if n := len(at.elements); n > 0 && at.elements[n-1].ours {
		text := at.elements[n-1].object.member("text")
		text.text = append(text.text, inner...)
		return
	}
	part := &merged{members: []mergedMember{
		{name: "type", kind: '"', text: []byte("text")}, {name: "text", kind: '"', text: bytes.Clone(inner)},
	}}
	at.elements = append(at.elements, mergedElement{object: part, ours: true})
}

func (m *merged) addAll(b []byte, object Range) {
	eachMember(b, object.Start, func(key []byte, _, start int) int {
		end := skipValue(b, start)
		if end > 0 {
			m.add(b, key, Range{start, end})
		}
		return end
	})
}

// addElement appends an element, or joins it to the one of the same index: gateways stream one signed reasoning block in
// pieces that carry its index.
func (at *mergedMember) addElement(b []byte, e Range) {
	if b[e.Start] != '{' {
		at.elements = append(at.elements, mergedElement{raw: bytes.Clone(e.Of(b))})
		return
	}
	index := ""
	if r := find(b, e.Start, "index"); !isNull(b, r) {
		index = string(r.Of(b))
	}
	if n := len(at.elements); index != "" && n > 0 {
		for i := n - 1; i >= 0; i-- {
			if at.elements[i].index == index {
				at.elements[i].object.addPiece(b, e)
				return
			}
		}
	}
	object := &merged{}
	object.addAll(b, e)
	at.elements = append(at.elements, mergedElement{index: index, object: object})
}

// addPiece joins a further piece of an indexed element: its text goes on, its other members are stated again.
func (m *merged) addPiece(b []byte, e Range) {
	eachMember(b, e.Start, func(key []byte, _, start int) int {
		end := skipValue(b, start)
		if end < 0 {
			return failed
		}
		value := Range{start, end}
		switch string(key) {
		case "text", "data", "summary", "thinking", "content":
			if !isNull(b, value) {
				m.add(b, key, value)
			}
		default:
			if !isNull(b, value) {
				*m.member(string(key)) = mergedMember{name: string(key)}
				m.add(b, key, value)
			}
		}
		return end
	})
}

// text returns the text of a string member, unescaped.
func (m *merged) text(name string) (string, bool) {
	for i := range m.members {
		if at := &m.members[i]; at.name == name && at.kind == '"' {
			return string(unescaped(at.text)), true
		}
	}
	return "", false
}

// appendMembers appends the members, comma-separated, but for those that skip names.
func (m *merged) appendMembers(dst []byte, skip func(name string) bool) []byte {
	first := true
	for i := range m.members {
		at := &m.members[i]
		if skip != nil && skip(at.name) {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(AppendString(dst, at.name), ':')
		dst = at.appendValue(dst)
	}
	return dst
}

func (at *mergedMember) appendValue(dst []byte) []byte {
	switch at.kind {
	case '"':
		return append(append(append(dst, '"'), at.text...), '"')
	case '[':
		dst = append(dst, '[')
		for i, e := range at.elements {
			if i > 0 {
				dst = append(dst, ',')
			}
			if e.object != nil {
				dst = e.object.append(dst)
			} else {
				dst = append(dst, e.raw...)
			}
		}
		return append(dst, ']')
	case '{':
		return at.object.append(dst)
	}
	return append(dst, at.raw...)
}

func (m *merged) append(dst []byte) []byte {
	return append(m.appendMembers(append(dst, '{'), nil), '}')
}

// shiftOffsets adds by to start_index and end_index of every annotation: they count from the start of the joined text.
func (at *mergedMember) shiftOffsets(by int) {
	if by == 0 {
		return
	}
	for i := range at.elements {
		shiftObject(at.elements[i].object, by)
	}
}

func shiftObject(m *merged, by int) {
	if m == nil {
		return
	}
	for i := range m.members {
		at := &m.members[i]
		switch {
		case at.object != nil:
			shiftObject(at.object, by)
		case at.kind == 0 && (at.name == "start_index" || at.name == "end_index"):
			at.raw = appendInt(nil, gjson.ParseBytes(at.raw).Int()+int64(by))
		}
	}
}

func (m *merged) has(name string) bool {
	for i := range m.members {
		if m.members[i].name == name {
			return true
		}
	}
	return false
}
