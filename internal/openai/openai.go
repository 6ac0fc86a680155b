// Package openai knows the wire: the two dialects of the OpenAI API, Chat Completions and Responses, as bytes. It finds
// out where things stand in a request, writes the next request, reads the upstream's rounds and builds the one answer
// that the client sees. It knows no policy and no session; what a called tool means, its caller says.
//
// Bodies are never decoded and encoded again: they are cut at byte ranges, so that big integers, key order, escapes,
// unknown fields and the provider's prompt cache survive.
package openai

import "slices"

// Dialect is one of the two APIs.
type Dialect interface {
	// Name is "chat" or "responses".
	Name() string
	// View finds out where things stand in a request body. lookup, if not nil, is asked at the tools array whether these
	// bytes are known, and returns what an earlier scan of them found. The error is ErrSyntax or ErrTooDeep.
	View(body []byte, lookup func(rest []byte) *Tools) (*View, error)
	// VirtualTool returns the raw JSON of the virtual tool of this name; strict is "omit", "false" or "true".
	VirtualTool(name, strict string) []byte
	// Compose writes the upstream's request: the client's body with the edits of the projection.
	Compose(v *View, p Projection) []byte
	// Restore puts hidden rounds back into the body of a request that is not projected, where the upstream would refuse it
	// without them. It returns nil where the client's body will do.
	Restore(v *View, p Projection) []byte
	// NewAnswer begins the answer to the request.
	NewAnswer(v *View, o AnswerOptions) Answer
	// Splices describes where the hidden rounds of an answer belong in later requests of the client.
	Splices(v *View, rounds []Round, results [][]Result, last Round) []Splice
}

// CredentialHeaders are the headers in which clients of such APIs carry their secret.
var CredentialHeaders = []string{"Authorization", "Api-Key", "X-Api-Key", "X-Goog-Api-Key"}

// Reason says why a request cannot be projected.
type Reason string

// The reasons that a body gives by itself.
const (
	ReasonNoTools        Reason = "no_tools"
	ReasonFunctions      Reason = "legacy_functions"
	ReasonChoices        Reason = "several_choices"
	ReasonBackground     Reason = "background"
	ReasonPromptTemplate Reason = "prompt_template"
	ReasonNativeSearch   Reason = "native_tool_search"
	ReasonMultiAgent     Reason = "multi_agent"
	// ReasonAdditionalTools: the tools come in an input item (Responses), and none in tools.
	ReasonAdditionalTools Reason = "additional_tools"
	ReasonRepeatedKey     Reason = "repeated_key"
	ReasonShape           Reason = "unexpected_shape"
)

// View records where things are in one request body. It copies nothing but a few names.
type View struct {
	Body []byte
	// Passthrough is the reason why this request is not to be projected, empty if it can be.
	Passthrough Reason

	Model      string
	Stream     bool
	UsageAsked bool // Chat: the client asked for a usage chunk
	JSONFormat bool // the answer's text must be JSON
	Tools      *Tools
	Choice     Choice

	// Items are the messages or input items in order.
	Items []Item
	// PreviousResponse and Conversation name state at the upstream (Responses).
	PreviousResponse, Conversation string
	// Compacts says that the input ends in a compaction trigger.
	Compacts bool

	tools        Range // the tools array
	slim         bool  // the body lacks the tools array; it belongs where tools is, which is empty
	choice       Range // the value of tool_choice
	items        Range // the messages or input array, or the input string
	instructions Range
	previous     Range // the value of previous_response_id
	unstored     bool  // Responses: the client said store:false
}

// Slim makes the view one over a small copy of the body that lacks the tools array, so that the body need not be kept for as
// long as the answer takes. tools are those of the view, with bytes of their own (Tools.Detach).
func (v *View) Slim(tools *Tools) {
	cut := v.tools
	body := make([]byte, 0, len(v.Body)-(cut.End-cut.Start))
	body = append(append(body, v.Body[:cut.Start]...), v.Body[cut.End:]...)
	move := func(at *Range) {
		if at.Start >= cut.End {
			*at = at.shift(cut.Start - cut.End)
		}
	}
	items := slices.Clone(v.Items)
	for i := range items {
		item := &items[i]
		move(&item.Range)
		move(&item.Content)
		move(&item.nameAt)
		item.Calls = slices.Clone(item.Calls)
		for k := range item.Calls {
			move(&item.Calls[k].ArgumentsAt)
			move(&item.Calls[k].nameAt)
		}
	}
	for _, at := range []*Range{&v.choice, &v.items, &v.instructions, &v.previous} {
		move(at)
	}
	v.Body, v.Items, v.Tools, v.tools, v.slim = body, items, tools, Range{cut.Start, cut.Start}, true
}

// Original returns the client's body byte for byte.
func (v *View) Original() []byte {
	if !v.slim {
		return v.Body
	}
	return applyEdits(nil, v.Body, []Edit{{v.tools, v.Tools.Raw}})
}

// Kind tells items apart as far as the proxy must.
type Kind uint8

// Kinds of items.
const (
	KindOther     Kind = iota // unknown or of no meaning to the proxy
	KindSystem                // system or developer message
	KindUser                  // user message
	KindAssistant             // assistant message; in Responses any output item that is no call
	KindCall                  // Responses: a function call
	KindResult                // the result of a tool call
)

// Item is one message (Chat) or input item (Responses).
type Item struct {
	Range
	Kind Kind
	// ID is the item's own id (Responses) and ResultOf the id of the call that a result answers.
	ID, ResultOf string
	// Calls are the function calls that the item holds.
	Calls []Call
	// Content is the range of the message's content.
	Content Range

	nameAt Range // Chat: where a result names its tool
}

// Call is a function call, in the client's history or in an answer of the upstream.
type Call struct {
	ID string
	// Name is the canonical name: namespace.member for members of a Responses namespace group.
	Name string
	// Arguments is the JSON text of the arguments, unescaped. For calls in a request it is empty and ArgumentsAt, the
	// range of the value in the body, takes its place.
	Arguments   []byte
	ArgumentsAt Range
	// Class is what the call is to the proxy, in answers only.
	Class Class

	raw      []byte  // in answers: the raw JSON of the call as it stands in history
	bundle   *bundle // in answers: the bundle that the call came in
	nameAt   Range   // in requests: where the name stands
	function bool    // a function tool's call, not a custom tool's
}

// Class is what a called tool is to the proxy in a round.
type Class uint8

// Classes of calls.
const (
	// Visible calls are the client's.
	Visible Class = iota
	// Virtual calls are calls of the virtual tool.
	Virtual
	// Unexposed calls name a tool of the catalog that this round did not expose.
	Unexposed
)

// Hidden reports whether the proxy answers such calls itself.
func (c Class) Hidden() bool { return c != Visible }

// Names says what a called name is in one round. Classify must be cheap: it is asked while a stream flows.
type Names interface {
	Classify(name string) Class
	// MayBeHidden reports whether some name that is not Visible begins with prefix and is longer.
	MayBeHidden(prefix string) bool
}

// Projection says how the upstream's request differs from the client's.
type Projection struct {
	// Tools replaces the tools array; nil leaves it, an empty slice removes it with what depends on it.
	Tools []byte
	// Directory joins the leading system text. It is a raw JSON string: with many names, writing it anew for every round
	// would cost more than everything else.
	Directory []byte
	// Mode, if not empty, is the string that replaces tool_choice: an allowed_tools choice that the tools array now
	// expresses, or a forced choice that has been served.
	Mode string
	// Splices are put back where their anchors stand.
	Splices []Splice
	// Rounds are the hidden rounds of this very request, with the results of their hidden calls.
	Rounds  []Round
	Results [][]Result
	// Encode renames tools towards the upstream; nil leaves names alone.
	Encode func(name string) string
	// Omit are the ids of input items that are left out (Responses): reasoning whose following item nobody knows any more.
	Omit []string
	// Unname are the ids of input items that are sent without them (Responses): the upstream pairs items with their
	// reasoning by id.
	Unname []string
	// Open answers calls that state at the upstream holds and that nobody has answered (Responses).
	Open []Result
	// Replay sends the hidden rounds whole although the request names a conversation (Responses), which should hold
	// them: the upstream has said that it lacks their calls.
	Replay bool
}

// Result answers one hidden call.
type Result struct {
	CallID string
	Output string
}

// Splice is a run of hidden items and the place where it belongs in the client's own history. Responses has its own use of
// the fields; see there.
type Splice struct {
	// Anchors name visible items; see Anchor.
	Anchors []string
	// At is the index among the client's items at which the answer's first one was to stand: it tells answers apart whose ids
	// are the same.
	At int
	// Before are raw, comma-separated items that stand before the anchor.
	Before []byte
	// Cut are texts of the hidden rounds that the client saw joined to the anchor's own.
	Cut []MemberText
	// Within are hidden calls of the anchor's own turn.
	Within []HiddenCall
}

// MemberText is the text of one member of a message.
type MemberText struct{ Member, Text string }

// HiddenCall is a call of a mixed turn with its result, as raw JSON, and its index among all calls of the turn.
type HiddenCall struct {
	Position     int
	Call, Result []byte
}

// AnswerOptions are the choices of the operator that touch answers.
type AnswerOptions struct {
	// BilledUsage sums input tokens over the rounds as well; UsageDetails adds usage.tool_search.
	BilledUsage, UsageDetails bool
	// KeepResponseID gives all events of a streamed Responses answer the id of the first one. Otherwise the terminal event
	// has the last round's, which the upstream knows.
	KeepResponseID bool
	// TextCalls recognises tool calls written as text; Known names the tools that they may call.
	TextCalls bool
	Known     func(name string) bool
	// Unread, if not nil, is told of a text that looks like calls but cannot be read safely, and how long it is.
	Unread func(err error, length int)
	// Decode turns the upstream's tool names into canonical ones; nil leaves them alone.
	Decode func(name string) string
}

// Answer builds the one answer that the client sees out of the upstream's rounds. Each round is begun, fed with either
// events or one whole body, and ended; then it is either hidden, and a further round begins, or it is the last, and
// Finish completes the answer.
type Answer interface {
	// Begin opens a round; names says what the called names are in it.
	Begin(names Names)
	// Event takes the next event of a streamed round and appends what the client gets now to dst. Nothing is appended
	// before there is something to see: until then the client may still get another status.
	Event(dst []byte, ev Event) []byte
	// Progress says how far the streamed round has come.
	Progress() Progress
	// Whole takes the body of a round that is not streamed.
	Whole(body []byte)
	// End closes the round and says what it was.
	End() Round
	// Release appends what a streamed answer holds back although it has nothing to show yet, so that the stream can be
	// opened.
	Release(dst []byte) []byte
	// Finish appends the end of a streamed answer: held events, finish reason, usage, terminal event.
	Finish(dst []byte) []byte
	// Body returns the whole answer of a client that did not ask for a stream.
	Body() []byte
	// Fail appends the dialect's in-band error events to a stream that has begun.
	Fail(dst []byte, f Failure) []byte
}

// Progress is how far a streamed round has come.
type Progress uint8

// Stages of a streamed round.
const (
	Running Progress = iota
	Ending           // a finish reason has come; little can follow, and nothing need
	Over             // the end has come; what follows is nobody's
)

// Round is what one upstream model call was.
type Round struct {
	// Calls are all function calls of the round, in their order.
	Calls []Call
	// Complete says that the round came to a proper end; a cut one never starts another.
	Complete bool
	// Stopped says that the round ended in a way that admits no hidden round: cut by a limit, filtered, failed.
	Stopped bool
	// Failure is an error that the upstream reported within the answer, nil if none.
	Failure *Failure
	// ResponseID is the id of the response (Responses).
	ResponseID string
	// Usage is the raw usage object, nil if the upstream gave none.
	Usage []byte

	// items is the raw assistant turn as it is replayed: one message, or comma-separated output items.
	items []byte
	// texts are the visible texts of the round by member.
	texts []MemberText
	// shape is the dialect's own note on the round.
	shape any
}

// Hidden returns the calls that the proxy answers, and how many calls are the client's.
func (r Round) Hidden() (hidden []Call, visible int) {
	for _, c := range r.Calls {
		if c.Class.Hidden() {
			hidden = append(hidden, c)
		} else {
			visible++
		}
	}
	return hidden, visible
}

// Failure is an error that the client must be told within a stream.
type Failure struct {
	Status  int    // HTTP status of the upstream, 0 if there was none
	Message string // what went wrong
	Type    string // error type, such as server_error
	Code    string // error code
	// Event is the upstream's own in-band error event, passed on as it came where the dialect allows it.
	Event []byte
}

// ByName returns the dialect of this name, nil if there is none.
func ByName(name string) Dialect {
	switch name {
	case Chat.Name():
		return Chat
	case Responses.Name():
		return Responses
	}
	return nil
}
