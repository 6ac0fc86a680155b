package upstreamtest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// item is one Responses item in the model's context.
type item struct {
	kind   string // of the item, with messages and references told by their members
	id     string
	callID string
	json   gjson.Result
}

func newItem(json gjson.Result) item {
	kind := json.Get("type").String()
	if !present(json.Get("type")) {
		switch {
		case json.Get("role").Exists():
			kind = "message"
		case json.Get("id").Exists():
			kind = "item_reference"
		}
	}
	return item{kind: kind, id: json.Get("id").String(), callID: json.Get("call_id").String(), json: json}
}

// resultKinds leads from the kinds of calls that a client answers to the kinds of their results.
var resultKinds = map[string]string{
	"function_call":    "function_call_output",
	"custom_tool_call": "custom_tool_call_output",
	"local_shell_call": "local_shell_call_output",
	"shell_call":       "shell_call_output",
	"apply_patch_call": "apply_patch_call_output",
	"computer_call":    "computer_call_output",
	"tool_search_call": "tool_search_output",
}

// responses checks a Responses request and fills the exchange's context.
func (j *judge) responses(exchange *exchange, state *state) {
	body := exchange.json
	j.common(body)
	if instructions := body.Get("instructions"); present(instructions) && instructions.Type != gjson.String {
		j.refuse("instructions", "instructions", "Invalid type for 'instructions': expected a string.")
	}
	if options := body.Get("stream_options"); options.Get("include_usage").Exists() {
		j.refuse("stream-options", "stream_options.include_usage", "Unknown parameter: 'stream_options.include_usage'.")
	}
	prior := j.prior(exchange, state)
	fresh := j.input(body, state)
	exchange.fresh = fresh
	exchange.context = append(slices.Clone(prior), fresh...)

	j.identities(prior, fresh)
	j.pairs(exchange.context)
	j.reasoning(exchange, state)

	declared := j.responsesTools(body)
	for _, loaded := range exchange.context {
		if loaded.kind == "additional_tools" || loaded.kind == "tool_search_output" {
			for _, tool := range loaded.json.Get("tools").Array() {
				declared.declare(tool)
			}
		}
	}
	j.responsesChoice(body, declared)
}

// prior resolves the chain or the conversation that the request continues.
func (j *judge) prior(exchange *exchange, state *state) []item {
	body := exchange.json
	previous, conversation := body.Get("previous_response_id"), body.Get("conversation")
	if present(previous) && present(conversation) {
		j.refuse("previous-and-conversation", "previous_response_id",
			"Mutually exclusive parameters: 'previous_response_id' and 'conversation'.")
		return nil
	}
	if present(previous) {
		chain, known := state.stored[previous.String()]
		if !known {
			j.refuseWith(http.StatusBadRequest, "previous-response", "previous_response_not_found", "previous_response_id",
				"Previous response with id '%s' not found.", previous.String())
		}
		return chain
	}
	if id := conversationID(body); id != "" {
		if state.locked[id] {
			j.refuseWith(http.StatusBadRequest, "conversation-locked", "conversation_locked", "",
				"Another process is currently operating on this conversation. Please retry in a few seconds.")
			return state.conversations[id]
		}
		state.locked[id] = true
		exchange.locks = id
		return state.conversations[id]
	}
	return nil
}

func conversationID(body gjson.Result) string {
	conversation := body.Get("conversation")
	if conversation.IsObject() {
		return conversation.Get("id").String()
	}
	return conversation.String()
}

// input reads the request's own items and resolves references.
func (j *judge) input(body gjson.Result, state *state) []item {
	input := body.Get("input")
	switch {
	case !present(input):
		if !present(body.Get("prompt")) && !present(body.Get("conversation")) && !present(body.Get("previous_response_id")) {
			j.refuse("input", "input", "Missing required parameter: 'input'.")
		}
		return nil
	case input.Type == gjson.String:
		return []item{newItem(gjson.Parse(object("role", quote("user"), "content", quote(input.String()))))}
	case !input.IsArray():
		j.refuse("input", "input", "Invalid type for 'input': expected a string or an array of items.")
		return nil
	}
	var items []item
	raw := input.Array()
	for i, value := range raw {
		param := fmt.Sprintf("input[%d]", i)
		next := newItem(value)
		if next.kind == "item_reference" {
			resolved, known := state.items[next.id]
			if !known {
				j.refuseWith(http.StatusNotFound, "item-reference", "", "input", "Item with id '%s' not found.%s",
					next.id, state.unstoredHint(next.id))
				continue
			}
			items = append(items, resolved)
			continue
		}
		j.item(param, next, i == len(raw)-1)
		items = append(items, next)
	}
	return items
}

// item checks the members of one input item.
func (j *judge) item(param string, next item, last bool) {
	switch next.kind {
	case "":
		j.refuse("item-type", param, "Invalid value for '%s': an item needs a 'type'.", param)
	case "message":
		switch role := next.json.Get("role").String(); role {
		case "user", "assistant", "system", "developer":
		default:
			j.refuse("role", param+".role", "Invalid value: %q. Supported values are: 'assistant', 'system', 'developer', "+
				"and 'user'.", role)
		}
		if content := next.json.Get("content"); content.Type != gjson.String && !content.IsArray() {
			j.refuse("content", param+".content", "Invalid type for '%s.content': expected a string or an array.", param)
		}
	case "function_call":
		j.callID(param+".call_id", next.json.Get("call_id"))
		j.arguments(param+".arguments", next.json.Get("arguments"))
		j.called(param, next.json.Get("name"), nil)
	case "custom_tool_call":
		j.callID(param+".call_id", next.json.Get("call_id"))
		j.called(param, next.json.Get("name"), nil)
	case "function_call_output", "custom_tool_call_output":
		j.callID(param+".call_id", next.json.Get("call_id"))
		if output := next.json.Get("output"); output.Type != gjson.String && !output.IsArray() {
			j.refuse("content", param+".output", "Invalid type for '%s.output': expected a string or an array.", param)
		}
	case "reasoning":
		if !next.json.Get("summary").IsArray() {
			j.refuse("content", param+".summary", "Missing required parameter: '%s.summary'.", param)
		}
	case "compaction_trigger":
		if !last {
			j.refuse("compaction-trigger", param, "A compaction trigger must be the last item of the input.")
		}
	}
}

// identities checks that no item comes twice.
func (j *judge) identities(prior, fresh []item) {
	seen := map[string]bool{}
	for _, known := range prior {
		seen[known.id] = known.id != ""
	}
	for _, next := range fresh {
		if seen[next.id] {
			j.refuse("item-twice", "input", "Duplicate item found with id %s. Remove duplicate items from your input and "+
				"try again.", next.id)
		}
		seen[next.id] = next.id != ""
	}
}

// pairs checks that every call has one result behind it, and every result its call before it.
func (j *judge) pairs(context []item) {
	type key struct{ kind, id string }
	calls, results := map[key]int{}, map[key]int{}
	var order []key
	for _, next := range context {
		if resultKind, ok := resultKinds[next.kind]; ok && next.callID != "" {
			call := key{resultKind, next.callID}
			calls[call]++
			order = append(order, call)
			continue
		}
		result := key{next.kind, next.callID}
		switch {
		case next.callID == "" || !isResultKind(next.kind):
			continue
		case calls[result] == 0:
			j.refuse("output-without-call", "input", "No tool call found for %s with call_id %s.",
				strings.ReplaceAll(next.kind, "_", " "), next.callID)
			continue
		case results[result] == calls[result]:
			j.refuse("output-twice", "input", "Duplicate tool output found for call %s.", next.callID)
			continue
		}
		results[result]++
	}
	for _, call := range order {
		if results[call] < calls[call] {
			j.refuse("call-without-output", "input", "No tool output found for %s %s.",
				strings.ReplaceAll(strings.TrimSuffix(call.kind, "_output"), "_", " "), call.id)
			results[call] = calls[call]
		}
	}
}

func isResultKind(kind string) bool {
	for _, result := range resultKinds {
		if kind == result {
			return true
		}
	}
	return false
}

// reasoning checks that reasoning items and their partners come together, by the ids that this server gave out.
func (j *judge) reasoning(exchange *exchange, state *state) {
	fresh := exchange.fresh
	had := map[string]bool{}
	for i, next := range fresh {
		known, emitted := state.emitted[next.id]
		if emitted && known.reasoning != "" && !had[known.reasoning] {
			j.refuse("item-without-reasoning", "input", "Item '%s' of type '%s' was provided without its required "+
				"'reasoning' item: '%s'.", next.id, next.kind, known.reasoning)
		}
		if next.kind != "reasoning" {
			continue
		}
		had[next.id] = true
		if !followed(fresh[i+1:], known, emitted) {
			j.refuse("reasoning-without-item", "input", "Item '%s' of type 'reasoning' was provided without its required "+
				"following item.", next.id)
		}
		j.encrypted(exchange, next, state)
	}
}

// followed tells whether the items behind a reasoning item begin with its partner.
func followed(rest []item, known emission, emitted bool) bool {
	if len(rest) == 0 {
		return false
	}
	partner := rest[0]
	if !emitted {
		return partner.kind == "reasoning" || partner.json.Get("role").String() == "assistant" ||
			(partner.kind != "message" && !strings.HasSuffix(partner.kind, "_output"))
	}
	if partner.id == "" {
		return partner.callID != "" && partner.callID == known.partner.callID && partner.kind == known.partner.kind
	}
	return partner.id == known.partner.id
}

// encrypted checks that a reasoning item can be read again: stored, or with the content that this server encrypted for
// the same credential.
func (j *judge) encrypted(exchange *exchange, next item, state *state) {
	known, emitted := state.emitted[next.id]
	if !emitted {
		return
	}
	content := next.json.Get("encrypted_content")
	if !present(content) {
		if _, stored := state.items[next.id]; !stored {
			j.refuseWith(http.StatusNotFound, "item-not-stored", "", "input", "Item with id '%s' not found.%s",
				next.id, state.unstoredHint(next.id))
		}
		return
	}
	if content.String() != known.encrypted || exchange.request.Header.Get("Authorization") != known.authorization {
		j.refuseWith(http.StatusBadRequest, "encrypted-content", "invalid_encrypted_content", "input",
			"The encrypted content for item %s could not be verified.", next.id)
	}
}

// declare adds a tool's names without judging them.
func (s *toolSet) declare(tool gjson.Result) {
	name := tool.Get("name").String()
	switch kind := tool.Get("type").String(); kind {
	case "function":
		s.functions[name] = true
	case "custom":
		s.customs[name] = true
	case "namespace":
		s.namespaces[name] = true
		for _, member := range tool.Get("tools").Array() {
			s.functions[name+"."+member.Get("name").String()] = true
		}
	default:
		s.kinds[kind] = true
		if kind == "mcp" {
			s.servers[tool.Get("server_label").String()] = true
		}
	}
	s.count++
}

func (j *judge) responsesTools(body gjson.Result) *toolSet {
	declared := newToolSet()
	tools := body.Get("tools")
	if present(tools) && !tools.IsArray() {
		j.refuse("tools", "tools", "Invalid type for 'tools': expected an array of objects.")
	}
	for i, tool := range tools.Array() {
		param := fmt.Sprintf("tools[%d]", i)
		switch tool.Get("type").String() {
		case "":
			j.refuse("tool-type", param+".type", "Missing required parameter: '%s.type'.", param)
		case "function":
			j.name(param+".name", tool.Get("name"), declared.functions, declared.customs)
		case "custom":
			j.name(param+".name", tool.Get("name"), declared.customs, declared.functions)
		case "namespace":
			j.name(param+".name", tool.Get("name"), declared.namespaces)
			members := map[string]bool{}
			for k, member := range tool.Get("tools").Array() {
				j.name(fmt.Sprintf("%s.tools[%d].name", param, k), member.Get("name"), members)
			}
			if len(members) == 0 {
				j.refuse("namespace-empty", param+".tools", "[] is too short - '%s.tools'", param)
			}
		}
		declared.declare(tool)
	}
	j.toolCount(declared)
	return declared
}

func (j *judge) responsesChoice(body gjson.Result, declared *toolSet) {
	choice := body.Get("tool_choice")
	if !present(choice) {
		return
	}
	if choice.Type == gjson.String {
		j.choiceWord(choice.String())
		if choice.String() == "required" && declared.count == 0 {
			j.refuse("choice-without-tools", "tool_choice", "Tool choice 'required' must be specified with 'tools' parameter.")
		}
		return
	}
	if choice.Get("type").String() == "allowed_tools" {
		j.allowed(choice.Get("mode").String(), choice.Get("tools"))
		for _, tool := range choice.Get("tools").Array() {
			j.responsesChosen(tool, declared)
		}
		return
	}
	j.responsesChosen(choice, declared)
}

func (j *judge) responsesChosen(chosen gjson.Result, declared *toolSet) {
	switch kind := chosen.Get("type").String(); kind {
	case "function", "custom":
		name := chosen.Get("name").String()
		if namespace := chosen.Get("namespace").String(); namespace != "" {
			name = namespace + "." + name
		}
		j.choiceName(kind, name, declared)
	case "mcp":
		if label := chosen.Get("server_label").String(); !declared.servers[label] {
			j.refuse("choice-unknown", "tool_choice", "Tool choice 'mcp' server '%s' not found in 'tools' parameter.", label)
		}
	default:
		if !declared.kinds[kind] {
			j.refuse("choice-unknown", "tool_choice", "Tool choice '%s' not found in 'tools' parameter.", kind)
		}
	}
}
