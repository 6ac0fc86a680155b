package upstreamtest

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// ChatWhole writes the turn as a chat.completion object that answers request number n.
func (t Turn) ChatWhole(request []byte, n int) []byte {
	turn := t.filled(gjson.ParseBytes(request), "chatcmpl", n)
	if turn.Failure != nil {
		return []byte(turn.chatFailure())
	}
	var text, reasoning, refusal *string
	join := func(target **string, more string) {
		if *target == nil {
			*target = new(string)
		}
		**target += more
	}
	var calls, members []string
	for _, part := range turn.Parts {
		switch part.Kind {
		case TextPart:
			join(&text, part.Text)
		case ReasoningPart:
			join(&reasoning, part.Text)
		case RefusalPart:
			join(&refusal, part.Text)
		case CallPart, CustomCallPart:
			calls = append(calls, chatCall(part, "", part.Text))
		case MemberPart:
			members = append(members, part.Name, part.Text)
		}
	}
	nullable := func(text *string) string {
		if text == nil {
			return "null"
		}
		return quote(*text)
	}
	pairs := []string{"role", quote("assistant"), "content", nullable(text), "refusal", nullable(refusal)}
	if reasoning != nil {
		pairs = append(pairs, turn.ReasoningMember, quote(*reasoning))
	}
	pairs = append(pairs, members...)
	if len(calls) > 0 {
		pairs = append(pairs, "tool_calls", array(calls))
	}
	pairs = append(pairs, "annotations", "[]")
	choice := object("index", "0", "message", object(pairs...), "logprobs", "null", "finish_reason", quote(turn.Finish))
	return []byte(object(
		"id", quote(turn.ID), "object", quote("chat.completion"), "created", strconv.FormatInt(turn.Created, 10),
		"model", quote(turn.Model), "choices", array([]string{choice}), "usage", turn.chatUsage(),
		"service_tier", quote("default"), "system_fingerprint", quote("fp_1"),
	))
}

// chatCall writes a call; index is set in deltas only.
func chatCall(part Part, index, text string) string {
	name := part.Name
	if part.Namespace != "" {
		name = part.Namespace + "." + part.Name
	}
	if part.Kind == CustomCallPart {
		return object("index", index, "id", quote(part.ID), "type", quote("custom"),
			"custom", object("name", quote(name), "input", quote(text)))
	}
	return object("index", index, "id", quote(part.ID), "type", quote("function"),
		"function", object("name", quote(name), "arguments", quote(text)))
}

func (t Turn) chatUsage() string {
	if t.NoUsage {
		return ""
	}
	return object(
		"prompt_tokens", strconv.Itoa(t.Usage.Input), "completion_tokens", strconv.Itoa(t.Usage.Output),
		"total_tokens", strconv.Itoa(t.Usage.Input+t.Usage.Output),
		"prompt_tokens_details", object("cached_tokens", strconv.Itoa(t.Usage.Cached), "audio_tokens", "0"),
		"completion_tokens_details", object("reasoning_tokens", strconv.Itoa(t.Usage.Reasoning), "audio_tokens", "0",
			"accepted_prediction_tokens", "0", "rejected_prediction_tokens", "0"),
	)
}

func (t Turn) chatFailure() string {
	return object("error", object("message", quote(t.Failure.Message), "type", quote("server_error"),
		"param", "null", "code", quoteOrNull(t.Failure.Code)))
}

// ChatStream writes the turn as the event stream that answers request number n, with a usage chunk if it asks for one.
func (t Turn) ChatStream(request []byte, n int) []byte {
	asked := gjson.ParseBytes(request)
	turn := t.filled(asked, "chatcmpl", n)
	withUsage := asked.Get("stream_options.include_usage").Bool() && !turn.NoUsage
	var out strings.Builder
	sent := 0
	chunk := func(choices, usage, padding string) {
		if withUsage && usage == "" {
			usage = "null"
		}
		out.WriteString("data: " + object(
			"id", quote(turn.ID), "object", quote("chat.completion.chunk"), "created", strconv.FormatInt(turn.Created, 10),
			"model", quote(turn.Model), "service_tier", quote("default"), "system_fingerprint", quote("fp_1"),
			"choices", choices, "usage", usage, "obfuscation", padding,
		) + "\n\n")
		sent++
	}
	delta := func(delta, finish string) {
		chunk(array([]string{object("index", "0", "delta", delta, "logprobs", "null", "finish_reason", finish)}), "",
			turn.padding(sent))
	}
	delta(object("role", quote("assistant"), "content", turn.firstContent(), "refusal", "null"), "null")
	call := 0
	for _, part := range turn.Parts {
		switch part.Kind {
		case TextPart:
			for _, piece := range turn.pieces(part.Text) {
				delta(object("content", quote(piece)), "null")
			}
		case ReasoningPart:
			if part.Text == "" {
				delta(object(turn.ReasoningMember, quote("")), "null")
			}
			for _, piece := range turn.pieces(part.Text) {
				delta(object(turn.ReasoningMember, quote(piece)), "null")
			}
		case RefusalPart:
			for _, piece := range turn.pieces(part.Text) {
				delta(object("refusal", quote(piece)), "null")
			}
		case MemberPart:
			delta(object(part.Name, part.Text), "null")
		case CallPart, CustomCallPart:
			index := strconv.Itoa(call)
			call++
			delta(object("tool_calls", array([]string{chatCall(part, index, "")})), "null")
			for _, piece := range turn.pieces(part.Text) {
				entry := object("index", index, "function", object("arguments", quote(piece)))
				if part.Kind == CustomCallPart {
					entry = object("index", index, "custom", object("input", quote(piece)))
				}
				delta(object("tool_calls", array([]string{entry})), "null")
			}
		}
	}
	if turn.Failure != nil {
		out.WriteString("data: " + turn.chatFailure() + "\n\n")
		return []byte(out.String())
	}
	delta("{}", quote(turn.Finish))
	if withUsage {
		chunk("[]", turn.chatUsage(), turn.padding(sent))
	}
	out.WriteString("data: [DONE]\n\n")
	return []byte(out.String())
}

// firstContent is the content of the opening delta: null in an answer that has calls but no text.
func (t Turn) firstContent() string {
	called := false
	for _, part := range t.Parts {
		switch part.Kind {
		case TextPart:
			return quote("")
		case CallPart, CustomCallPart:
			called = true
		}
	}
	if called {
		return "null"
	}
	return quote("")
}
