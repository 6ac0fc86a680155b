// Package config holds the one typed configuration of the process: what may be set, where it was set, whether it is
// valid, and which values are in force right now.
//
// The values come in layers, a later one wins: defaults, the TOML file, environment variables, flags. Every key is
// described once, in keys.go; parsing, checking, printing, the example file and the documentation all follow that table.
package config

import "time"

// Config is one complete, valid configuration. It is never changed once loaded, so it may be shared freely.
type Config struct {
	Server    Server
	Upstream  Upstream
	Skills    Skills
	Session   Session
	Admin     Admin
	Log       Log
	EasterEgg EasterEgg
	Tracing   Tracing

	// Path is the file that was read; empty when there is none.
	Path string
	// Warnings say what is probably a mistake but not an error, one sentence each: misspelt environment variables.
	Warnings []string

	origins map[string]string // where a key was set, by "section.key"; absent for a default
	digest  digest            // of the file's bytes
}

// Server is the listener for clients.
type Server struct {
	Listen            string        // host:port
	MaxBodyBytes      int64         // of a decoded request body
	MaxHeaderBytes    int64         // of a request's headers
	ReadHeaderTimeout time.Duration // for a request's headers to arrive
	IdleTimeout       time.Duration // of a keep-alive connection between two requests
	ShutdownTimeout   time.Duration // for running streams to finish
	Heartbeat         time.Duration // between SSE comments while nothing can be shown; 0 is off
}

// Upstream is the LLM API behind the proxy.
type Upstream struct {
	BaseURL        string        // absolute http or https URL without user, query, fragment and trailing slash
	APIKey         string        // used where the client sends no credentials; empty is none
	ConnectTimeout time.Duration // for the TCP connection
	TLSTimeout     time.Duration // for the TLS handshake
	HeaderTimeout  time.Duration // from the request sent to the answer's headers
	IdleTimeout    time.Duration // of silence within an answer
	MaxAnswerBytes int64         // of a whole answer that must be held in memory
	MaxEventBytes  int64         // of one SSE event
	LatchRefusals  int           // refused projected requests that latch projection off; at least 1
	LatchTime      time.Duration // for which projection then stays off for that upstream and model
}

// Skills governs projection and the tool search.
type Skills struct {
	ToolSearchEnabled          bool          // projection is on
	ToolSearchAlwaysLoaded     []string      // names or globs of tools exposed in every round
	ToolSearchMaxResults       int           // of one search; at least 1
	PrefetchTools              []string      // names or globs of tools that the client runs before the first round
	PrefetchToolsHide          bool          // leave out a prefetched tool when the client reports success
	ToolSearchName             string        // of the virtual tool
	ToolSearchHiddenTools      []string      // names or globs of tools removed before anything else
	ToolSearchBypassModels     []string      // globs of models whose requests pass unprojected
	ToolSearchAllowHeader      bool          // "X-Tool-Search: on" turns projection on
	ToolSearchDebugHeaders     bool          // responses say what the projection did
	ToolNameDotSeparator       string        // stands for a dot in tool names towards the upstream; empty is off
	ToolSearchUnloadedCalls    string        // UnloadedReject or UnloadedPass
	ToolSearchTextCalls        bool          // calls written as plain text count
	ToolSearchMaxRounds        int           // hidden rounds per client request; at least 1
	ToolSearchTimeLimit        time.Duration // for the hidden rounds of one client request
	ToolSearchFailOpen         bool          // send a refused projected request once more as the client wrote it
	ToolSearchUsage            string        // UsageContext or UsageBilled
	ToolSearchUsageDetails     bool          // add usage.tool_search after hidden rounds
	ToolSearchResponseID       string        // ResponseIDLast or ResponseIDFirst
	ToolSearchScope            string        // ScopeAsk or ScopeConversation
	ToolSearchKeepUsed         bool          // tools called anywhere in the history stay exposed
	ToolSearchRequestIDHeaders []string      // header names that may carry a session's ID, in order
	ToolSearchMaxExposed       int           // function tools that one round may expose; at least 1
	ToolSearchMinDeferred      int           // deferred tools below which a request passes unprojected; at least 1
	ToolSearchStrict           string        // StrictOmit, StrictFalse or StrictTrue
	ToolSearchAudit            bool          // pass everything through, report what projection would have saved
}

// Session says how long and where sessions are kept.
type Session struct {
	TTL         time.Duration // idle time after which a session is dropped
	MaxSessions int           // in memory; at least 1
	MaxBytes    int64         // of all sessions in memory
	Store       string        // StoreMemory or StoreRedis
	RedisURL    string        // redis, rediss or unix URL; set when Store is StoreRedis
	Secret      string        // keys the digests; empty lets every process make its own
}

// Admin is the listener for operators.
type Admin struct {
	Listen string // host:port; empty is off
}

// Log says what is logged and how.
type Log struct {
	Level  string // "debug", "info", "warn" or "error"
	Format string // LogJSON or LogConsole
}

// EasterEgg governs the call notices.
type EasterEgg struct {
	AgentCallMessageEnabled    string // NoticesNone, NoticesAgent, NoticesTools, NoticesClean or NoticesAll
	AgentCallMessage           string // the notice of a search
	AgentCallMessageDelivery   string // DeliverLog, DeliverSSE or DeliverWebhook
	AgentCallMessageWebhookURL string // absolute http or https URL; set when delivery is DeliverWebhook
}

// Tracing says where traces go.
type Tracing struct {
	OTLPEndpoint string // absolute http or https URL; empty is off
}

// The values that keys with a fixed choice may have.
const (
	UnloadedReject = "reject" // an unexposed call gets a local result
	UnloadedPass   = "pass"   // an unexposed call goes to the client, and its tool counts as loaded

	UsageContext = "context" // input tokens are the last round's
	UsageBilled  = "billed"  // input tokens are summed over the rounds

	ResponseIDLast  = "last"  // the terminal event has the last round's id
	ResponseIDFirst = "first" // all events have the first round's id, and the proxy maps it

	ScopeAsk          = "ask"          // the loaded set ends with the ask
	ScopeConversation = "conversation" // the loaded set lives as long as the conversation

	StrictOmit  = "omit"  // the virtual tool's definition has no "strict"
	StrictFalse = "false" // it says "strict": false
	StrictTrue  = "true"  // it says "strict": true

	StoreMemory = "memory"
	StoreRedis  = "redis"

	LogJSON    = "json"
	LogConsole = "console"

	NoticesNone  = "none"
	NoticesAgent = "agent"
	NoticesTools = "tools"
	NoticesClean = "clean"
	NoticesAll   = "all"

	DeliverLog     = "log"
	DeliverSSE     = "sse"
	DeliverWebhook = "webhook"
)

type digest [32]byte
