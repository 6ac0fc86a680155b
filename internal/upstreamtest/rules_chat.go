package upstreamtest

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
)

// chat checks a Chat Completions request.
func (j *judge) chat(body gjson.Result, state *state) {
	j.common(body)
	declared := j.chatTools(body)
	j.chatChoice(body, declared)
	j.chatMessages(body, declared, state)
}

func (j *judge) chatTools(body gjson.Result) *toolSet {
	declared := newToolSet()
	tools := body.Get("tools")
	if !tools.Exists() || tools.Type == gjson.Null {
		if present(body.Get("tool_choice")) {
			j.refuse("choice-without-tools", "tool_choice",
				"Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.")
		}
		if present(body.Get("parallel_tool_calls")) {
			j.refuse("parallel-without-tools", "parallel_tool_calls",
				"Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified.")
		}
		return declared
	}
	if !tools.IsArray() || len(tools.Array()) == 0 {
		j.refuse("tools-empty", "tools", "[] is too short - 'tools'")
		return declared
	}
	for i, tool := range tools.Array() {
		declared.count++
		kind := tool.Get("type").String()
		param := fmt.Sprintf("tools[%d].%s.name", i, kind)
		switch kind {
		case "function":
			j.name(param, tool.Get("function.name"), declared.functions, declared.customs)
		case "custom":
			j.name(param, tool.Get("custom.name"), declared.customs, declared.functions)
		default:
			j.refuse("tool-type", fmt.Sprintf("tools[%d].type", i),
				"Invalid value: %q. Supported values are: 'function' and 'custom'.", kind)
		}
	}
	j.toolCount(declared)
	if present(body.Get("functions")) {
		j.refuse("tools-and-functions", "functions", "'functions' and 'tools' cannot both be given.")
	}
	return declared
}

func (j *judge) toolCount(declared *toolSet) {
	if j.rules.MaxTools > 0 && declared.count > j.rules.MaxTools {
		j.refuse("tools-too-many", "tools", "Invalid 'tools': array too long. Expected an array with maximum length %d, "+
			"but got an array with length %d instead.", j.rules.MaxTools, declared.count)
	}
}

func (j *judge) chatChoice(body gjson.Result, declared *toolSet) {
	choice := body.Get("tool_choice")
	if !present(choice) || declared.count == 0 {
		return
	}
	if choice.Type == gjson.String {
		j.choiceWord(choice.String())
		return
	}
	switch kind := choice.Get("type").String(); kind {
	case "function", "custom":
		j.choiceName(kind, choice.Get(kind+".name").String(), declared)
	case "allowed_tools":
		allowed := choice.Get("allowed_tools.tools")
		j.allowed(choice.Get("allowed_tools.mode").String(), allowed)
		for _, tool := range allowed.Array() {
			kind := tool.Get("type").String()
			j.choiceName(kind, tool.Get(kind+".name").String(), declared)
		}
	default:
		j.refuse("choice", "tool_choice", "Invalid value for 'tool_choice.type': %q.", kind)
	}
}

func (j *judge) choiceWord(word string) {
	switch word {
	case "none", "auto", "required":
	default:
		j.refuse("choice", "tool_choice", "Invalid value: %q. Supported values are: 'none', 'auto', and 'required'.", word)
	}
}

func (j *judge) choiceName(kind, name string, declared *toolSet) {
	names := declared.functions
	if kind == "custom" {
		names = declared.customs
	}
	if !names[name] {
		j.refuse("choice-unknown", "tool_choice", "Tool choice '%s' not found in 'tools' parameter.", name)
	}
}

func (j *judge) allowed(mode string, tools gjson.Result) {
	if mode != "auto" && mode != "required" {
		j.refuse("choice", "tool_choice", "Invalid mode of allowed_tools: %q.", mode)
	}
	if !tools.IsArray() || len(tools.Array()) == 0 {
		j.refuse("choice", "tool_choice", "allowed_tools needs at least one tool.")
	}
}

// chatMessages checks roles, contents and the order of calls and results.
func (j *judge) chatMessages(body gjson.Result, declared *toolSet, state *state) {
	messages := body.Get("messages")
	if !messages.IsArray() || len(messages.Array()) == 0 {
		j.refuse("messages", "messages", "Missing required parameter: 'messages'.")
		return
	}
	var open []string // call ids without a result, in order
	var answered map[string]bool
	closeBlock := func() {
		if len(open) > 0 {
			j.refuse("tool-result-missing", "messages", "An assistant message with 'tool_calls' must be followed by tool "+
				"messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s",
				strings.Join(open, ", "))
		}
		open, answered = nil, nil
	}
	for i, message := range messages.Array() {
		param := fmt.Sprintf("messages[%d]", i)
		role := message.Get("role").String()
		if role == "tool" {
			open = j.chatResult(param, message, open, answered)
			continue
		}
		closeBlock()
		switch role {
		case "system", "developer":
			if j.rules.LeadingSystem && i > 0 {
				j.refuse("system-position", param, "System message must be at the beginning.")
			}
			j.content(param, message)
		case "user":
			j.content(param, message)
		case "function":
			if !message.Get("name").Exists() {
				j.refuse("content", param+".name", "Missing required parameter: '%s.name'.", param)
			}
		case "assistant":
			open, answered = j.chatAssistant(param, message, declared, state)
		default:
			j.refuse("role", param+".role", "Invalid value: %q. Supported values are: 'system', 'assistant', 'user', "+
				"'function', 'tool', and 'developer'.", role)
		}
	}
	closeBlock()
}

func (j *judge) content(param string, message gjson.Result) {
	content := message.Get("content")
	switch {
	case content.Type == gjson.String:
	case content.IsArray() && len(content.Array()) > 0:
		for _, part := range content.Array() {
			if part.Get("type").Type != gjson.String {
				j.refuse("content", param+".content", "Missing required parameter: '%s.content[].type'.", param)
			}
		}
	default:
		j.refuse("content", param+".content", "Invalid type for '%s.content': expected a string or an array of parts.", param)
	}
}

// chatResult checks a tool message against the open block and returns what is still open.
func (j *judge) chatResult(param string, message gjson.Result, open []string, answered map[string]bool) []string {
	j.content(param, message)
	id := message.Get("tool_call_id").String()
	for i, candidate := range open {
		if candidate == id {
			answered[id] = true
			return append(append([]string(nil), open[:i]...), open[i+1:]...)
		}
	}
	if answered[id] {
		j.refuse("tool-result-twice", param, "Duplicate tool message for tool_call_id %q.", id)
	} else {
		j.refuse("tool-result-orphan", param, "Invalid parameter: messages with role 'tool' must be a response to a "+
			"preceeding message with 'tool_calls' (tool_call_id %q).", id)
	}
	return open
}

// chatAssistant checks an assistant message and returns its call ids.
func (j *judge) chatAssistant(
	param string, message gjson.Result, declared *toolSet, state *state,
) (open []string, answered map[string]bool) {
	answered = map[string]bool{}
	calls := message.Get("tool_calls")
	if !present(calls) {
		if !present(message.Get("content")) && !present(message.Get("function_call")) &&
			!present(message.Get("refusal")) && !present(message.Get("audio")) {
			j.refuse("content", param+".content",
				"Invalid value for 'content': expected a string, got null in an assistant message without calls.")
		}
		return nil, answered
	}
	if !calls.IsArray() || len(calls.Array()) == 0 {
		j.refuse("calls-empty", param+".tool_calls", "[] is too short - '%s.tool_calls'", param)
		return nil, answered
	}
	seen := map[string]bool{}
	for i, call := range calls.Array() {
		where := fmt.Sprintf("%s.tool_calls[%d]", param, i)
		j.callID(where+".id", call.Get("id"))
		id := call.Get("id").String()
		if seen[id] {
			j.refuse("call-id-twice", where+".id", "Duplicate tool call id %q in one message.", id)
			continue
		}
		seen[id] = true
		open = append(open, id)
		kind := call.Get("type").String()
		switch kind {
		case "function":
			j.arguments(where+".function.arguments", call.Get("function.arguments"))
			j.called(where, call.Get("function.name"), declared.functions)
		case "custom":
			if call.Get("custom.input").Type != gjson.String {
				j.refuse("arguments", where+".custom.input", "Invalid type for '%s.custom.input': expected a string.", where)
			}
			j.called(where, call.Get("custom.name"), declared.customs)
		default:
			j.refuse("call-type", where+".type", "Invalid value for '%s.type': %q.", where, kind)
		}
		j.reasoningContent(param, id, message, state)
	}
	return open, answered
}

// called checks the name of a call in the history.
func (j *judge) called(param string, name gjson.Result, declared map[string]bool) {
	switch {
	case name.Type != gjson.String || name.String() == "":
		j.refuse("call-name", param, "Missing required parameter: '%s.name'.", param)
	case j.rules.Names && !namePattern.MatchString(name.String()):
		j.refuse("call-name", param, "Invalid name of '%s': %q does not match '^[a-zA-Z0-9_-]{1,64}$'.", param, name.String())
	case j.rules.DeclaredCalls && !declared[name.String()]:
		j.refuse("call-undeclared", param, "The history calls %q, which 'tools' does not declare.", name.String())
	}
}

func (j *judge) reasoningContent(param, callID string, message gjson.Result, state *state) {
	if !j.rules.ReasoningContent {
		return
	}
	sent, known := state.reasoning[callID]
	if !known {
		return
	}
	if back := message.Get(sent.member); back.Type != gjson.String || back.String() != sent.text {
		j.refuse("reasoning-content", param, "The %s of the message with call %q must be passed back as it was.",
			sent.member, callID)
	}
}
