package upstreamtest

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// ResponsesWhole writes the turn as a response object that answers request number n.
func (t Turn) ResponsesWhole(request []byte, n int) []byte {
	asked := gjson.ParseBytes(request)
	turn := t.filled(asked, "resp", n)
	var items []string
	for i := range turn.Parts {
		if built, shown := turn.item(asked, n, i); shown {
			items = append(items, built.done)
		}
	}
	return []byte(turn.response(asked, turn.status(), items))
}

func (t Turn) status() string {
	switch {
	case t.Failure != nil:
		return "failed"
	case t.Finish == "length" || t.Finish == "content_filter":
		return "incomplete"
	}
	return "completed"
}

// built is one output item: as announced, as finished, and where its text goes.
type built struct {
	id, added, done string
	part            Part
}

// item writes part number i as an item; shown is false for parts that Responses does not have.
func (t Turn) item(asked gjson.Result, n, i int) (b built, shown bool) {
	part := t.Parts[i]
	status := quote("completed")
	if i == len(t.Parts)-1 && t.status() != "completed" {
		status = quote("incomplete")
	}
	progress := quote("in_progress")
	id := func(prefix string) string { return fmt.Sprintf("%s_%d_%d", prefix, n, i+1) }
	b.part = part
	optional := func(text string) string {
		if text == "" {
			return ""
		}
		return quote(text)
	}
	switch part.Kind {
	case TextPart, RefusalPart:
		b.id = id("msg")
		write := func(status, content string) string {
			return object("id", quote(b.id), "type", quote("message"), "status", status, "content", content,
				"phase", optional(part.Phase), "role", quote("assistant"))
		}
		b.added, b.done = write(progress, "[]"), write(status, array([]string{messagePart(part, part.Text)}))
	case ReasoningPart:
		b.id = id("rs")
		encrypted := ""
		for _, include := range asked.Get("include").Array() {
			if include.String() == "reasoning.encrypted_content" {
				encrypted = quote("encrypted-" + b.id)
			}
		}
		write := func(summary string) string {
			return object("id", quote(b.id), "type", quote("reasoning"), "encrypted_content", encrypted, "summary", summary)
		}
		b.added, b.done = write("[]"), write("[]")
		if part.Text != "" {
			b.done = write(array([]string{object("type", quote("summary_text"), "text", quote(part.Text))}))
		}
	case CallPart:
		b.id = id("fc")
		write := func(status, arguments string) string {
			return object("id", quote(b.id), "type", quote("function_call"), "status", status, "arguments", quote(arguments),
				"call_id", quote(part.ID), "name", quote(part.Name), "namespace", optional(part.Namespace))
		}
		b.added, b.done = write(progress, ""), write(status, part.Text)
	case CustomCallPart:
		b.id = id("ctc")
		write := func(status, input string) string {
			return object("id", quote(b.id), "type", quote("custom_tool_call"), "status", status, "call_id", quote(part.ID),
				"input", quote(input), "name", quote(part.Name), "namespace", optional(part.Namespace))
		}
		b.added, b.done = write(progress, ""), write(status, part.Text)
	case ItemPart:
		b.id = gjson.Get(part.Text, "id").String()
		b.added, b.done = part.Text, part.Text
		if gjson.Get(part.Text, "status").Exists() {
			b.added, _ = sjson.Set(part.Text, "status", "in_progress") // valid JSON and a plain path: no error
		}
	default:
		return built{}, false
	}
	return b, true
}

func messagePart(part Part, text string) string {
	if part.Kind == RefusalPart {
		return object("type", quote("refusal"), "refusal", quote(text))
	}
	return object("type", quote("output_text"), "annotations", "[]", "logprobs", "[]", "text", quote(text))
}

// response writes the response object with the echo of the request.
func (t Turn) response(asked gjson.Result, status string, items []string) string {
	echo := func(member, otherwise string) string {
		if value := asked.Get(member); present(value) {
			return value.Raw
		}
		return otherwise
	}
	running := status == "in_progress"
	failure, incomplete, usage, completed := "null", "null", "null", "null"
	if status == "failed" {
		failure = object("code", quote(t.Failure.Code), "message", quote(t.Failure.Message))
	}
	if status == "incomplete" {
		reason := "max_output_tokens"
		if t.Finish == "content_filter" {
			reason = "content_filter"
		}
		incomplete = object("reason", quote(reason))
	}
	if !running && status != "failed" && !t.NoUsage {
		usage = object(
			"input_tokens", strconv.Itoa(t.Usage.Input),
			"input_tokens_details", object("cached_tokens", strconv.Itoa(t.Usage.Cached)),
			"output_tokens", strconv.Itoa(t.Usage.Output),
			"output_tokens_details", object("reasoning_tokens", strconv.Itoa(t.Usage.Reasoning)),
			"total_tokens", strconv.Itoa(t.Usage.Input+t.Usage.Output),
		)
	}
	if status == "completed" {
		completed = strconv.FormatInt(t.Created+1, 10)
	}
	conversation := ""
	if id := conversationID(asked); id != "" {
		conversation = object("id", quote(id))
	}
	return object(
		"id", quote(t.ID), "object", quote("response"), "created_at", strconv.FormatInt(t.Created, 10),
		"status", quote(status), "background", echo("background", "false"), "completed_at", completed,
		"conversation", conversation, "error", failure, "incomplete_details", incomplete,
		"instructions", echo("instructions", "null"), "max_output_tokens", echo("max_output_tokens", "null"),
		"max_tool_calls", echo("max_tool_calls", "null"), "model", quote(t.Model), "output", array(items),
		"parallel_tool_calls", echo("parallel_tool_calls", "true"),
		"previous_response_id", echo("previous_response_id", "null"),
		"prompt_cache_key", echo("prompt_cache_key", "null"),
		"reasoning", echo("reasoning", object("effort", "null", "summary", "null")),
		"safety_identifier", echo("safety_identifier", "null"), "service_tier", quote("default"),
		"store", echo("store", "true"), "temperature", echo("temperature", "1.0"),
		"text", echo("text", object("format", object("type", quote("text")), "verbosity", quote("medium"))),
		"tool_choice", echo("tool_choice", quote("auto")), "tools", echoTools(asked.Get("tools")),
		"top_logprobs", echo("top_logprobs", "0"), "top_p", echo("top_p", "1.0"),
		"truncation", echo("truncation", quote("disabled")), "usage", usage, "user", echo("user", "null"),
		"metadata", echo("metadata", "{}"),
	)
}

// echoTools writes the tools in the normalised form in which the API echoes them: defaults filled in.
func echoTools(tools gjson.Result) string {
	echoed := []string{}
	for _, tool := range tools.Array() {
		raw := tool.Raw
		if tool.Get("type").String() == "function" {
			for _, member := range []struct{ name, value string }{{"description", "null"}, {"strict", "true"}} {
				if !tool.Get(member.name).Exists() {
					raw, _ = sjson.SetRaw(raw, member.name, member.value) // valid JSON and a plain path: no error
				}
			}
		}
		echoed = append(echoed, raw)
	}
	return array(echoed)
}

// ResponsesStream writes the turn as the event stream that answers request number n.
func (t Turn) ResponsesStream(request []byte, n int) []byte {
	asked := gjson.ParseBytes(request)
	turn := t.filled(asked, "resp", n)
	stream := &responsesStream{turn: turn}
	running := turn.response(asked, "in_progress", nil)
	stream.event("response.created", "response", running)
	stream.event("response.in_progress", "response", running)
	var items []string
	for i := range turn.Parts {
		built, shown := turn.item(asked, n, i)
		if !shown {
			continue
		}
		stream.item(built, len(items))
		items = append(items, built.done)
	}
	status := turn.status()
	if turn.Failure != nil {
		stream.event("error", "error", object("type", quote("server_error"), "code", quoteOrNull(turn.Failure.Code),
			"message", quote(turn.Failure.Message), "param", "null"))
	}
	stream.event("response."+status, "response", turn.response(asked, status, items))
	return []byte(stream.out.String())
}

type responsesStream struct {
	turn     Turn
	out      strings.Builder
	sequence int
}

// event writes one event with its sequence number.
func (s *responsesStream) event(kind string, pairs ...string) {
	pairs = append([]string{"type", quote(kind), "sequence_number", strconv.Itoa(s.sequence)}, pairs...)
	s.sequence++
	s.out.WriteString("event: " + kind + "\ndata: " + object(pairs...) + "\n\n")
}

// item writes all events of one item.
func (s *responsesStream) item(item built, outputIndex int) {
	index := []string{"output_index", strconv.Itoa(outputIndex)}
	place := append([]string{"item_id", quote(item.id)}, index...)
	at := func(pairs ...string) []string { return append(append([]string(nil), place...), pairs...) }
	s.event("response.output_item.added", append(index, "item", item.added)...)
	text := item.part.Text
	switch item.part.Kind {
	case TextPart, RefusalPart:
		name, member, logprobs := "response.output_text", "text", "[]"
		if item.part.Kind == RefusalPart {
			name, member, logprobs = "response.refusal", "refusal", ""
		}
		s.event("response.content_part.added", at("content_index", "0", "part", messagePart(item.part, ""))...)
		s.deltas(name+".delta", text, at("content_index", "0"), "logprobs", logprobs)
		s.event(name+".done", at("content_index", "0", member, quote(text), "logprobs", logprobs)...)
		s.event("response.content_part.done", at("content_index", "0", "part", messagePart(item.part, text))...)
	case ReasoningPart:
		if text == "" {
			break
		}
		summary := func(text string) string { return object("type", quote("summary_text"), "text", quote(text)) }
		s.event("response.reasoning_summary_part.added", at("summary_index", "0", "part", summary(""))...)
		s.deltas("response.reasoning_summary_text.delta", text, at("summary_index", "0"))
		s.event("response.reasoning_summary_text.done", at("summary_index", "0", "text", quote(text))...)
		s.event("response.reasoning_summary_part.done", at("summary_index", "0", "part", summary(text))...)
	case CallPart:
		s.deltas("response.function_call_arguments.delta", text, place)
		s.event("response.function_call_arguments.done", at("arguments", quote(text))...)
	case CustomCallPart:
		s.deltas("response.custom_tool_call_input.delta", text, place)
		s.event("response.custom_tool_call_input.done", at("input", quote(text))...)
	}
	s.event("response.output_item.done", append(index, "item", item.done)...)
}

func (s *responsesStream) deltas(kind, text string, place []string, more ...string) {
	for _, piece := range s.turn.pieces(text) {
		pairs := append(append([]string(nil), place...), "delta", quote(piece))
		pairs = append(append(pairs, more...), "obfuscation", s.turn.padding(s.sequence))
		s.event(kind, pairs...)
	}
}
