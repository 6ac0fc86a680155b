package upstreamtest

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// Turn is a model's answer, told without its wire form. ChatWhole, ChatStream, ResponsesWhole and ResponsesStream write
// it as the real API would; a Server chooses by the request.
type Turn struct {
	ID      string // empty: chatcmpl_N or resp_N, with N the number of the request
	Model   string // empty: the request's
	Created int64  // unix seconds; 0: 1700000000 + N
	Parts   []Part // in the order in which the model writes them
	// Finish is the Chat finish reason. Empty: tool_calls if there is a call, else stop. In Responses "length" and
	// "content_filter" make an incomplete response, everything else a completed one.
	Finish  string
	Usage   Usage
	NoUsage bool // leave the usage out, as some servers do
	// Failure makes the answer fail after its parts, in the in-band form of the dialect.
	Failure *Failure
	// ReasoningMember is the Chat member that carries reasoning; empty is reasoning_content.
	ReasoningMember string
	// Piece is how many bytes a delta carries, at rune borders; 0: a word with the blank behind it.
	Piece int
	// Obfuscation adds the padding member to deltas.
	Obfuscation bool
}

// Usage is counted in tokens. The zero value stands for 10 in and 5 out.
type Usage struct{ Input, Output, Cached, Reasoning int }

func (u Usage) orDefault() Usage {
	if u == (Usage{}) {
		return Usage{Input: 10, Output: 5}
	}
	return u
}

// Failure is an error inside a 200 answer.
type Failure struct{ Code, Message string }

// PartKind tells the parts of a turn apart.
type PartKind int

// The kinds of parts.
const (
	TextPart PartKind = iota
	ReasoningPart
	RefusalPart
	CallPart
	CustomCallPart
	ItemPart   // a whole Responses item as JSON; left out in Chat
	MemberPart // a member of the Chat message as JSON; left out in Responses
)

// Part is one piece of a turn.
type Part struct {
	Kind      PartKind
	Text      string // text, reasoning, refusal; arguments or input of a call; JSON of an item or member
	ID        string // call id; empty: call_N_K
	Name      string // of a call or member
	Namespace string // of a Responses call
	Phase     string // of a Responses message
}

// TurnOption is a part or a property of a turn.
type TurnOption func(*Turn)

func add(part Part) TurnOption { return func(turn *Turn) { turn.Parts = append(turn.Parts, part) } }

// Text says something. In Responses each Text is a message of its own.
func Text(text string) TurnOption { return add(Part{Kind: TextPart, Text: text}) }

// Reasoning thinks aloud; in Responses it is a reasoning item, whose summary is empty if the text is.
func Reasoning(text string) TurnOption { return add(Part{Kind: ReasoningPart, Text: text}) }

// Refuse declines in the refusal member.
func Refuse(text string) TurnOption { return add(Part{Kind: RefusalPart, Text: text}) }

// Call calls a function. In Responses a name "namespace/name" sets both members.
func Call(id, name, arguments string) TurnOption {
	return add(callPart(CallPart, id, name, arguments))
}

// CustomCall calls a custom tool with free text.
func CustomCall(id, name, input string) TurnOption {
	return add(callPart(CustomCallPart, id, name, input))
}

func callPart(kind PartKind, id, name, text string) Part {
	namespace, member, found := strings.Cut(name, "/")
	if !found {
		namespace, member = "", name
	}
	return Part{Kind: kind, ID: id, Name: member, Namespace: namespace, Text: text}
}

// Item emits a whole item in Responses, as JSON.
func Item(json string) TurnOption { return add(Part{Kind: ItemPart, Text: json}) }

// Member adds a member to the Chat message (streamed: one delta), as JSON.
func Member(name, json string) TurnOption { return add(Part{Kind: MemberPart, Name: name, Text: json}) }

// Finish sets the finish reason.
func Finish(reason string) TurnOption { return func(turn *Turn) { turn.Finish = reason } }

// Tokens sets the usage.
func Tokens(usage Usage) TurnOption { return func(turn *Turn) { turn.Usage = usage } }

// Fail ends the turn with an in-band error.
func Fail(code, message string) TurnOption {
	return func(turn *Turn) { turn.Failure = &Failure{code, message} }
}

// ResponseID sets the id of the response or completion.
func ResponseID(id string) TurnOption { return func(turn *Turn) { turn.ID = id } }

// NewTurn puts a turn together.
func NewTurn(options ...TurnOption) Turn {
	var turn Turn
	for _, option := range options {
		option(&turn)
	}
	return turn
}

// Reply answers with a turn.
func Reply(options ...TurnOption) Answer {
	turn := NewTurn(options...)
	return Answer{Turn: &turn}
}

// render writes the turn as the request asks for it.
func (t Turn) render(exchange *exchange) ([]byte, string) {
	number := exchange.request.Number
	stream := exchange.json.Get("stream").Bool()
	switch {
	case exchange.dialect == responses && stream:
		return t.ResponsesStream(exchange.plain, number), eventStream
	case exchange.dialect == responses:
		return t.ResponsesWhole(exchange.plain, number), jsonContent
	case stream:
		return t.ChatStream(exchange.plain, number), eventStream
	}
	return t.ChatWhole(exchange.plain, number), jsonContent
}

// filled gives the turn its defaults for request number n.
func (t Turn) filled(request gjson.Result, prefix string, n int) Turn {
	if t.ID == "" {
		t.ID = fmt.Sprintf("%s_%d", prefix, n)
	}
	if t.Model == "" {
		t.Model = request.Get("model").String()
	}
	if t.Created == 0 {
		t.Created = 1700000000 + int64(n)
	}
	if t.ReasoningMember == "" {
		t.ReasoningMember = "reasoning_content"
	}
	t.Usage = t.Usage.orDefault()
	parts := make([]Part, len(t.Parts))
	called := false
	for i, part := range t.Parts {
		if part.Kind == CallPart || part.Kind == CustomCallPart {
			called = true
			if part.ID == "" || part.ID == "-" {
				part.ID = fmt.Sprintf("call_%d_%d", n, i+1)
			}
		}
		parts[i] = part
	}
	t.Parts = parts
	if t.Finish == "" {
		t.Finish = "stop"
		if called {
			t.Finish = "tool_calls"
		}
	}
	return t
}

// pieces cuts a text into deltas.
func (t Turn) pieces(text string) []string {
	var pieces []string
	for text != "" {
		end := strings.IndexByte(text, ' ') + 1
		if t.Piece > 0 {
			end = min(t.Piece, len(text))
		}
		if end <= 0 {
			end = len(text)
		}
		for end < len(text) && !utf8.RuneStart(text[end]) {
			end++
		}
		pieces = append(pieces, text[:end])
		text = text[end:]
	}
	return pieces
}

func (t Turn) padding(n int) string {
	if !t.Obfuscation {
		return ""
	}
	return quote(strings.Repeat("x", 3+n%5))
}
