package openai

import (
	"bytes"
	"slices"
	"strings"
)

// Responses is the dialect of POST …/responses.
var Responses Dialect = responses{}

type responses struct{}

func (responses) Name() string { return "responses" }

// View implements Dialect. An input that is a string is one user message.
func (responses) View(body []byte, lookup func([]byte) *Tools) (*View, error) {
	v := &View{Body: body}
	var background, prompt, textOptions, agents, conversation Range
	err := v.scan(lookup, false, func(key []byte, value Range) {
		switch string(key) {
		case "input":
			v.items = value
		case "instructions":
			v.instructions = value
		case "previous_response_id":
			v.previous = value
		case "conversation":
			conversation = value
		case "background":
			background = value
		case "prompt":
			prompt = value
		case "text":
			textOptions = value
		case "multi_agent":
			agents = value
		case "store":
			v.unstored = string(value.Of(body)) == "false"
		}
	})
	if err != nil {
		return nil, err
	}
	v.PreviousResponse = text(body, v.previous)
	v.Conversation = text(body, conversation)
	if startsWith(body, conversation, '{') {
		v.Conversation = text(body, find(body, conversation.Start, "id"))
	}
	if startsWith(body, textOptions, '{') {
		v.JSONFormat = isJSONFormat(body, find(body, textOptions.Start, "format"))
	}
	switch {
	case v.Passthrough != "":
	case isTrue(body, background):
		v.Passthrough = ReasonBackground
	case !isNull(body, agents):
		v.Passthrough = ReasonMultiAgent
	case !isNull(body, v.instructions) && !isString(body, v.instructions):
		v.Passthrough = ReasonShape
	default:
		v.scanTools()
		switch {
		case v.Passthrough != ReasonNoTools:
		case !isNull(body, prompt):
			v.Passthrough = ReasonPromptTemplate
		case v.hasItem("additional_tools"):
			v.Passthrough = ReasonAdditionalTools
		}
	}
	if !v.scanInput() && v.Passthrough == "" {
		v.Passthrough = ReasonShape
	}
	return v, nil
}

// hasItem reports whether the input holds an item of this type.
func (v *View) hasItem(kind string) bool {
	if !startsWith(v.Body, v.items, '[') {
		return false
	}
	for _, at := range elements(v.Body, v.items.Start) {
		if text(v.Body, find(v.Body, at.Start, "type")) == kind {
			return true
		}
	}
	return false
}

// scanInput reads the input items; false if the input has a form that the proxy does not know. A request may do without
// input where a prompt template, a conversation or an earlier response gives it.
func (v *View) scanInput() bool {
	b := v.Body
	switch {
	case isNull(b, v.items):
		return true
	case isString(b, v.items):
		v.Items = []Item{{Range: v.items, Kind: KindUser, Content: v.items}}
		return true
	case !startsWith(b, v.items, '['):
		return false
	}
	end := eachElement(b, v.items.Start, func(start int) int {
		item, kind, end := inputItem(b, start)
		v.Items = append(v.Items, item)
		v.Compacts = kind == "compaction_trigger"
		return end
	})
	return end >= 0
}

// inputItem reads one input item and returns it with its type.
func inputItem(b []byte, start int) (item Item, kind string, end int) {
	var kindAt, role, id, callID, approval, name, space, arguments, input Range
	end = eachMember(b, start, func(key []byte, _, start int) int {
		end := skipValue(b, start)
		value := Range{start, end}
		switch string(key) {
		case "type":
			kindAt = value
		case "role":
			role = value
		case "content":
			item.Content = value
		case "id":
			id = value
		case "call_id":
			callID = value
		case "approval_request_id":
			approval = value
		case "name":
			name = value
		case "namespace":
			space = value
		case "arguments":
			arguments = value
		case "input":
			input = value
		}
		return end
	})
	if end < 0 {
		end = skipValue(b, start)
		return Item{Range: Range{start, end}}, "", end
	}
	item.Range = Range{start, end}
	kind, item.ID = text(b, kindAt), text(b, id)
	switch {
	case kind == "message" || kind == "" && !role.Absent():
		item.Kind = roleKind(text(b, role))
	case kind == "function_call":
		call := Call{ID: text(b, callID), Name: text(b, name), ArgumentsAt: arguments, nameAt: name, function: true}
		if group := text(b, space); group != "" {
			// The names of members are never encoded.
			call.Name, call.nameAt, call.function = group+"."+call.Name, Range{}, false
		}
		item.Kind, item.Calls = KindCall, []Call{call}
	case isClientCall(kind):
		call := Call{ID: text(b, callID), Name: kind, ArgumentsAt: input}
		switch kind {
		case "custom_tool_call":
			call.Name = qualified(text(b, space), text(b, name))
		case "mcp_approval_request":
			call.ID = item.ID
		}
		item.Kind, item.Calls = KindCall, []Call{call}
	case kind == "mcp_approval_response":
		item.Kind, item.ResultOf = KindResult, text(b, approval)
	case serverItems[kind] || kind == "" && item.ID != "":
		item.Kind = KindAssistant
	case strings.HasSuffix(kind, "_output"):
		item.Kind, item.ResultOf = KindResult, text(b, callID)
	}
	return item, kind, end
}

func qualified(group, name string) string {
	if group == "" {
		return name
	}
	return group + "." + name
}

// serverItems are output items that wait for no answer of the client, messages aside.
var serverItems = map[string]bool{
	"reasoning": true, "compaction": true, "item_reference": true, "program": true, "program_output": true,
	"web_search_call": true, "file_search_call": true, "code_interpreter_call": true, "image_generation_call": true,
	"mcp_call": true, "mcp_list_tools": true, "tool_search_call": true, "tool_search_output": true,
}

// isClientCall reports whether items of this type, function calls aside, are calls that the client answers.
func isClientCall(kind string) bool {
	return kind == "mcp_approval_request" ||
		strings.HasSuffix(kind, "_call") && kind != "function_call" && !serverItems[kind]
}

// VirtualTool implements Dialect.
func (responses) VirtualTool(name, strict string) []byte {
	dst := []byte(`{"type":"function","name":`)
	dst = AppendString(dst, name)
	dst = append(dst, `,"description":`...)
	dst = AppendString(dst, virtualDescription)
	dst = append(dst, `,"parameters":`...)
	dst = append(dst, virtualParameters(strict)...)
	if strict != "omit" {
		dst = append(append(dst, `,"strict":`...), strict...)
	}
	return append(dst, '}')
}

// Compose implements Dialect. A conversation at the upstream holds every finished round already, so the next round brings
// nothing but the results of the last one, unless the upstream has said that it lacks the calls.
func (d responses) Compose(v *View, p Projection) []byte {
	v = v.without(p.Omit, p.Unname)
	edits := v.toolEdits(p)
	if p.Directory != nil {
		edits = d.directoryEdits(edits, v, p.Directory)
	}
	if p.Encode != nil {
		edits = append(edits, v.renameEdits(p.Encode)...)
	}
	if id := d.currentResponse(v, p.Splices); id != nil {
		edits = append(edits, Edit{v.previous, id})
	}
	open := appendOutputs(nil, Round{}, p.Open)
	if n := len(p.Rounds); n > 0 && v.Conversation != "" && !p.Replay {
		input := joined(open, appendOutputs(nil, p.Rounds[n-1], p.Results[n-1]))
		edits = append(edits, v.inputEdit(append(append([]byte{'['}, input...), ']')))
		return v.write(withoutEditsIn(edits, v.items), p)
	}
	edits = append(edits, d.spliceEdits(v, p.Splices)...)
	var rounds []byte
	for i, round := range p.Rounds {
		rounds = joined(rounds, round.items)
		rounds = joined(rounds, appendOutputs(nil, round, p.Results[i]))
	}
	return v.write(append(edits, v.extendInput(open, rounds)...), p)
}

// Restore implements Dialect. Reasoning that the client saw is refused without the hidden call that it led to, and so is state at
// the upstream in which a hidden call is open.
func (d responses) Restore(v *View, p Projection) []byte {
	if v.Passthrough == ReasonRepeatedKey || v.Passthrough == ReasonShape {
		return nil
	}
	if body := d.Compose(v, p); !bytes.Equal(body, v.Original()) {
		return body
	}
	return nil
}

// joined appends raw, comma-separated items to others.
func joined(dst, items []byte) []byte {
	if len(dst) > 0 && len(items) > 0 {
		dst = append(dst, ',')
	}
	return append(dst, items...)
}

// withoutEditsIn leaves out the edits within a value that is itself replaced.
func withoutEditsIn(edits []Edit, value Range) []Edit {
	if value.Absent() {
		return edits
	}
	kept := edits[:0]
	for _, e := range edits {
		if e.At == value || e.At.End <= value.Start || e.At.Start >= value.End {
			kept = append(kept, e)
		}
	}
	return kept
}

// inputEdit gives the request another input.
func (v *View) inputEdit(input []byte) Edit {
	if v.items.Absent() {
		return v.addMember("input", input)
	}
	return Edit{v.items, input}
}

// extendInput puts raw, comma-separated items in front of the input and behind it, whatever form the client gave it.
func (v *View) extendInput(front, back []byte) []Edit {
	switch {
	case len(front) == 0 && len(back) == 0:
		return nil
	case isString(v.Body, v.items):
		return []Edit{
			insert(v.items.Start, append([]byte{'['}, joined(front, []byte(`{"role":"user","content":`))...)),
			insert(v.items.End, append(joined([]byte{'}'}, back), ']')),
		}
	case !startsWith(v.Body, v.items, '['):
		return []Edit{v.inputEdit(append(append([]byte{'['}, joined(front, back)...), ']'))}
	case emptyArray(v.Body, v.items):
		return []Edit{insert(v.items.Start+1, joined(front, back))}
	}
	var edits []Edit
	if len(front) > 0 {
		edits = append(edits, insert(v.items.Start+1, append(front, ',')))
	}
	if len(back) > 0 {
		edits = append(edits, insert(v.items.End-1, append([]byte{','}, back...)))
	}
	return edits
}

// addMember adds a member at the front of the body, which has others.
func (v *View) addMember(name string, value []byte) Edit {
	with := append(AppendString(nil, name), ':')
	with = append(append(with, value...), ',')
	return insert(skipSpace(v.Body, 0)+1, with)
}

// directoryEdits joins the directory to the instructions, or to the leading system message where there are none. Where
// the request names state at the upstream, its first item is not the first of the context, and would stay there for
// good, while instructions are sent anew each time.
func (responses) directoryEdits(edits []Edit, v *View, directory []byte) []Edit {
	switch {
	case isString(v.Body, v.instructions):
		return joinString(edits, v.instructions, directory)
	case len(v.Items) > 0 && v.Items[0].Kind == KindSystem && v.PreviousResponse == "" && v.Conversation == "":
		if with, ok := textEdits(edits, v.Body, v.Items[0], directory, "input_text"); ok {
			return with
		}
	}
	if v.instructions.Absent() {
		return append(edits, v.addMember("instructions", directory))
	}
	return append(edits, Edit{v.instructions, directory})
}

// appendOutputs appends the results of a round's hidden calls as items.
func appendOutputs(dst []byte, r Round, results []Result) []byte {
	for i, result := range unbundled(r.Calls, results) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendOutput(dst, r, result)
	}
	return dst
}

// appendOutput appends the item that answers a call. A call that a program made says so, and so must its result.
func appendOutput(dst []byte, r Round, result Result) []byte {
	dst = append(dst, `{"type":"function_call_output","call_id":`...)
	dst = AppendString(dst, result.CallID)
	for _, c := range r.Calls {
		if c.ID != result.CallID || !startsWith(c.raw, Range{0, len(c.raw)}, '{') {
			continue
		}
		if caller := find(c.raw, 0, "caller"); !isNull(c.raw, caller) {
			dst = append(append(dst, `,"caller":`...), caller.Of(c.raw)...)
		}
	}
	dst = append(dst, `,"output":`...)
	dst = AppendString(dst, result.Output)
	return append(dst, '}')
}

// OpenCall returns the id of the call that a refusal says has no result, "" if it says something else.
func OpenCall(refusal []byte) string {
	_, rest, ok := strings.Cut(FailureOf(0, refusal).Message, "tool output found for function call ")
	if !ok {
		return ""
	}
	id, _, _ := strings.Cut(rest, " ")
	return strings.Trim(id, `.,:;"'`)
}

// UnpairedItem returns the id of the item of which a refusal says that it lacks the other half of its pair, reasoning and the
// item behind it, and whether it is the reasoning; "" if the refusal says something else.
func UnpairedItem(refusal []byte) (id string, reasoning bool) {
	_, rest, ok := strings.Cut(FailureOf(0, refusal).Message, "Item '")
	id, rest, _ = strings.Cut(rest, "'")
	if !ok || !strings.Contains(rest, "without its required") {
		return "", false
	}
	return id, strings.HasPrefix(rest, " of type 'reasoning'")
}

// without returns the view of a body that lacks some items, and the ids of others.
func (v *View) without(omit, unname []string) *View {
	edits := append(v.omitEdits(omit), v.unnameEdits(unname)...)
	if len(edits) == 0 {
		return v
	}
	w := *v
	w.Body = applyEdits(nil, v.Body, edits)
	shift := len(w.Body) - len(v.Body)
	for _, at := range []*Range{&w.tools, &w.choice, &w.instructions, &w.previous} {
		if at.Start >= v.items.End {
			*at = at.shift(shift)
		}
	}
	w.items.End += shift
	w.Items = nil
	w.scanInput()
	return &w
}

// unnameEdits takes the ids out of the items that bear them.
func (v *View) unnameEdits(ids []string) []Edit {
	var edits []Edit
	for _, item := range v.Items {
		if item.ID == "" || !slices.Contains(ids, item.ID) {
			continue
		}
		members, _ := appendMembers(nil, v.Body, item.Start)
		i := slices.IndexFunc(members, func(m member) bool { return string(m.Key) == "id" })
		if i < 0 {
			continue
		}
		at := members[i].Whole
		switch {
		case i > 0:
			at.Start = members[i-1].Whole.End
		case i+1 < len(members):
			at.End = members[i+1].Whole.Start
		}
		edits = append(edits, Edit{At: at})
	}
	return edits
}

// omitEdits leaves out the items of these ids, each run of them with one comma beside it.
func (v *View) omitEdits(ids []string) []Edit {
	omitted := func(i int) bool { return v.Items[i].ID != "" && slices.Contains(ids, v.Items[i].ID) }
	var edits []Edit
	for i := 0; len(ids) > 0 && i < len(v.Items); i++ {
		if !omitted(i) {
			continue
		}
		first := i
		for i+1 < len(v.Items) && omitted(i+1) {
			i++
		}
		at := Range{v.Items[first].Start, v.Items[i].End}
		switch {
		case i+1 < len(v.Items):
			at.End = v.Items[i+1].Start
		case first > 0:
			at.Start = v.Items[first-1].End
		}
		edits = append(edits, Edit{At: at})
	}
	return edits
}

// LacksCall reports whether a refusal says that the upstream does not hold the calls which the results of the round
// answer, as servers do that keep no conversation.
func LacksCall(refusal []byte, r Round) bool {
	lower := bytes.ToLower(refusal)
	if bytes.Contains(lower, []byte("no tool call found")) {
		return true
	}
	for _, c := range r.Calls {
		if c.Class.Hidden() && c.ID != "" && bytes.Contains(refusal, []byte(c.ID)) {
			return true
		}
	}
	return false
}
