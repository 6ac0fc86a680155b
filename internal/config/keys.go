package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/gobwas/glob"
	"github.com/redis/go-redis/v9"
)

// kind is how the value of a key is written.
type kind int

const (
	kindText kind = iota
	kindBool
	kindInteger
	kindSize
	kindDuration
	kindList
)

// key describes one key completely: parsing, checks, printing, the example file and the documentation follow it.
type key struct {
	section, name string
	kind          kind
	fallback      any // the default, of the field's type
	help          string
	field         func(*Config) any // a pointer to the field

	least   int64    // integers, sizes and durations: the smallest value allowed
	clamp   bool     // a smaller value counts as the smallest, and is no error
	choices []string // the values allowed, if only these are
	check   func(value string) error
	may     string // what check allows, in words
	secret  bool   // never shown
	address bool   // may hold a password, shown without
	token   bool   // an address whose path is as good as a password
	restart bool   // read at the start only
	flag    string // a flag of its own
}

// path is the key's full name.
func (k *key) path() string { return k.section + "." + k.name }

// env is the environment variable of the key.
func (k *key) env() string {
	if k.section == "skills" {
		return strings.ToUpper(k.name)
	}
	return strings.ToUpper(k.section + "_" + k.name)
}

const (
	mebibyte = 1 << 20
)

// keys are all keys, in the order in which they are documented.
var keys = []*key{
	{section: "server", name: "listen", fallback: "127.0.0.1:8787", restart: true, flag: "listen",
		help:  "Address for clients. The container image listens on all addresses.",
		check: checkAddress, may: "host:port", field: func(c *Config) any { return &c.Server.Listen }},
	{section: "server", name: "max_body_bytes", kind: kindSize, fallback: int64(64 * mebibyte), least: 1, restart: true,
		help:  "Largest body of an intercepted request, decoded; a larger one is refused with 413.",
		field: func(c *Config) any { return &c.Server.MaxBodyBytes }},
	{section: "server", name: "max_header_bytes", kind: kindSize, fallback: int64(mebibyte), least: 4096, restart: true,
		help:  "Most bytes of a request's headers.",
		field: func(c *Config) any { return &c.Server.MaxHeaderBytes }},
	{section: "server", name: "read_header_timeout", kind: kindDuration, fallback: 10 * time.Second, least: int64(time.Millisecond),
		restart: true, help: "Time for a request's headers to arrive.",
		field: func(c *Config) any { return &c.Server.ReadHeaderTimeout }},
	{section: "server", name: "idle_timeout", kind: kindDuration, fallback: 2 * time.Minute, least: int64(time.Millisecond),
		restart: true, help: "How long a kept connection may wait for its next request.",
		field: func(c *Config) any { return &c.Server.IdleTimeout }},
	{section: "server", name: "shutdown_timeout", kind: kindDuration, fallback: time.Minute, restart: true,
		help:  "Time for running streams to finish when the process is told to stop.",
		field: func(c *Config) any { return &c.Server.ShutdownTimeout }},
	{section: "server", name: "heartbeat", kind: kindDuration, fallback: 10 * time.Second, restart: true,
		help:  "Time between SSE comments while a hidden round keeps a stream waiting; 0 turns them off.",
		field: func(c *Config) any { return &c.Server.Heartbeat }},

	{section: "upstream", name: "base_url", fallback: "https://api.openai.com/v1", restart: true, flag: "upstream", address: true,
		help:  "The API behind the proxy. The client's /v1 stands for the path of this URL.",
		check: checkBaseURL, may: "an absolute http or https URL without user, query and fragment",
		field: func(c *Config) any { return &c.Upstream.BaseURL }},
	{section: "upstream", name: "api_key", fallback: "", secret: true, restart: true,
		help:  "Used where the client sends no credentials; empty: the client's own go through.",
		field: func(c *Config) any { return &c.Upstream.APIKey }},
	{section: "upstream", name: "connect_timeout", kind: kindDuration, fallback: 10 * time.Second, least: int64(time.Millisecond),
		restart: true, help: "Time for a connection to be made.",
		field: func(c *Config) any { return &c.Upstream.ConnectTimeout }},
	{section: "upstream", name: "tls_timeout", kind: kindDuration, fallback: 10 * time.Second, least: int64(time.Millisecond),
		restart: true, help: "Time for the TLS handshake.",
		field: func(c *Config) any { return &c.Upstream.TLSTimeout }},
	{section: "upstream", name: "header_timeout", kind: kindDuration, fallback: 10 * time.Minute, least: int64(time.Millisecond),
		restart: true, help: "Time from a request sent to the headers of its answer.",
		field: func(c *Config) any { return &c.Upstream.HeaderTimeout }},
	{section: "upstream", name: "idle_timeout", kind: kindDuration, fallback: 5 * time.Minute, least: int64(time.Millisecond),
		restart: true, help: "How long an answer may be silent before it counts as broken.",
		field: func(c *Config) any { return &c.Upstream.IdleTimeout }},
	{section: "upstream", name: "max_answer_bytes", kind: kindSize, fallback: int64(64 * mebibyte), least: 1024, restart: true,
		help:  "Largest answer that is not streamed; it takes up to four times as much memory.",
		field: func(c *Config) any { return &c.Upstream.MaxAnswerBytes }},
	{section: "upstream", name: "max_event_bytes", kind: kindSize, fallback: int64(64 * mebibyte), least: 1024, restart: true,
		help:  "Largest event of a stream.",
		field: func(c *Config) any { return &c.Upstream.MaxEventBytes }},
	{section: "upstream", name: "latch_refusals", kind: kindInteger, fallback: 3, least: 1, restart: true,
		help:  "Refused projections in a row after which projection rests for that model.",
		field: func(c *Config) any { return &c.Upstream.LatchRefusals }},
	{section: "upstream", name: "latch_time", kind: kindDuration, fallback: 10 * time.Minute, restart: true,
		help:  "How long projection then rests.",
		field: func(c *Config) any { return &c.Upstream.LatchTime }},

	{section: "skills", name: "tool_search_enabled", kind: kindBool, fallback: false, flag: "tool-search",
		help:  "Project requests. Off: every request passes through byte for byte.",
		field: func(c *Config) any { return &c.Skills.ToolSearchEnabled }},
	{section: "skills", name: "tool_search_always_loaded", kind: kindList, fallback: []string{"send_message", "end"}, check: checkGlob,
		may: "names and globs such as github_*", help: "Tools that are exposed in every round.",
		field: func(c *Config) any { return &c.Skills.ToolSearchAlwaysLoaded }},
	{section: "skills", name: "tool_search_max_results", kind: kindInteger, fallback: 5, least: 1, clamp: true,
		help:  "Most tools that one search loads; below 1 counts as 1.",
		field: func(c *Config) any { return &c.Skills.ToolSearchMaxResults }},
	{section: "skills", name: "prefetch_tools", kind: kindList, fallback: []string{}, check: checkGlob, may: "names and globs",
		help:  "Tools that the client runs before the first round.",
		field: func(c *Config) any { return &c.Skills.PrefetchTools }},
	{section: "skills", name: "prefetch_tools_hide", kind: kindBool, fallback: true,
		help:  "Leave a prefetch tool out when X-Tool-Search-Prefetched reports its success; off: always loaded.",
		field: func(c *Config) any { return &c.Skills.PrefetchToolsHide }},
	{section: "skills", name: "tool_search_name", fallback: "tool_search", check: checkToolName,
		may: "1 to 64 letters, digits, _ and -", help: "Name of the virtual tool; some providers reserve the usual one.",
		field: func(c *Config) any { return &c.Skills.ToolSearchName }},
	{section: "skills", name: "tool_search_hidden_tools", kind: kindList, fallback: []string{}, check: checkGlob, may: "names and globs",
		help:  "Tools that are removed before anything else: neither exposed nor searchable.",
		field: func(c *Config) any { return &c.Skills.ToolSearchHiddenTools }},
	{section: "skills", name: "tool_search_bypass_models", kind: kindList, fallback: []string{}, check: checkGlob, may: "names and globs",
		help:  "Models whose requests pass through unprojected, such as those of sub-agents.",
		field: func(c *Config) any { return &c.Skills.ToolSearchBypassModels }},
	{section: "skills", name: "tool_search_allow_header", kind: kindBool, fallback: false,
		help:  "Let \"X-Tool-Search: on\" turn projection on for one request.",
		field: func(c *Config) any { return &c.Skills.ToolSearchAllowHeader }},
	{section: "skills", name: "tool_search_debug_headers", kind: kindBool, fallback: false,
		help:  "Tell in response headers what the projection did.",
		field: func(c *Config) any { return &c.Skills.ToolSearchDebugHeaders }},
	{section: "skills", name: "tool_name_dot_separator", fallback: "", check: checkSeparator,
		may:   "empty, or letters, digits, _ and - with at least one _ or -",
		help:  "Stands for the dots of tool names towards the upstream, such as \"-_-\"; empty leaves them.",
		field: func(c *Config) any { return &c.Skills.ToolNameDotSeparator }},
	{section: "skills", name: "tool_search_unloaded_calls", fallback: UnloadedReject, choices: []string{UnloadedReject, UnloadedPass},
		help:  "A call of a tool that is not exposed: answer it locally, or hand it to the client.",
		field: func(c *Config) any { return &c.Skills.ToolSearchUnloadedCalls }},
	{section: "skills", name: "tool_search_text_calls", kind: kindBool, fallback: false,
		help:  "Recognise tool calls that a model writes as plain text.",
		field: func(c *Config) any { return &c.Skills.ToolSearchTextCalls }},
	{section: "skills", name: "tool_search_max_rounds", kind: kindInteger, fallback: 8, least: 1,
		help:  "Most hidden rounds per client request.",
		field: func(c *Config) any { return &c.Skills.ToolSearchMaxRounds }},
	{section: "skills", name: "tool_search_time_limit", kind: kindDuration, fallback: 2 * time.Minute,
		help:  "Time after which no further hidden round begins; 0 is no limit.",
		field: func(c *Config) any { return &c.Skills.ToolSearchTimeLimit }},
	{section: "skills", name: "tool_search_fail_open", kind: kindBool, fallback: true,
		help:  "Send a projected request that is refused with 400, 404 or 422 once more as the client wrote it.",
		field: func(c *Config) any { return &c.Skills.ToolSearchFailOpen }},
	{section: "skills", name: "tool_search_usage", fallback: UsageContext, choices: []string{UsageContext, UsageBilled},
		help:  "Input tokens that the client sees: the last round's, or the sum of all rounds.",
		field: func(c *Config) any { return &c.Skills.ToolSearchUsage }},
	{section: "skills", name: "tool_search_usage_details", kind: kindBool, fallback: true,
		help:  "Add usage.tool_search after hidden rounds.",
		field: func(c *Config) any { return &c.Skills.ToolSearchUsageDetails }},
	{section: "skills", name: "tool_search_response_id", fallback: ResponseIDLast, choices: []string{ResponseIDLast, ResponseIDFirst},
		help:  "The id in the last event of a streamed response whose first events had to show an earlier round's: the last round's, or the same.",
		field: func(c *Config) any { return &c.Skills.ToolSearchResponseID }},
	{section: "skills", name: "tool_search_scope", fallback: ScopeAsk, choices: []string{ScopeAsk, ScopeConversation},
		help:  "How long a loaded tool stays loaded.",
		field: func(c *Config) any { return &c.Skills.ToolSearchScope }},
	{section: "skills", name: "tool_search_keep_used", kind: kindBool, fallback: false,
		help:  "Keep every tool exposed that the request's history calls.",
		field: func(c *Config) any { return &c.Skills.ToolSearchKeepUsed }},
	{section: "skills", name: "tool_search_request_id_headers", kind: kindList, fallback: []string{"X-Request-ID"}, check: checkHeader,
		may: "header names", help: "Headers that may carry a session's ID, in this order.",
		field: func(c *Config) any { return &c.Skills.ToolSearchRequestIDHeaders }},
	{section: "skills", name: "tool_search_max_exposed", kind: kindInteger, fallback: 128, least: 1,
		help:  "Most function tools that one round exposes; the upstream may refuse more.",
		field: func(c *Config) any { return &c.Skills.ToolSearchMaxExposed }},
	{section: "skills", name: "tool_search_min_deferred", kind: kindInteger, fallback: 1, least: 1,
		help:  "Fewer deferred tools than this, and the request passes through.",
		field: func(c *Config) any { return &c.Skills.ToolSearchMinDeferred }},
	{section: "skills", name: "tool_search_strict", fallback: StrictOmit, choices: []string{StrictOmit, StrictFalse, StrictTrue},
		help:  "The \"strict\" member of the virtual tool.",
		field: func(c *Config) any { return &c.Skills.ToolSearchStrict }},
	{section: "skills", name: "tool_search_audit", kind: kindBool, fallback: false,
		help:  "Pass everything through untouched and report what projection would have saved.",
		field: func(c *Config) any { return &c.Skills.ToolSearchAudit }},

	{section: "session", name: "ttl", kind: kindDuration, fallback: time.Hour, least: int64(time.Second), restart: true,
		help:  "Idle time after which a session is dropped.",
		field: func(c *Config) any { return &c.Session.TTL }},
	{section: "session", name: "max_sessions", kind: kindInteger, fallback: 100000, least: 1, restart: true,
		help:  "Most sessions in memory.",
		field: func(c *Config) any { return &c.Session.MaxSessions }},
	{section: "session", name: "max_bytes", kind: kindSize, fallback: int64(256 * mebibyte), least: 1, restart: true,
		help:  "Most bytes of all sessions in memory.",
		field: func(c *Config) any { return &c.Session.MaxBytes }},
	{section: "session", name: "store", fallback: StoreMemory, choices: []string{StoreMemory, StoreRedis}, restart: true,
		help:  "Where sessions are kept; redis lets several replicas share them.",
		field: func(c *Config) any { return &c.Session.Store }},
	{section: "session", name: "redis_url", fallback: "", check: checkRedisURL, address: true, restart: true,
		may:   "a redis, rediss or unix URL",
		help:  "Redis or Valkey, such as redis://:password@host:6379/0.",
		field: func(c *Config) any { return &c.Session.RedisURL }},
	{section: "session", name: "secret", fallback: "", secret: true, restart: true,
		help:  "Keys the digests of sessions; empty: each process makes its own, replicas on one Redis share one.",
		field: func(c *Config) any { return &c.Session.Secret }},

	{section: "admin", name: "listen", fallback: "127.0.0.1:8788", check: checkOptionalAddress, may: "host:port, or empty to turn it off",
		restart: true, flag: "admin-listen", help: "Address for health, metrics and the status page; empty turns it off.",
		field: func(c *Config) any { return &c.Admin.Listen }},

	{section: "log", name: "level", fallback: "info", choices: []string{"debug", "info", "warn", "error"}, flag: "log-level",
		help:  "Least level that is logged.",
		field: func(c *Config) any { return &c.Log.Level }},
	{section: "log", name: "format", fallback: LogJSON, choices: []string{LogJSON, LogConsole}, restart: true, flag: "log-format",
		help:  "One JSON object a line, or text for people.",
		field: func(c *Config) any { return &c.Log.Format }},

	{section: "easter_egg", name: "agent_call_message_enabled", fallback: NoticesNone, restart: true,
		choices: []string{NoticesNone, NoticesAgent, NoticesTools, NoticesClean, NoticesAll},
		help:    "Which calls give a notice.",
		field:   func(c *Config) any { return &c.EasterEgg.AgentCallMessageEnabled }},
	{section: "easter_egg", name: "agent_call_message", fallback: "tool_search，我调用你了，我要调用你了！", restart: true,
		help:  "The notice of a search.",
		field: func(c *Config) any { return &c.EasterEgg.AgentCallMessage }},
	{section: "easter_egg", name: "agent_call_message_delivery", fallback: DeliverLog, restart: true,
		choices: []string{DeliverLog, DeliverSSE, DeliverWebhook},
		help:    "Where notices go: the log, a comment in the running stream, or a webhook.",
		field:   func(c *Config) any { return &c.EasterEgg.AgentCallMessageDelivery }},
	{section: "easter_egg", name: "agent_call_message_webhook_url", fallback: "", check: checkWebURL, restart: true, address: true, token: true,
		may: "an absolute http or https URL", help: "Where notices are posted.",
		field: func(c *Config) any { return &c.EasterEgg.AgentCallMessageWebhookURL }},

	{section: "tracing", name: "otlp_endpoint", fallback: "", check: checkWebURL, restart: true, address: true,
		may: "an absolute http or https URL", help: "Where OpenTelemetry traces go (OTLP over HTTP); empty turns them off.",
		field: func(c *Config) any { return &c.Tracing.OTLPEndpoint }},
}

func checkAddress(value string) error {
	host, port, err := net.SplitHostPort(value)
	if err != nil {
		return err
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return fmt.Errorf("%q is no port", port)
	}
	if strings.ContainsAny(host, "/ ") {
		return fmt.Errorf("%q is no host", host)
	}
	return nil
}

func checkOptionalAddress(value string) error {
	if value == "" {
		return nil
	}
	return checkAddress(value)
}

func checkBaseURL(value string) error {
	u, err := url.Parse(value)
	switch {
	case err != nil:
		return fmt.Errorf("it cannot be parsed")
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("its scheme is %q", u.Scheme)
	case u.Hostname() == "":
		return fmt.Errorf("it names no host")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("it holds a user, a query or a fragment")
	}
	return nil
}

func checkWebURL(value string) error {
	if value == "" {
		return nil
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return fmt.Errorf("it is no such URL")
	}
	return nil
}

func checkRedisURL(value string) error {
	if value == "" {
		return nil
	}
	if _, err := redis.ParseURL(value); err != nil {
		return errors.New("its scheme, its database or an option of it is not known") // the reason may hold the password
	}
	return nil
}

func checkGlob(value string) error {
	if value == "" {
		return fmt.Errorf("a name is empty")
	}
	if _, err := glob.Compile(value); err != nil {
		return fmt.Errorf("the glob %q does not compile: %w", value, err)
	}
	return nil
}

func isNameByte(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}

func checkToolName(value string) error {
	if value == "" || len(value) > 64 || strings.ContainsFunc(value, func(r rune) bool { return !isNameByte(r) }) {
		return fmt.Errorf("%q is no name of a tool", value)
	}
	return nil
}

func checkSeparator(value string) error {
	if value == "" {
		return nil
	}
	if len(value) > 16 || strings.ContainsFunc(value, func(r rune) bool { return !isNameByte(r) }) || !strings.ContainsAny(value, "_-") {
		return fmt.Errorf("%q could not be told from a name", value)
	}
	return nil
}

func checkHeader(value string) error {
	if value == "" || strings.ContainsFunc(value, func(r rune) bool { return !isNameByte(r) }) {
		return fmt.Errorf("%q is no header name", value)
	}
	return nil
}
