package openai

import (
	"bytes"

	"github.com/tidwall/gjson"
)

// outputKind tells output items apart as far as the proxy must.
type outputKind uint8

const (
	otherOutput outputKind = iota
	messageOutput
	reasoningOutput
	functionOutput
	clientCallOutput // any other call that the client answers
)

// outputState says what becomes of an output item.
type outputState uint8

const (
	waits  outputState = iota // it is not known yet whether the client may see it
	shown                     // the client has got it, or would have if the answer were streamed
	hidden                    // the client never gets it
)

// outputItem is one output item of a round.
type outputItem struct {
	kind      outputKind
	state     outputState
	due       bool    // it still waits, and will be shown with the end of the answer
	place     int     // output_index of the upstream, -1 if it gave none
	index     int     // output_index of the client, once it is shown
	id        string  // as it was announced
	waiting   []Event // what has come while it waits
	added     []byte  // raw JSON as it was announced
	done      []byte  // raw JSON as it was finished
	own       []byte  // raw JSON that the client gets where it differs
	unsent    bool    // shown, but no event of it has been sent
	partnered bool    // of reasoning: a hidden call stands behind it
	named     bool    // of a function call: the name is known
	written   bool    // of a function call: the model wrote it as text
	name      string  // canonical
	class     Class
	bundle    *bundle // the calls that it asks for, if it is a bundle with hidden calls
	prefix    *TextCallPrefix
	replaced  bool   // of a message: its text was calls, which stand behind it
	replay    []byte // raw JSON as the next request holds it; nil leaves it out
}

func newOutputItem(raw []byte, place int) *outputItem {
	item := &outputItem{added: bytes.Clone(raw), place: place}
	kind := text(raw, find(raw, 0, "type"))
	item.id = text(raw, find(raw, 0, "id"))
	switch {
	case kind == "message":
		item.kind = messageOutput
	case kind == "reasoning":
		item.kind = reasoningOutput
	case kind == "function_call":
		item.kind = functionOutput
	case isClientCall(kind):
		item.kind = clientCallOutput
	}
	return item
}

func (item *outputItem) hide() {
	item.state = hidden
	item.waiting = nil
}

// mayBecomeCalls feeds a piece of a message to the recogniser of text calls.
func (item *outputItem) mayBecomeCalls(e *responsesEvent) bool {
	switch string(e.kind) {
	case "response.output_text.delta":
		return !isString(e.data, e.delta) || item.prefix.Feed(unescaped(e.data[e.delta.Start+1:e.delta.End-1]))
	case "response.refusal.delta":
		return false
	}
	return true
}

// raw returns the item as the upstream wrote it, as far as it has come.
func (item *outputItem) raw() []byte {
	if item.done != nil {
		return item.done
	}
	return item.added
}

func (item *outputItem) visible() bool { return item.state == shown || item.due }

// hasText reports whether a reasoning item holds something to read.
func hasText(reasoning []byte) bool {
	return hasElements(reasoning, find(reasoning, 0, "summary")) || hasElements(reasoning, find(reasoning, 0, "content"))
}

// refuses reports whether a message holds a refusal.
func refuses(message []byte) bool {
	content := find(message, 0, "content")
	if !startsWith(message, content, '[') {
		return false
	}
	for _, part := range elements(message, content.Start) {
		if startsWith(message, part, '{') && !isEmpty(message, find(message, part.Start, "refusal")) &&
			text(message, find(message, part.Start, "type")) == "refusal" {
			return true
		}
	}
	return false
}

// calls returns the calls that an item holds, if somebody must answer them: mostly one, but for a bundle.
func (r *responsesRound) calls(item *outputItem) []Call {
	if item.bundle != nil {
		return item.bundle.calls
	}
	raw := item.raw()
	switch item.kind {
	case functionOutput:
		c := Call{ID: callID(raw), Name: item.name, Class: item.class, raw: item.replay}
		if c.raw == nil {
			c.raw = raw
		}
		c.Arguments = argumentsOf(raw, find(raw, 0, "arguments"))
		return []Call{c}
	case clientCallOutput:
		c := Call{ID: callID(raw), Name: item.name, raw: raw}
		c.Arguments = argumentsOf(raw, find(raw, 0, "input"))
		for _, other := range r.items {
			b := other.raw()
			if other.kind == otherOutput && c.ID != "" && text(b, find(b, 0, "call_id")) == c.ID {
				return nil // the server has answered it itself
			}
		}
		return []Call{c}
	}
	return nil
}

// callName names a call that is no function call: its tool, or else its type.
func (item *outputItem) callName() string {
	raw := item.raw()
	kind := text(raw, find(raw, 0, "type"))
	if kind == "custom_tool_call" {
		return qualified(text(raw, find(raw, 0, "namespace")), text(raw, find(raw, 0, "name")))
	}
	return kind
}

// callID returns the id by which a call is answered.
func callID(raw []byte) string {
	if id := text(raw, find(raw, 0, "call_id")); id != "" {
		return id
	}
	return text(raw, find(raw, 0, "id"))
}

func argumentsOf(raw []byte, at Range) []byte {
	switch {
	case isString(raw, at):
		return unescaped(raw[at.Start+1 : at.End-1])
	case isNull(raw, at):
		return nil
	}
	return at.Of(raw)
}

// prepareReplay says for every item how the next request holds it. What the upstream has not stored it can read again
// only where it stands whole: reasoning without its encrypted content, or text of its own, is left out, and with it goes
// what asks for it, the id of the items behind it.
func (r *responsesRound) prepareReplay(unstored bool) {
	dropped := false
	for _, item := range r.items {
		raw := item.raw()
		switch item.kind {
		case reasoningOutput:
			dropped = unstored && isEmpty(raw, find(raw, 0, "encrypted_content")) &&
				!hasElements(raw, find(raw, 0, "content"))
			if dropped {
				raw = nil
			}
		case functionOutput, messageOutput:
			if item.kind == functionOutput {
				raw = replayedCall(raw)
			}
			if dropped {
				raw = withoutMember(raw, "id")
			}
		case otherOutput:
			if dropped {
				raw = nil // it is nothing without its id
			}
		}
		if item.replay == nil && !item.replaced {
			item.replay = raw
		}
	}
	for i := len(r.items) - 1; i >= 0 && r.items[i].kind == reasoningOutput; i-- {
		r.items[i].replay = nil // nothing follows that it belongs to
	}
}

func isEmpty(b []byte, at Range) bool { return at.Absent() || isEmptyValue(b, at) }

// replayedCall returns a function call as the next request must hold it: with a call id, and with arguments that are a
// string of valid JSON.
func replayedCall(raw []byte) []byte {
	var edits []Edit
	if text(raw, find(raw, 0, "call_id")) == "" {
		id := AppendString(nil, callID(raw))
		if at := find(raw, 0, "call_id"); at.Absent() {
			edits = append(edits, insert(1, append(append([]byte(`"call_id":`), id...), ',')))
		} else {
			edits = append(edits, Edit{at, id})
		}
	}
	at := find(raw, 0, "arguments")
	arguments := argumentsOf(raw, at)
	switch {
	case at.Absent():
		edits = append(edits, insert(1, []byte(`"arguments":"{}",`)))
	case !gjson.ValidBytes(arguments):
		edits = append(edits, Edit{at, []byte(`"{}"`)})
	case !isString(raw, at):
		edits = append(edits, Edit{at, AppendString(nil, string(arguments))})
	}
	if len(edits) == 0 {
		return raw
	}
	return applyEdits(nil, raw, edits)
}

// withoutMember returns an object without one of its members.
func withoutMember(raw []byte, name string) []byte {
	members, ok := appendMembers(nil, raw, 0)
	if !ok {
		return raw
	}
	out := []byte{'{'}
	for _, m := range members {
		if string(m.Key) == name {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, m.Whole.Of(raw)...)
	}
	return append(out, '}')
}
