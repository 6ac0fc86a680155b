package openai

import (
	"bytes"
	"crypto/rand"
	"errors"
	"html"
	"slices"

	"github.com/tidwall/gjson"
)

// TextCall is a tool call that the model wrote as text.
type TextCall struct {
	// ID is the id that the model gave the call, empty if it gave none.
	ID string
	// Name is the name as it was written.
	Name string
	// Arguments is the JSON text of an object.
	Arguments []byte
}

// Why a text that looks like calls calls nothing. The errors never hold any of the text.
var (
	errTextUnclosed  = errors.New("openai: text calls: the fence around them is not closed")
	errTextMixed     = errors.New("openai: text calls: envelopes of several kinds stand in one text")
	errTextJSON      = errors.New("openai: text calls: the JSON is broken or nested too deeply")
	errTextKeys      = errors.New("openai: text calls: an object has a key too many, too few or twice")
	errTextArguments = errors.New("openai: text calls: arguments are not a JSON object")
	errTextName      = errors.New("openai: text calls: a name is empty or no string")
	errTextID        = errors.New("openai: text calls: an id is blank, no string or given twice")
	errTextTag       = errors.New("openai: text calls: a tag or an attribute is broken, missing or not allowed there")
	errTextParameter = errors.New("openai: text calls: a parameter is broken or given twice")
	errTextUnknown   = errors.New("openai: text calls: a name is not that of a tool of the request")
)

// errOrdinaryText ends the reading of a text that is no calls at all.
var errOrdinaryText = errors.New("openai: ordinary text")

// ParseTextCalls reads a text that is nothing but calls, in one of the envelopes that models are known to write; known
// says which names are tools. For ordinary text it returns nil and no error, for a text that looks like calls but cannot
// be read safely an error that says why and quotes nothing. It takes time in proportion to the text.
func ParseTextCalls(text []byte, known func(name string) bool) ([]TextCall, error) {
	var prefix TextCallPrefix
	if !prefix.Feed(text) {
		return nil, nil // so that a text is read in the same way whether it comes in pieces or whole
	}
	inner, closed := withoutFence(text)
	var calls []TextCall
	var err error
	switch s := (textScanner{b: inner}); {
	case s.sees("{"):
		calls, err = s.objects()
	case s.sees("<tool_execution"):
		calls, err = s.envelopes("<tool_execution", s.toolExecution)
	case s.sees("<function_calls"):
		calls, err = s.envelopes("<function_calls", s.functionCalls)
	case s.sees("<function="):
		calls, err = s.envelopes("<function=", s.functionBlock)
	case s.sees("<tool") && len(inner) > len("<tool") && isSpace(inner[len("<tool")]):
		calls, err = s.envelopes("<tool", s.toolTag)
	default:
		return nil, nil
	}
	switch {
	case err == errOrdinaryText:
		return nil, nil
	case err != nil:
		return nil, err
	case !closed:
		return nil, errTextUnclosed
	}
	for _, c := range calls {
		if known == nil || !known(c.Name) {
			return nil, errTextUnknown
		}
	}
	return calls, nil
}

// newTextCallID makes an id for a call that has none.
func newTextCallID() string { return "call_txt_" + rand.Text() }

// longestInfo is the longest word, in bytes, behind the opening of a Markdown fence.
const longestInfo = 32

// withoutFence trims the text and takes off a Markdown fence around the whole; closed is false if only its opening is there.
func withoutFence(text []byte) (inner []byte, closed bool) {
	text = trimSpace(text)
	if len(text) == 0 || !isFence(text[0]) {
		return text, true
	}
	fence := text[0]
	n := 1
	for n < len(text) && text[n] == fence {
		n++
	}
	line := bytes.IndexByte(text, '\n')
	if n < 3 || line < 0 || line-n > longestInfo {
		return text, true
	}
	for _, c := range text[n:line] {
		if !isInfo(c) {
			return text, true
		}
	}
	inner = text[line:]
	end := len(inner)
	for end > 0 && inner[end-1] == fence {
		end--
	}
	return trimSpace(inner[:end]), len(inner)-end >= n
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func trimSpace(b []byte) []byte { return bytes.Trim(b, " \n\t\r") }

func isFence(c byte) bool { return c == '`' || c == '~' }

// isInfo reports whether c may stand behind the opening of a fence, on its line.
func isInfo(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '+' ||
		c == ' ' || c == '\t' || c == '\r'
}

// jsonObject reports whether b is one complete JSON object, and nothing beside it. Validation recurses, so that the depth
// is looked at first.
func jsonObject(b []byte) bool {
	return len(b) > 0 && b[0] == '{' && completeJSON(b)
}

func completeJSON(b []byte) bool { return skipValue(b, 0) == len(b) && gjson.ValidBytes(b) }

// textScanner reads a text from front to back.
type textScanner struct {
	b  []byte
	at int
}

func (s *textScanner) sees(literal string) bool {
	return len(s.b)-s.at >= len(literal) && string(s.b[s.at:s.at+len(literal)]) == literal
}

func (s *textScanner) skip(literal string) bool {
	if !s.sees(literal) {
		return false
	}
	s.at += len(literal)
	return true
}

func (s *textScanner) space() { s.at = skipSpace(s.b, s.at) }

func (s *textScanner) done() bool { return s.at >= len(s.b) }

// until returns what stands before the literal and goes behind it.
func (s *textScanner) until(literal string) ([]byte, bool) {
	n := bytes.Index(s.b[s.at:], []byte(literal))
	if n < 0 {
		return nil, false
	}
	out := s.b[s.at : s.at+n]
	s.at += n + len(literal)
	return out, true
}

// objects reads JSON objects, each of which is a call, or one object that holds a list of calls.
func (s *textScanner) objects() ([]TextCall, error) {
	var calls []TextCall
	for !s.done() {
		end := skipValue(s.b, s.at)
		if end < 0 || !jsonObject(s.b[s.at:end]) {
			return nil, errTextJSON
		}
		object := s.b[s.at:end]
		s.at = end
		s.space()
		members, _ := appendMembers(nil, object, 0)
		if string(members[0].Key) == "tool_calls" {
			if len(calls) > 0 || !s.done() {
				return nil, errTextMixed
			}
			return callList(object, members)
		}
		call, err := objectCall(object, members)
		if err != nil {
			return nil, err
		}
		calls = append(calls, call)
	}
	return calls, nil
}

// objectCall reads one call: {"tool","arguments"}, {"tool", flat arguments}, {"name","arguments"} or
// {"function","parameters"}.
func objectCall(b []byte, members []member) (TextCall, error) {
	var tool, name, function, arguments, parameters Range
	seen := make(map[string]bool, len(members))
	for _, m := range members {
		if seen[string(m.Key)] {
			return TextCall{}, errTextKeys
		}
		seen[string(m.Key)] = true
		switch string(m.Key) {
		case "tool":
			tool = m.Value
		case "name":
			name = m.Value
		case "function":
			function = m.Value
		case "arguments":
			arguments = m.Value
		case "parameters":
			parameters = m.Value
		}
	}
	called, with := tool, arguments
	switch {
	case !tool.Absent() && arguments.Absent():
		if len(members) == 2 && startsWith(b, parameters, '{') {
			return TextCall{}, errTextKeys // all arguments, or one of that name: nobody knows
		}
		flat := []byte{'{'}
		for _, m := range members {
			if string(m.Key) != "tool" {
				if len(flat) > 1 {
					flat = append(flat, ',')
				}
				flat = append(flat, m.Whole.Of(b)...)
			}
		}
		return newTextCall(b, tool, append(flat, '}'))
	case !tool.Absent():
	case !name.Absent() && !arguments.Absent():
		called = name
	case !function.Absent() && !parameters.Absent():
		called, with = function, parameters
	default:
		return TextCall{}, errOrdinaryText
	}
	if len(members) != 2 {
		return TextCall{}, errTextKeys
	}
	return newTextCall(b, called, textArguments(b, with))
}

// textArguments returns the object at the range, or the one that the string there encodes.
func textArguments(b []byte, at Range) []byte {
	if isString(b, at) {
		return trimSpace(unescaped(b[at.Start+1 : at.End-1]))
	}
	return at.Of(b)
}

func newTextCall(b []byte, name Range, arguments []byte) (TextCall, error) {
	c := TextCall{Name: text(b, name), Arguments: arguments}
	switch {
	case c.Name == "":
		return c, errTextName
	case !jsonObject(arguments):
		return c, errTextArguments
	}
	return c, nil
}

// callList reads the calls of an object whose only member is tool_calls.
func callList(b []byte, members []member) ([]TextCall, error) {
	if len(members) != 1 || !startsWith(b, members[0].Value, '[') {
		return nil, errTextKeys
	}
	var calls []TextCall
	ids := make(map[string]bool)
	for _, at := range elements(b, members[0].Value.Start) {
		if !startsWith(b, at, '{') {
			return nil, errTextKeys
		}
		var id, name, arguments Range
		inner, _ := appendMembers(nil, b, at.Start)
		for _, m := range inner {
			var value *Range
			switch string(m.Key) {
			case "id":
				value = &id
			case "name":
				value = &name
			case "arguments":
				value = &arguments
			}
			if value == nil || !value.Absent() {
				return nil, errTextKeys
			}
			*value = m.Value
		}
		if name.Absent() || arguments.Absent() {
			return nil, errTextKeys
		}
		call, err := newTextCall(b, name, textArguments(b, arguments))
		if err != nil {
			return nil, err
		}
		if !id.Absent() {
			call.ID = text(b, id)
			if len(trimSpace([]byte(call.ID))) == 0 || ids[call.ID] {
				return nil, errTextID
			}
			ids[call.ID] = true
		}
		calls = append(calls, call)
	}
	if len(calls) == 0 {
		return nil, errTextKeys
	}
	return calls, nil
}

// envelopes reads the text as envelopes of one kind, with nothing but white space between them.
func (s *textScanner) envelopes(opening string, read func(s *textScanner) ([]TextCall, error)) ([]TextCall, error) {
	var calls []TextCall
	for s.space(); !s.done(); s.space() {
		switch {
		case s.sees(opening):
		case s.sees("<"), s.sees("{"):
			return nil, errTextMixed
		default:
			return nil, errOrdinaryText
		}
		more, err := read(s)
		if err != nil {
			return nil, err
		}
		calls = append(calls, more...)
	}
	return calls, nil
}

// attribute is one attribute of a tag, with the quote around its value and the value as it stands there.
type attribute struct {
	name  string
	quote byte
	value []byte
}

// tag reads an opening tag with attributes; empty says that it closed itself.
func (s *textScanner) tag(name string) (attributes []attribute, empty, ok bool) {
	if !s.skip("<" + name) {
		return nil, false, false
	}
	for {
		before := s.at
		s.space()
		switch {
		case s.skip(">"):
			return attributes, false, true
		case s.skip("/>"):
			return attributes, true, true
		case s.at == before:
			return nil, false, false // neither the end nor a space before an attribute
		}
		start := s.at
		for !s.done() && (s.b[s.at] >= 'a' && s.b[s.at] <= 'z' || s.b[s.at] == '_') {
			s.at++
		}
		a := attribute{name: string(s.b[start:s.at])}
		s.space()
		if !s.skip("=") {
			return nil, false, false
		}
		s.space()
		if s.done() || s.b[s.at] != '"' && s.b[s.at] != '\'' {
			return nil, false, false
		}
		a.quote = s.b[s.at]
		s.at++
		start = s.at
		for !s.done() && s.b[s.at] != a.quote {
			if s.b[s.at] == '\\' {
				s.at++
			}
			s.at++
		}
		if s.done() {
			return nil, false, false
		}
		a.value = s.b[start:s.at]
		s.at++
		// The few known attributes bound the number of them.
		if slices.ContainsFunc(attributes, func(other attribute) bool { return other.name == a.name }) || len(attributes) > 2 {
			return nil, false, false
		}
		attributes = append(attributes, a)
	}
}

// text resolves the escapes of the attribute's value.
func (a attribute) text() string {
	return string(withoutBackslashes([]byte(html.UnescapeString(string(a.value))), `\"'`))
}

// object returns the JSON object that the attribute holds. Whether a backslash belongs to the attribute or to the JSON in
// it shows by which of the readings is JSON.
func (a attribute) object() ([]byte, bool) {
	value := trimSpace([]byte(html.UnescapeString(string(a.value))))
	if jsonObject(value) {
		return value, true
	}
	if a.quote == '\'' {
		if v := withoutBackslashes(value, `'`); jsonObject(v) {
			return v, true
		}
	}
	v := withoutBackslashes(value, `\"'`)
	return v, jsonObject(v)
}

// withoutBackslashes takes away the backslashes in front of the characters of the set.
func withoutBackslashes(b []byte, set string) []byte {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if b[i] == '\\' && i+1 < len(b) {
			if bytes.IndexByte([]byte(set), b[i+1]) < 0 {
				out = append(out, b[i])
			}
			i++
		}
		out = append(out, b[i])
	}
	return out
}

// tagCall reads an empty tag, paired or closed by itself, that is a call. Its arguments stand in an attribute of one of
// the given names.
func (s *textScanner) tagCall(name string, arguments ...string) (c TextCall, given bool, err error) {
	attributes, empty, ok := s.tag(name)
	if !ok {
		return c, false, errTextTag
	}
	if !empty {
		if s.space(); !s.skip("</" + name + ">") {
			return c, false, errTextTag
		}
	}
	for _, a := range attributes {
		switch {
		case a.name == "name":
			c.Name = a.text()
		case slices.Contains(arguments, a.name) && !given:
			given = true
			if c.Arguments, ok = a.object(); !ok {
				return c, given, errTextArguments
			}
		default:
			return c, given, errTextTag
		}
	}
	if c.Name == "" {
		return c, given, errTextName
	}
	return c, given, nil
}

// toolTag reads <tool name="…" params='…' />.
func (*textScanner) toolTag(s *textScanner) ([]TextCall, error) {
	c, given, err := s.tagCall("tool", "params", "parameters", "arguments")
	if err == nil && !given {
		err = errTextArguments
	}
	return []TextCall{c}, err
}

// toolExecution reads <tool_execution> with <tool_call name="…" arguments='…'></tool_call> in it.
func (*textScanner) toolExecution(s *textScanner) ([]TextCall, error) {
	return s.children("tool_execution", func() (TextCall, error) {
		c, given, err := s.tagCall("tool_call", "arguments")
		if !given {
			c.Arguments = []byte("{}")
		}
		return c, err
	})
}

// functionCalls reads <function_calls> with <invoke name="…"><arguments>…</arguments></invoke> in it.
func (*textScanner) functionCalls(s *textScanner) ([]TextCall, error) {
	return s.children("function_calls", func() (TextCall, error) {
		var c TextCall
		attributes, empty, ok := s.tag("invoke")
		if !ok || empty || len(attributes) != 1 || attributes[0].name != "name" {
			return c, errTextTag
		}
		if c.Name = attributes[0].text(); c.Name == "" {
			return c, errTextName
		}
		if s.space(); !s.skip("<arguments>") {
			return c, errTextTag
		}
		value, ok := s.until("</arguments>")
		if s.space(); !ok || !s.skip("</invoke>") {
			return c, errTextTag
		}
		c.Arguments = trimSpace(value)
		if !jsonObject(c.Arguments) {
			c.Arguments = []byte(html.UnescapeString(string(c.Arguments)))
			if !jsonObject(c.Arguments) {
				return c, errTextArguments
			}
		}
		return c, nil
	})
}

// children reads a tag without attributes that holds calls and nothing else.
func (s *textScanner) children(name string, read func() (TextCall, error)) ([]TextCall, error) {
	attributes, empty, ok := s.tag(name)
	if !ok || empty || len(attributes) > 0 {
		return nil, errTextTag
	}
	var calls []TextCall
	for {
		s.space()
		if s.skip("</" + name + ">") {
			break
		}
		c, err := read()
		if err != nil {
			return nil, err
		}
		calls = append(calls, c)
	}
	if len(calls) == 0 {
		return nil, errTextTag
	}
	return calls, nil
}

// functionBlock reads <function=NAME> with <parameter=NAME>…</parameter> in it.
func (*textScanner) functionBlock(s *textScanner) ([]TextCall, error) {
	s.skip("<function=")
	name, ok := s.blockName()
	if !ok {
		return nil, errTextName
	}
	seen := make(map[string]bool)
	arguments := []byte{'{'}
	for {
		s.space()
		if s.skip("</function>") {
			return []TextCall{{Name: name, Arguments: append(arguments, '}')}}, nil
		}
		if !s.skip("<parameter=") {
			return nil, errTextTag
		}
		parameter, ok := s.blockName()
		if !ok || seen[parameter] {
			return nil, errTextParameter
		}
		seen[parameter] = true
		raw, ok := s.until("</parameter>")
		if !ok {
			return nil, errTextTag
		}
		value, ok := parameterValue(trimSpace(raw))
		if !ok {
			return nil, errTextParameter
		}
		if len(arguments) > 1 {
			arguments = append(arguments, ',')
		}
		arguments = append(append(AppendString(arguments, parameter), ':'), value...)
	}
}

// blockName reads a name up to the end of its tag.
func (s *textScanner) blockName() (string, bool) {
	end := s.at
	for end < len(s.b) && s.b[end] != '>' && s.b[end] != '<' && s.b[end] != '\n' {
		end++
	}
	if end >= len(s.b) || s.b[end] != '>' {
		return "", false
	}
	name := string(trimSpace(s.b[s.at:end]))
	s.at = end + 1
	return name, name != ""
}

// parameterValue returns the JSON value that a parameter's text stands for: itself where it is JSON, else a string.
func parameterValue(raw []byte) ([]byte, bool) {
	for _, tag := range []string{"<parameter=", "<function=", "</function>"} {
		if bytes.Contains(raw, []byte(tag)) {
			return nil, false // an end tag is missing
		}
	}
	switch {
	case len(raw) == 0:
		return []byte(`""`), true
	case completeJSON(raw):
		return raw, true
	case raw[0] == '{', raw[0] == '[':
		return nil, false
	case raw[0] == '"':
		// A quotation within a text is none of JSON's business; a string that is broken or never ends is.
		if end := skipString(raw, 0); end < 0 || end == len(raw) {
			return nil, false
		}
	}
	return AppendString(nil, string(raw)), true
}

// TextCallPrefix watches a text as it arrives, to say whether it may still be nothing but calls. The zero value is ready.
// Ordinary prose is told by its first character, ordinary JSON by its first member.
type TextCallPrefix struct {
	stage  prefixStage
	fence  byte   // the character of the fence, 0 if there is none
	length int    // of the fence, or of the word behind it
	word   []byte // the tag or key so far
	form   string // the member that makes the running object a call: its first that is no arguments
	begun  bool   // the running object has a member
	listed bool   // the object holds a list of calls, and nothing may follow it
	depth  int    // of the brackets within the running value
	quoted bool   // within a string
	escape bool   // behind a backslash
}

type prefixStage uint8

const (
	prefixOpening prefixStage = iota // before the fence or the envelope
	prefixFence
	prefixInfo
	prefixTag
	prefixInTags // tags are left to the end
	prefixMember // before a key
	prefixKey
	prefixColon
	prefixValue // before a value
	prefixWithin
	prefixScalar
	prefixBehind  // behind a value
	prefixBetween // behind an object
	prefixClosing // in the closing fence
	prefixFailed
)

// Feed takes the next piece of the text and reports whether all of it so far may still be nothing but calls.
func (p *TextCallPrefix) Feed(piece []byte) bool {
	for _, c := range piece {
		if p.stage == prefixInTags {
			return true
		}
		if !p.step(c) {
			p.stage = prefixFailed
			return false
		}
	}
	return p.stage != prefixFailed
}

var textTags = []string{"<tool ", "<tool\n", "<tool\t", "<tool\r", "<tool_execution", "<function_calls", "<function="}

func (p *TextCallPrefix) step(c byte) bool {
	switch p.stage {
	case prefixOpening:
		switch {
		case isSpace(c):
		case c == '{':
			p.object()
		case c == '<':
			p.stage, p.word = prefixTag, append(p.word[:0], c)
		case isFence(c) && p.fence == 0:
			p.stage, p.fence, p.length = prefixFence, c, 1
		default:
			return false
		}
	case prefixFence:
		if c == p.fence {
			p.length++
			return true
		}
		if p.length < 3 {
			return false
		}
		p.stage, p.length = prefixInfo, 0
		return p.step(c)
	case prefixInfo:
		if c == '\n' {
			p.stage = prefixOpening
			return true
		}
		p.length++
		return isInfo(c) && p.length <= longestInfo
	case prefixTag:
		p.word = append(p.word, c)
		for _, tag := range textTags {
			if string(p.word) == tag {
				p.stage = prefixInTags
				return true
			}
			if len(p.word) < len(tag) && string(p.word) == tag[:len(p.word)] {
				return true
			}
		}
		return false
	case prefixMember:
		switch {
		case isSpace(c):
		case c == '"':
			p.stage, p.word, p.escape = prefixKey, p.word[:0], false
		default:
			return false
		}
	case prefixKey:
		if c == '"' && !p.escape {
			p.stage = prefixColon
			return p.admits(unescaped(p.word))
		}
		p.escape = c == '\\' && !p.escape
		p.word = append(p.word, c)
	case prefixColon:
		if c == ':' {
			p.stage = prefixValue
			return true
		}
		return isSpace(c)
	case prefixValue:
		switch {
		case isSpace(c):
			return true
		case !p.admitsValue(c):
			return false
		}
		p.stage, p.depth, p.quoted, p.escape = prefixWithin, 0, false, false
		switch c {
		case '"':
			p.quoted = true
		case '{', '[':
			p.depth = 1
		default:
			p.stage = prefixScalar
		}
	case prefixWithin:
		p.within(c)
	case prefixScalar:
		if c == ',' || c == '}' || isSpace(c) {
			p.stage = prefixBehind
			return p.step(c)
		}
	case prefixBehind:
		switch {
		case isSpace(c):
		case c == ',':
			p.stage = prefixMember
		case c == '}':
			p.stage = prefixBetween
		default:
			return false
		}
	case prefixBetween:
		switch {
		case isSpace(c):
		case c == '{' && !p.listed:
			p.object()
		case c == p.fence:
			p.stage = prefixClosing
		default:
			return false
		}
	case prefixClosing:
		return isSpace(c) || c == p.fence
	default:
		return false
	}
	return true
}

// object begins an object.
func (p *TextCallPrefix) object() { p.stage, p.form, p.begun = prefixMember, "", false }

// within follows a string, an array or an object to its end.
func (p *TextCallPrefix) within(c byte) {
	switch {
	case p.escape:
		p.escape = false
		return
	case p.quoted:
		p.escape = c == '\\'
		p.quoted = c != '"'
	case c == '"':
		p.quoted = true
	case c == '{', c == '[':
		p.depth++
	case c == '}', c == ']':
		p.depth--
	}
	if p.depth == 0 && !p.quoted && !p.escape {
		p.stage = prefixBehind
	}
}

// admits reports whether an object that is a call may go on with this key.
func (p *TextCallPrefix) admits(key []byte) bool {
	first := !p.begun
	p.begun = true
	switch name := string(key); name {
	case "tool", "name", "function":
		if p.form == "" {
			p.form = name
			return true
		}
		return p.form == "tool" && name != "tool"
	case "tool_calls":
		if first {
			p.form, p.listed = name, true
			return true
		}
	case "arguments":
		if p.form == "function" {
			return false
		}
		if first || p.form == "tool" || p.form == "name" {
			return true
		}
	case "parameters":
		if p.form == "name" {
			return false
		}
		if first || p.form == "tool" || p.form == "function" {
			return true
		}
	}
	return p.form == "tool"
}

// admitsValue reports whether the value of the key just read may begin with c.
func (p *TextCallPrefix) admitsValue(c byte) bool {
	switch key := string(unescaped(p.word)); {
	case c == ',' || c == ':' || c == '}' || c == ']':
		return false
	case key == p.form && key == "tool_calls":
		return c == '['
	case key == p.form:
		return c == '"'
	case key == "arguments", key == "parameters" && p.form != "tool":
		return c == '{' || c == '"'
	}
	return true
}
