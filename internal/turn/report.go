package turn

import (
	"time"

	"tool-search-proxy/internal/openai"
)

// Report says what became of one request, for the log, the metrics and the status page. It holds no message content.
type Report struct {
	Dialect    string
	Model      string
	Stream     bool
	Reason     openai.Reason // why the request passed through; "" if it was projected
	Start, End time.Time
	Status     int
	ClientGone bool
	// TraceParent is the trace that the client says its request belongs to (W3C Trace Context).
	TraceParent string

	SessionID   string
	NewAsk      bool
	StoreFailed bool // the session store could not be reached

	Tools, Deferred int
	Loaded          []string // deferred tools visible at the end
	Called          []string // tools that the client was asked to call
	Unloaded        int      // tools deferred again for want of room
	Searches        []Search
	Rejected        int // calls of tools that were not exposed
	Rounds          []RoundReport
	BoundReached    bool
	FailOpen        bool // the projected request was refused, and sent again as the client wrote it
	Failed          string
	Audit           *Audit // what projection would have done, where requests are only looked at

	// ClientTools is the client's tools array, Directory the text that names what is deferred. Neither may be kept longer
	// than the request: they may be part of its body.
	ClientTools   []byte
	Directory     string
	BytesReceived int // of the client's body
}

// Search is one answered call of the virtual tool.
type Search struct {
	Round         int // of the request, from 0
	Loaded        []string
	AlreadyLoaded int
	Empty         bool
	Truncated     bool
	Malformed     bool
}

// RoundReport is one upstream model call.
type RoundReport struct {
	Hidden     bool
	Start      time.Time
	Status     int
	Sent       int // bytes of the request's body
	Tools      int // bytes of the tools array that was sent; 0 if it was the client's
	Duration   time.Duration
	FirstEvent time.Duration
	Tokens     openai.Tokens
}

// NoticeKind says what a notice tells of.
type NoticeKind string

// Kinds of notices.
const (
	NoticeSearch NoticeKind = "tool_search"
	NoticeTarget NoticeKind = "target"
)

// Notice tells of calls in one round.
type Notice struct {
	Kind   NoticeKind
	Tool   string
	Count  int
	Silent bool // the client asked for no notices
}
