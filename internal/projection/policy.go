package projection

import (
	"strings"
	"time"

	"github.com/gobwas/glob"
)

// Policy are the configuration values that govern projection. It is frozen for an ask, so it can be encoded as JSON.
type Policy struct {
	Enabled         bool          `json:"enabled,omitempty"`
	AlwaysLoaded    []string      `json:"always_loaded,omitempty"` // names or globs
	Hidden          []string      `json:"hidden,omitempty"`        // names or globs that the operator takes away
	Prefetch        []string      `json:"prefetch,omitempty"`      // names or globs
	PrefetchHide    bool          `json:"prefetch_hide,omitempty"` // leave out what the client has prefetched
	BypassModels    []string      `json:"bypass_models,omitempty"` // globs
	VirtualName     string        `json:"virtual_name"`
	Strict          string        `json:"strict"` // "omit", "false" or "true", on the virtual tool
	MaxResults      int           `json:"max_results"`
	MaxRounds       int           `json:"max_rounds"`  // hidden rounds per client request
	MaxExposed      int           `json:"max_exposed"` // function tools that one round may expose
	MinDeferred     int           `json:"min_deferred"`
	TimeLimit       time.Duration `json:"time_limit"`
	PassUnloaded    bool          `json:"pass_unloaded,omitempty"` // hand unexposed calls to the client
	TextCalls       bool          `json:"text_calls,omitempty"`
	FailOpen        bool          `json:"fail_open,omitempty"`
	BilledUsage     bool          `json:"billed_usage,omitempty"`
	UsageDetails    bool          `json:"usage_details,omitempty"`
	KeepResponseID  bool          `json:"keep_response_id,omitempty"` // one id in all events of a streamed response
	Conversation    bool          `json:"conversation,omitempty"`     // the loaded set lives as long as the conversation
	KeepUsed        bool          `json:"keep_used,omitempty"`
	DotSeparator    string        `json:"dot_separator,omitempty"`
	DebugHeaders    bool          `json:"debug_headers,omitempty"`
	Audit           bool          `json:"audit,omitempty"`        // pass everything through, report what could be saved
	AllowHeader     bool          `json:"allow_header,omitempty"` // X-Tool-Search: on counts
	RequestIDHeader []string      `json:"request_id_header,omitempty"`
}

// Patterns matches names against a list of exact names and globs.
type Patterns struct {
	exact map[string]bool
	globs []*glob.Pattern
}

// NewPatterns compiles a list. A glob that does not compile counts as an exact name; the configuration refuses it earlier.
func NewPatterns(list []string) Patterns {
	p := Patterns{exact: make(map[string]bool, len(list))}
	for _, name := range list {
		if strings.ContainsAny(name, "*?[{\\") {
			if g, err := glob.Compile(name); err == nil {
				p.globs = append(p.globs, g)
				continue
			}
		}
		p.exact[name] = true
	}
	return p
}

// Match reports whether name is in the list.
func (p Patterns) Match(name string) bool {
	if p.exact[name] {
		return true
	}
	for _, g := range p.globs {
		if g.Match(name) {
			return true
		}
	}
	return false
}
