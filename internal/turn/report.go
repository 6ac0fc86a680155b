package turn

import (
	"sync/atomic"
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

	ClientTools   *Counted // the client's tools array, nil if there is none
	Directory     *Counted // nil if nothing is deferred
	BytesReceived int      // of the client's body
}

// Counted are bytes with room for the number of their tokens. The engine keeps one for each array that it remembers, so
// that whoever counts does so once, and not once a request. Its bytes do not change.
type Counted struct {
	Raw    []byte
	tokens atomic.Int64
}

// Tokens returns the number that SetTokens has set, 0 if none.
func (c *Counted) Tokens() int { return int(c.tokens.Load()) }

// SetTokens keeps the number of tokens.
func (c *Counted) SetTokens(n int) { c.tokens.Store(int64(n)) }

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
	Sent       int      // bytes of the request's body
	Tools      *Counted // the tools array that was sent
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
