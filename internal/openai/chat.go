package openai

import "bytes"

// Chat is the dialect of POST …/chat/completions.
var Chat Dialect = chat{}

type chat struct{}

func (chat) Name() string { return "chat" }

func (chat) View(body []byte, lookup func([]byte) *Tools) (*View, error) {
	v := &View{Body: body}
	var streamOptions, responseFormat, several Range
	var functions bool
	err := v.scan(lookup, true, func(key []byte, value Range) {
		switch string(key) {
		case "messages":
			v.items = value
		case "stream_options":
			streamOptions = value
		case "response_format":
			responseFormat = value
		case "n":
			several = value
		case "functions":
			functions = !isNull(body, value)
		}
	})
	if err != nil {
		return nil, err
	}
	if startsWith(body, streamOptions, '{') {
		v.UsageAsked = isTrue(body, find(body, streamOptions.Start, "include_usage"))
	}
	v.JSONFormat = isJSONFormat(body, responseFormat)
	switch {
	case v.Passthrough != "":
	case functions:
		v.Passthrough = ReasonFunctions
	case !isNull(body, several) && string(several.Of(body)) != "1":
		v.Passthrough = ReasonChoices
	case !startsWith(body, v.items, '['):
		v.Passthrough = ReasonShape
	default:
		v.scanTools()
	}
	if v.Passthrough != "" {
		return v, nil
	}
	if eachElement(body, v.items.Start, func(start int) int {
		item, end := chatItem(body, start)
		v.Items = append(v.Items, item)
		return end
	}) < 0 {
		v.Passthrough = ReasonShape
	}
	return v, nil
}

// scan reads the members that both dialects have, and hands the others to f.
func (v *View) scan(lookup func([]byte) *Tools, nested bool, f func(key []byte, value Range)) error {
	b := v.Body
	start := skipSpace(b, 0)
	var seen uint32
	end := eachMember(b, start, func(key []byte, _, start int) int {
		if start >= len(b) {
			return failed
		}
		end := failed
		if string(key) == "tools" && b[start] == '[' {
			v.Tools = nil
			if lookup != nil {
				v.Tools = lookup(b[start:])
			}
			if v.Tools == nil {
				v.Tools = scanTools(b[start:], nested)
			}
			if v.Tools != nil {
				end = start + len(v.Tools.Raw)
			}
		}
		if end < 0 {
			end = skipValue(b, start)
		}
		if end < 0 {
			return failed
		}
		value := Range{start, end}
		switch string(key) {
		case "tools":
			v.tools = value
		case "tool_choice":
			v.choice = value
		case "model":
			v.Model = text(b, value)
		case "stream":
			v.Stream = isTrue(b, value)
		default:
			f(key, value)
		}
		if bit := watchedKey(key); bit != 0 {
			if seen&bit != 0 {
				v.Passthrough = ReasonRepeatedKey
			}
			seen |= bit
		}
		return end
	})
	if end < 0 || skipSpace(b, end) != len(b) {
		if tooDeep(b) {
			return ErrTooDeep
		}
		return ErrSyntax
	}
	v.Choice = scanChoice(b, v.choice)
	return nil
}

var watchedKeys = []string{"model", "stream", "tools", "tool_choice", "messages", "input", "instructions", "n", "functions",
	"background", "prompt", "previous_response_id", "conversation", "stream_options", "store"}

// watchedKey returns a bit of its own for each member by which the projection decides, 0 for others. A body that repeats
// one of them is passed on as it is: the proxy and the upstream must not read different values.
func watchedKey(key []byte) uint32 {
	for i, k := range watchedKeys {
		if string(key) == k {
			return 1 << i
		}
	}
	return 0
}

// tooDeep reports whether the brackets of b nest deeper than MaxDepth.
func tooDeep(b []byte) bool {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			end := skipString(b, i)
			if end < 0 {
				return false
			}
			i = end - 1
		case '{', '[':
			if depth++; depth > MaxDepth {
				return true
			}
		case '}', ']':
			depth--
		}
	}
	return false
}

// scanTools decides by the tools whether the request can be projected.
func (v *View) scanTools() {
	switch {
	case isNull(v.Body, v.tools) || startsWith(v.Body, v.tools, '[') && emptyArray(v.Body, v.tools):
		v.Passthrough = ReasonNoTools
	case v.Tools == nil:
		v.Passthrough = ReasonShape
	case v.Tools.Native:
		v.Passthrough = ReasonNativeSearch
	}
}

func isJSONFormat(b []byte, format Range) bool {
	if !startsWith(b, format, '{') {
		return false
	}
	switch text(b, find(b, format.Start, "type")) {
	case "json_object", "json_schema":
		return true
	}
	return false
}

func chatItem(b []byte, start int) (Item, int) {
	var role, callID, calls, name Range
	item := Item{}
	end := eachMember(b, start, func(key []byte, _, start int) int {
		end := skipValue(b, start)
		value := Range{start, end}
		switch string(key) {
		case "role":
			role = value
		case "content":
			item.Content = value
		case "tool_call_id":
			callID = value
		case "name":
			name = value
		case "tool_calls":
			calls = value
		}
		return end
	})
	if end < 0 {
		end = skipValue(b, start)
	}
	item.Range = Range{start, end}
	if end < 0 {
		return item, failed
	}
	item.Kind = roleKind(text(b, role))
	switch item.Kind {
	case KindResult:
		item.ResultOf, item.nameAt = text(b, callID), name
	case KindAssistant:
		if startsWith(b, calls, '[') {
			for _, at := range elements(b, calls.Start) {
				item.Calls = append(item.Calls, chatCall(b, at))
			}
		}
	}
	return item, end
}

func roleKind(role string) Kind {
	switch role {
	case "system", "developer":
		return KindSystem
	case "user":
		return KindUser
	case "assistant":
		return KindAssistant
	case "tool":
		return KindResult
	}
	return KindOther
}

// chatCall reads one call of an assistant message; a custom tool's call has a name but no arguments of interest.
func chatCall(b []byte, at Range) Call {
	c := Call{}
	if !startsWith(b, at, '{') {
		return c
	}
	eachMember(b, at.Start, func(key []byte, _, start int) int {
		end := skipValue(b, start)
		switch string(key) {
		case "id":
			c.ID = text(b, Range{start, end})
		case "function", "custom":
			if b[start] == '{' {
				c.Name = text(b, find(b, start, "name"))
				c.ArgumentsAt = find(b, start, "arguments")
				c.nameAt = find(b, start, "name")
				c.function = string(key) == "function"
			}
		}
		return end
	})
	return c
}

// VirtualTool implements Dialect.
func (chat) VirtualTool(name, strict string) []byte {
	dst := []byte(`{"type":"function","function":{"name":`)
	dst = AppendString(dst, name)
	dst = append(dst, `,"description":`...)
	dst = AppendString(dst, virtualDescription)
	dst = append(dst, `,"parameters":`...)
	dst = append(dst, virtualParameters(strict)...)
	if strict != "omit" {
		dst = append(append(dst, `,"strict":`...), strict...)
	}
	return append(dst, `}}`...)
}

const virtualDescription = "Loads deferred tools, so that they can be called from the next turn on. Use " +
	"\"select:NAME\" (or \"select:NAME,NAME\") when the name is known from the directory of deferred tools, else a few " +
	"words for what the tool should do; \"+word\" makes a word required."

// virtualParameters is a plain root object. Strict decoding wants every property required, optional ones nullable.
func virtualParameters(strict string) string {
	maxType, required := `"integer"`, `["query"]`
	if strict == "true" {
		maxType, required = `["integer","null"]`, `["query","max_results"]`
	}
	return `{"type":"object","properties":{"query":{"type":"string","description":"select:NAME or search words"},` +
		`"max_results":{"type":` + maxType + `,"description":"most tools to load, at most the configured limit"}},` +
		`"required":` + required + `,"additionalProperties":false}`
}

// Compose implements Dialect.
func (d chat) Compose(v *View, p Projection) []byte {
	edits := v.toolEdits(p)
	if p.Directory != nil {
		edits = d.directoryEdits(edits, v, p.Directory)
	}
	edits = append(edits, d.spliceEdits(v, p.Splices)...)
	if p.Encode != nil {
		edits = append(edits, v.renameEdits(p.Encode)...)
	}
	var appended []byte
	for i, round := range p.Rounds {
		if len(appended) > 0 {
			appended = append(appended, ',')
		}
		appended = appendChatRound(appended, round, p.Results[i])
	}
	if len(appended) > 0 {
		if len(v.Items) == 0 && p.Directory != nil {
			appended = append([]byte{','}, appended...) // behind the directory's message
		}
		edits = append(edits, appendElements(v.Body, v.items, appended))
	}
	return v.write(edits, p)
}

// Restore implements Dialect. A history of Chat Completions is whole without its hidden rounds.
func (chat) Restore(*View, Projection) []byte { return nil }

// write applies the edits to the client's body.
func (v *View) write(edits []Edit, p Projection) []byte {
	body := applyEdits(nil, v.Body, edits)
	if p.Tools != nil && len(p.Tools) == 0 {
		return withoutTools(body)
	}
	return body
}

// toolEdits replaces the tools array and the choice.
func (v *View) toolEdits(p Projection) []Edit {
	edits := make([]Edit, 0, 4)
	switch {
	case len(p.Tools) > 0:
		edits = append(edits, Edit{v.tools, p.Tools})
	case v.slim:
		edits = append(edits, Edit{v.tools, v.Tools.Raw})
	}
	if p.Mode != "" && !v.choice.Absent() {
		edits = append(edits, Edit{v.choice, AppendString(nil, p.Mode)})
	}
	return edits
}

// withoutTools takes the members out of a body that are refused where no tool is left.
func withoutTools(body []byte) []byte {
	members, ok := appendMembers(nil, body, skipSpace(body, 0))
	if !ok {
		return body
	}
	out := append(make([]byte, 0, len(body)), '{')
	for _, m := range members {
		switch string(m.Key) {
		case "tools", "tool_choice", "parallel_tool_calls":
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, m.Whole.Of(body)...)
	}
	return append(out, '}')
}

// directoryEdits joins the directory to the leading system message, or adds one.
func (chat) directoryEdits(edits []Edit, v *View, directory []byte) []Edit {
	if len(v.Items) > 0 && v.Items[0].Kind == KindSystem {
		if with, ok := textEdits(edits, v.Body, v.Items[0], directory, "text"); ok {
			return with
		}
	}
	message := append([]byte(`{"role":"system","content":`), directory...)
	message = append(message, '}')
	if len(v.Items) > 0 {
		message = append(message, ',')
	}
	return append(edits, insert(v.items.Start+1, message))
}

// textEdits joins text, a raw JSON string, to the content of a message: inside a string, or as a new part behind the others,
// which leaves the client's cache breakpoints where they are.
func textEdits(edits []Edit, b []byte, message Item, addition []byte, partType string) (_ []Edit, ok bool) {
	content := message.Content
	switch {
	case isString(b, content):
		return joinString(edits, content, addition), true
	case startsWith(b, content, '['):
		part := append([]byte(`{"type":"`+partType+`","text":`), addition...)
		return append(edits, appendElements(b, content, append(part, '}'))), true
	case content.Absent():
		with := append([]byte(`"content":`), addition...)
		if skipSpace(b, message.Start+1) != message.End-1 {
			with = append(with, ',')
		}
		return append(edits, insert(message.Start+1, with)), true
	case isNull(b, content):
		return append(edits, Edit{content, addition}), true
	}
	return edits, false
}

// joinString joins a raw JSON string to the one at the range, behind an empty line if there is something before it.
func joinString(edits []Edit, at Range, addition []byte) []Edit {
	end := at.End - 1
	if at.End-at.Start > 2 {
		edits = append(edits, insert(end, []byte(`\n\n`)))
	}
	return append(edits, insert(end, addition[1:len(addition)-1]))
}

// renameEdits encodes the names of tools in the client's history and in tool_choice.
func (v *View) renameEdits(encode func(string) string) []Edit {
	var edits []Edit
	rename := func(at Range, name string) {
		if encoded := encode(name); !at.Absent() && encoded != name {
			edits = append(edits, Edit{at, AppendString(nil, encoded)})
		}
	}
	for _, item := range v.Items {
		if !item.nameAt.Absent() {
			rename(item.nameAt, text(v.Body, item.nameAt))
		}
		for _, c := range item.Calls {
			if c.function {
				rename(c.nameAt, c.Name)
			}
		}
	}
	if v.Choice.Form == ChoiceFunction {
		at := v.choice
		if inner := find(v.Body, at.Start, "function"); startsWith(v.Body, inner, '{') {
			at = inner
		}
		nameAt, group := find(v.Body, at.Start, "name"), find(v.Body, at.Start, "namespace")
		if group.Absent() {
			rename(nameAt, v.Choice.Function)
		}
	}
	return edits
}

// appendChatRound appends a hidden round: the assistant turn and one tool message for each of its hidden calls.
func appendChatRound(dst []byte, r Round, results []Result) []byte {
	dst = append(dst, r.items...)
	for _, result := range unbundled(r.Calls, results) {
		dst = append(dst, ',')
		dst = appendToolMessage(dst, result)
	}
	return dst
}

func appendToolMessage(dst []byte, r Result) []byte {
	dst = append(dst, `{"role":"tool","tool_call_id":`...)
	dst = AppendString(dst, r.CallID)
	dst = append(dst, `,"content":`...)
	dst = AppendString(dst, r.Output)
	return append(dst, '}')
}

// Splices implements Dialect. The hidden rounds stand before the assistant turn that the client saw, which its calls
// identify; a turn without calls has nothing that is sure to, and ends the ask.
func (chat) Splices(v *View, rounds []Round, results [][]Result, last Round) []Splice {
	s := Splice{At: len(v.Items)}
	unseen := "" // the member of hidden rounds that the client did not get to see
	if v.JSONFormat && !v.Stream {
		unseen = "content"
	}
	for i, round := range rounds {
		if i > 0 {
			s.Before = append(s.Before, ',')
		}
		s.Before = appendChatRound(s.Before, round, results[i])
		s.Cut = joinTexts(s.Cut, round.texts, unseen)
	}
	given := results[len(rounds):]
	var hidden []Result
	if len(given) > 0 {
		hidden = given[0]
	}
	hidden = unbundled(last.Calls, hidden)
	position := -1
	for i, c := range last.Calls {
		id := c.ID
		if c.bundle != nil {
			if id = c.bundle.id; i > 0 && last.Calls[i-1].bundle == c.bundle {
				continue // the same call of the turn
			}
		}
		position++
		if !c.Class.Hidden() {
			s.Anchors = append(s.Anchors, CallAnchor(c))
			continue
		}
		for _, result := range hidden {
			if result.CallID == id {
				s.Within = append(s.Within, HiddenCall{position, c.raw, appendToolMessage(nil, result)})
				break
			}
		}
	}
	if len(s.Anchors) == 0 || len(s.Before) == 0 && len(s.Within) == 0 {
		return nil
	}
	return []Splice{s}
}

// joinTexts appends the texts of a round to those of the rounds before it, but for the text of one member.
func joinTexts(texts, more []MemberText, but string) []MemberText {
	for _, m := range more {
		found := m.Member == but
		for i := range texts {
			if texts[i].Member == m.Member {
				texts[i].Text += m.Text
				found = true
			}
		}
		if !found {
			texts = append(texts, m)
		}
	}
	return texts
}

// spliceEdits puts hidden rounds back before the assistant messages that hold their anchors.
func (chat) spliceEdits(v *View, splices []Splice) []Edit {
	if len(splices) == 0 {
		return nil
	}
	places := chatPlaces(v, splices)
	var edits []Edit
	for i, item := range v.Items {
		n, ok := places[i]
		if !ok {
			continue
		}
		s := splices[n]
		if len(s.Before) > 0 {
			cuts, begins := cutTexts(v.Body, item, s.Cut)
			before := bytes.Clone(s.Before)
			if !begins {
				before = withoutContent(before)
			}
			edits = append(edits, insert(item.Start, append(before, ',')))
			edits = append(edits, cuts...)
		}
		edits = append(edits, withinEdits(v, i, s.Within)...)
	}
	return edits
}

// chatPlaces returns which splice belongs to which message. Each has one place at most: where the answer stood when it was
// given, if a call of its stands there, else the newest message with a call of its.
func chatPlaces(v *View, splices []Splice) map[int]int {
	byAnchor := make(map[string][]int)
	callIDs := make(map[string]bool) // most calls of a history need no digest
	for n, s := range splices {
		for _, a := range s.Anchors {
			byAnchor[a] = append(byAnchor[a], n)
			callIDs[anchoredCall(a)] = true
		}
	}
	candidates := func(i int) (list []int) {
		for _, c := range v.Items[i].Calls {
			if callIDs[c.ID] {
				list = append(list, byAnchor[v.Anchor(c)]...)
			}
		}
		return list
	}
	places, placed := make(map[int]int), make(map[int]bool)
	for _, fits := range []func(i int, s Splice) bool{
		func(i int, s Splice) bool { return s.At == i },
		func(int, Splice) bool { return true },
	} {
		for i := len(v.Items) - 1; i >= 0; i-- {
			if _, taken := places[i]; taken {
				continue
			}
			list := candidates(i)
			for k := len(list) - 1; k >= 0; k-- {
				if n := list[k]; !placed[n] && fits(i, splices[n]) {
					places[i], placed[n] = n, true
					break
				}
			}
		}
	}
	return places
}

// cutTexts takes the texts that now stand in the hidden rounds off the front of the client's own message. Clients trim, so
// outer white space is not compared. It reports false if the message has a content that does not begin with theirs: then
// they must not say theirs a second time.
func cutTexts(b []byte, item Item, cuts []MemberText) (edits []Edit, begins bool) {
	begins = true
	for _, cut := range cuts {
		value := find(b, item.Start, cut.Member)
		if cut.Text == "" || !isString(b, value) && !(startsWith(b, value, '[') && cut.Member == "content") {
			continue
		}
		whole := contentText(b, value)
		rest, ok := cutPrefix(whole, cut.Text)
		if !ok {
			begins = begins && (cut.Member != "content" || trimLeft(whole) == "")
			continue
		}
		var with []byte
		if startsWith(b, value, '[') {
			with = partsBehind(b, value, len(whole)-len(rest))
		} else if rest != "" {
			with = AppendString(nil, rest)
		}
		switch {
		case with != nil:
		case cut.Member == "content" && len(item.Calls) > 0:
			with = []byte("null")
		default:
			with = []byte(`""`)
		}
		edits = append(edits, Edit{value, with})
	}
	return edits, begins
}

// partsBehind returns the parts of a content without the first n bytes of their text, nil if no part is left.
func partsBehind(b []byte, content Range, n int) []byte {
	out := []byte{'['}
	for _, part := range elements(b, content.Start) {
		raw := part.Of(b)
		if at := find(b, part.Start, "text"); n > 0 && isString(b, at) {
			t := text(b, at)
			if len(t) <= n {
				n -= len(t)
				continue
			}
			raw = applyEdits(nil, raw, []Edit{{at.shift(-part.Start), AppendString(nil, t[n:])}})
			n = 0
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, raw...)
	}
	if len(out) == 1 {
		return nil
	}
	return append(out, ']')
}

// withoutContent takes the texts out of the assistant messages among raw, comma-separated ones. They all hold calls, so
// that they may be without.
func withoutContent(messages []byte) []byte {
	b := append(append([]byte{'['}, messages...), ']')
	var edits []Edit
	for _, at := range elements(b, 0) {
		if content := find(b, at.Start, "content"); roleKind(text(b, find(b, at.Start, "role"))) == KindAssistant &&
			!content.Absent() {
			edits = append(edits, Edit{content, []byte("null")})
		}
	}
	b = applyEdits(nil, b, edits)
	return b[1 : len(b)-1]
}

func cutPrefix(whole, prefix string) (string, bool) {
	trimmed := trimLeft(whole)
	prefix = trimLeft(prefix)
	if rest, ok := bytes.CutPrefix([]byte(trimmed), []byte(prefix)); ok {
		return string(rest), true
	}
	short := trimRight(prefix)
	if short != "" && len(trimmed) >= len(short) && trimmed[:len(short)] == short && trimLeft(trimmed[len(short):]) == "" {
		return "", true
	}
	return "", false
}

func trimLeft(s string) string  { return string(bytes.TrimLeft([]byte(s), " \t\r\n")) }
func trimRight(s string) string { return string(bytes.TrimRight([]byte(s), " \t\r\n")) }

// withinEdits puts the hidden calls of a mixed turn back at their positions, and their results behind the results of the
// calls before them.
func withinEdits(v *View, at int, within []HiddenCall) []Edit {
	if len(within) == 0 {
		return nil
	}
	b := v.Body
	calls := elements(b, find(b, v.Items[at].Start, "tool_calls").Start)
	if len(calls) == 0 {
		return nil
	}
	var edits []Edit
	for n, h := range within {
		visible := min(h.Position-n, len(calls))
		if visible < len(calls) {
			edits = append(edits, insert(calls[visible].Start, append(bytes.Clone(h.Call), ',')))
		} else {
			edits = append(edits, insert(calls[len(calls)-1].End, append([]byte{','}, h.Call...)))
		}
		// The result stands behind as many results as there are visible calls in front of its call.
		after := at
		for after+1 < len(v.Items) && v.Items[after+1].Kind == KindResult && after-at < visible {
			after++
		}
		edits = append(edits, insert(v.Items[after].End, append([]byte{','}, h.Result...)))
	}
	return edits
}
