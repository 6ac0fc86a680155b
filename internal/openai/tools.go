package openai

import (
	"bytes"
	"slices"
	"strings"
)

// Tools is the tools array of a request. All offsets are relative to its own bytes, so that it can be remembered: agents
// send the same array on every turn.
type Tools struct {
	// Raw is the array with its brackets.
	Raw []byte
	// Functions are the function tools in order, members of namespace groups included.
	Functions []Function
	// Native says that the request already uses the provider's own tool search.
	Native bool

	entries []entry
	groups  []group
	others  []AllowedTool // the tools that are no functions, as a choice names them
}

// Function is one function tool.
type Function struct {
	Range       // of the tool's raw JSON
	Name        string
	Description Range // raw JSON value
	Parameters  Range // raw JSON value
	group       int   // index of its namespace group plus one, 0 if it stands alone
	nameAt      Range // the value of name
}

// entry is one element of the array.
type entry struct {
	Range
	function int // index into Functions plus one
	group    int // index into groups plus one
	other    int // index into others plus one
}

// group is a namespace object: its bytes up to the members, the members, and the rest.
type group struct {
	Range
	members  Range // the array of members
	elements []groupElement
}

type groupElement struct {
	Range
	function int // index into Functions plus one
	other    int // index into others plus one
}

// DescriptionText returns the description of a function, unescaped.
func (t *Tools) DescriptionText(f *Function) string { return text(t.Raw, f.Description) }

// scanTools reads the array at the start of b, in one pass. It returns nil if no complete array stands there. nested says
// that a function's name stands within a member "function" (Chat) and not in the tool itself (Responses).
func scanTools(b []byte, nested bool) *Tools {
	const usualSize = 600 // of a tool
	likely := len(b)/usualSize + 4
	t := &Tools{Functions: make([]Function, 0, likely), entries: make([]entry, 0, likely)}
	scan := toolScan{nested: nested}
	end := eachElement(b, 0, func(start int) int {
		if start < len(b) && b[start] == '{' {
			return t.scanEntry(b, start, &scan)
		}
		end := skipValue(b, start)
		if end > 0 {
			t.entries = append(t.entries, entry{Range: Range{start, end}})
		}
		return end
	})
	if end < 0 {
		return nil
	}
	t.Raw = b[:end:end]
	return t
}

// tool records where the members of one tool stand.
type tool struct {
	kind, name, label, description, parameters, deferred Range
}

// toolScan is what is known of the element that is being read.
type toolScan struct {
	nested     bool
	tool       tool
	inner      tool // what "function" or "custom" holds
	hasInner   bool
	members    Range // the array of a group's members
	memberAt   []Range
	memberTool []tool
}

// place returns where the value of a key is to be noted, nil if it is of no interest.
func (o *tool) place(key []byte) *Range {
	switch string(key) {
	case "type":
		return &o.kind
	case "name":
		return &o.name
	case "server_label":
		return &o.label
	case "description":
		return &o.description
	case "parameters":
		return &o.parameters
	case "defer_loading":
		return &o.deferred
	}
	return nil
}

// flat reads a tool whose members are its own. One that is no JSON gives what can be read of it.
func (o *tool) flat(b []byte, start int) int {
	end := eachMember(b, start, func(key []byte, _, start int) int {
		end := skipValue(b, start)
		if at := o.place(key); at != nil {
			*at = Range{start, end}
		}
		return end
	})
	if end < 0 {
		return skipValue(b, start)
	}
	return end
}

// element reads the element at b[start] and returns the index behind it.
func (s *toolScan) element(b []byte, start int) int {
	s.tool, s.hasInner, s.members = tool{}, false, Range{}
	end := eachMember(b, start, func(key []byte, _, start int) int {
		if start >= len(b) {
			return failed
		}
		switch k := string(key); {
		case s.nested && b[start] == '{' && (k == "function" || k == "custom"):
			s.inner, s.hasInner = tool{}, true
			return s.inner.flat(b, start)
		case k == "tools" && b[start] == '[':
			return s.group(b, start)
		}
		end := skipValue(b, start)
		if at := s.tool.place(key); at != nil {
			*at = Range{start, end}
		}
		return end
	})
	if end < 0 {
		return skipValue(b, start)
	}
	return end
}

// group reads the members of a namespace group.
func (s *toolScan) group(b []byte, start int) int {
	s.memberAt, s.memberTool = s.memberAt[:0], s.memberTool[:0]
	end := eachElement(b, start, func(start int) int {
		s.memberTool = append(s.memberTool, tool{})
		end := failed
		if start < len(b) && b[start] == '{' {
			end = s.memberTool[len(s.memberTool)-1].flat(b, start)
		} else {
			end = skipValue(b, start)
		}
		s.memberAt = append(s.memberAt, Range{start, end})
		return end
	})
	if end < 0 {
		s.memberAt, s.memberTool = nil, nil
		end = skipValue(b, start)
	}
	s.members = Range{start, end}
	return end
}

// scanEntry reads one element and returns the index behind it.
func (t *Tools) scanEntry(b []byte, start int, s *toolScan) int {
	end := s.element(b, start)
	if end < 0 {
		return failed
	}
	e := entry{Range: Range{start, end}}
	kind := kindText(b, s.tool.kind)
	t.Native = t.Native || kind == "tool_search" || isTrue(b, s.tool.deferred)
	switch {
	case kind == "namespace" && !s.members.Absent():
		t.addGroup(b, &e, s)
	case kind == "function" && s.hasInner:
		t.Native = t.Native || isTrue(b, s.inner.deferred)
		t.addFunction(b, &e, &s.inner)
	case kind == "function":
		// The flat form is Responses' own; some clients send it to Chat Completions too, and some servers take it.
		t.addFunction(b, &e, &s.tool)
	default:
		label := text(b, s.tool.label)
		if label == "" {
			label = text(b, s.tool.name)
		}
		if label == "" && s.hasInner {
			label = text(b, s.inner.name)
		}
		e.other = t.addOther(kind, label)
	}
	t.entries = append(t.entries, e)
	return end
}

// addOther notes a tool that is no function, and returns its index plus one.
func (t *Tools) addOther(kind, label string) int {
	t.others = append(t.others, AllowedTool{kind, label})
	return len(t.others)
}

// kindText returns the type of a tool. Nearly all are functions.
func kindText(b []byte, at Range) string {
	if !at.Absent() && string(at.Of(b)) == `"function"` {
		return "function"
	}
	return text(b, at)
}

// function returns the function that stands at a range.
func (o *tool) function(b []byte, at Range) Function {
	return Function{Range: at, Name: text(b, o.name), Description: o.description, Parameters: o.parameters, nameAt: o.name}
}

func (t *Tools) addFunction(b []byte, e *entry, o *tool) {
	f := o.function(b, e.Range)
	if f.Name == "" {
		return
	}
	t.Functions = append(t.Functions, f)
	e.function = len(t.Functions)
}

func (t *Tools) addGroup(b []byte, e *entry, s *toolScan) {
	g := group{Range: e.Range, members: s.members, elements: make([]groupElement, len(s.memberAt))}
	name := text(b, s.tool.name)
	for i := range s.memberTool {
		member := &s.memberTool[i]
		g.elements[i].Range = s.memberAt[i]
		t.Native = t.Native || isTrue(b, member.deferred)
		if f := member.function(b, s.memberAt[i]); f.Name != "" && kindText(b, member.kind) == "function" {
			f.Name, f.group = name+"."+f.Name, len(t.groups)+1
			t.Functions = append(t.Functions, f)
			g.elements[i].function = len(t.Functions)
		} else {
			g.elements[i].other = t.addOther(kindText(b, member.kind), name+"."+f.Name)
		}
	}
	t.groups = append(t.groups, g)
	e.group = len(t.groups)
}

// Selection says what a projected tools array holds.
type Selection struct {
	// Keep says for each function whether it stands in the array from the start, in the client's order.
	Keep []bool
	// Drop says for each tool that is no function whether the request rules it out; nil drops nothing.
	Drop []bool
	// Virtual is the raw JSON of the virtual tool, nil for none.
	Virtual []byte
	// Loaded are functions in the order in which they were loaded.
	Loaded []int
	// Encode renames tools towards the upstream, nil does not.
	Encode func(name string) string
}

// drops reports whether a tool that is no function, by its index plus one, is ruled out.
func (s Selection) drops(other int) bool { return other > 0 && s.Drop != nil && s.Drop[other-1] }

// Render appends the projected array to dst: kept tools in the client's order, the virtual tool, loaded tools in their
// order. Members of a namespace group stand in one object of their group. With nothing to show, nothing is appended.
func (t *Tools) Render(dst []byte, s Selection) []byte {
	start := len(dst)
	dst = append(dst, '[')
	add := func() {
		if len(dst) > start+1 {
			dst = append(dst, ',')
		}
	}
	shownGroups := make([]bool, len(t.groups))
	for _, e := range t.entries {
		switch {
		case s.drops(e.other):
		case e.function > 0:
			if s.Keep[e.function-1] {
				add()
				dst = t.appendFunction(dst, e.function-1, s.Encode)
			}
		case e.group > 0:
			if members := t.groupMembers(e.group, s, true); members != nil {
				add()
				shownGroups[e.group-1] = true
				dst = t.appendGroup(dst, e.group, members)
			}
		default:
			add()
			dst = append(dst, e.Of(t.Raw)...)
		}
	}
	if s.Virtual != nil {
		add()
		dst = append(dst, s.Virtual...)
	}
	for _, i := range s.Loaded {
		switch g := t.Functions[i].group; {
		case s.Keep[i] || g > 0 && shownGroups[g-1]:
		case g > 0:
			add()
			shownGroups[g-1] = true
			dst = t.appendGroup(dst, g, t.groupMembers(g, s, false))
		default:
			add()
			dst = t.appendFunction(dst, i, s.Encode)
		}
	}
	if len(dst) == start+1 {
		return dst[:start]
	}
	return append(dst, ']')
}

// groupMembers lists what a namespace object holds: its kept members in the client's order, then its loaded members in
// the order in which they were loaded. ifKept gives none for a group that is in the array only for its loaded members,
// since that one stands at the place of its first load.
func (t *Tools) groupMembers(g int, s Selection, ifKept bool) []Range {
	var out []Range
	for _, element := range t.groups[g-1].elements {
		if element.function > 0 && s.Keep[element.function-1] || element.function == 0 && !s.drops(element.other) {
			out = append(out, element.Range)
		}
	}
	if ifKept && out == nil {
		return nil
	}
	for _, i := range s.Loaded {
		if t.Functions[i].group == g && !s.Keep[i] {
			out = append(out, t.Functions[i].Range)
		}
	}
	return out
}

func (t *Tools) appendGroup(dst []byte, g int, members []Range) []byte {
	whole := t.groups[g-1]
	dst = append(dst, t.Raw[whole.Start:whole.members.Start+1]...)
	for i, m := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, m.Of(t.Raw)...)
	}
	return append(dst, t.Raw[whole.members.End-1:whole.End]...)
}

func (t *Tools) appendFunction(dst []byte, i int, encode func(string) string) []byte {
	f := &t.Functions[i]
	if encode == nil {
		return append(dst, f.Of(t.Raw)...)
	}
	name := encode(f.Name)
	if name == f.Name {
		return append(dst, f.Of(t.Raw)...)
	}
	dst = append(dst, t.Raw[f.Start:f.nameAt.Start]...)
	dst = AppendString(dst, name)
	return append(dst, t.Raw[f.nameAt.End:f.End]...)
}

// Dropped says which of the tools that are no functions the choice rules out, nil if none.
func (t *Tools) Dropped(c *Choice) []bool {
	if c.Form != AllowedTools {
		return nil
	}
	out := make([]bool, len(t.others))
	for i, tool := range t.others {
		out[i] = !c.allows(tool)
	}
	if slices.Contains(out, true) {
		return out
	}
	return nil
}

// Forced returns the canonical name of the function that the choice forces, "" if it forces none. A member of a group may be
// forced by its own name.
func (t *Tools) Forced(c *Choice) string {
	if c.Form != ChoiceFunction || slices.ContainsFunc(t.Functions, func(f Function) bool { return f.Name == c.Function }) {
		return c.Function
	}
	for i := range t.Functions {
		if f := &t.Functions[i]; f.group > 0 && strings.HasSuffix(f.Name, "."+c.Function) {
			return f.Name
		}
	}
	return c.Function
}

// CustomNames returns the names of the tools that are called by name, but are no functions.
func (t *Tools) CustomNames() []string {
	var names []string
	for _, tool := range t.others {
		if tool.Type == "custom" {
			names = append(names, tool.Label)
		}
	}
	return names
}

// Detach gives the tools a copy of their own bytes, so that they can outlive the request.
func (t *Tools) Detach() *Tools {
	out := *t
	out.Raw = bytes.Clone(t.Raw)
	return &out
}
