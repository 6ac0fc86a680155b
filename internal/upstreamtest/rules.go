package upstreamtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"

	"github.com/tidwall/gjson"
)

// Rules are the checks that only some servers make. The zero value checks what every server of the dialect checks.
type Rules struct {
	// LeadingSystem: at most one system or developer message, at the beginning (strict chat templates).
	LeadingSystem bool
	// Names: tool names and the names of calls match [a-zA-Z0-9_-]{1,64}.
	Names bool
	// MaxTools bounds the number of tools; 0 is no bound, 128 is OpenAI's.
	MaxTools int
	// DeclaredCalls: every function called in the history is declared in tools.
	DeclaredCalls bool
	// ReasoningContent: an assistant message whose calls this server made with a reasoning_content (or reasoning) must
	// come back with the same text (thinking models that refuse a history without it).
	ReasoningContent bool
	// Except switches rules off by name.
	Except []string
}

var namePattern = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// judge collects the rules that one request breaks.
type judge struct {
	rules   Rules
	request int
	found   []Violation
}

func (j *judge) refuse(rule, param, format string, arguments ...any) {
	j.refuseWith(http.StatusBadRequest, rule, "", param, format, arguments...)
}

func (j *judge) refuseWith(status int, rule, code, param, format string, arguments ...any) {
	if slices.Contains(j.rules.Except, rule) {
		return
	}
	j.found = append(j.found, Violation{
		Request: j.request, Rule: rule, Message: fmt.Sprintf(format, arguments...), Param: param, Code: code, Status: status,
	})
}

// document checks what must hold before anything can be read: one JSON object, no key twice.
func (j *judge) document(body []byte) bool {
	if !json.Valid(body) || gjson.ParseBytes(body).Type != gjson.JSON || !gjson.ParseBytes(body).IsObject() {
		j.refuse("json", "", "We could not parse the JSON body of your request.")
		return false
	}
	seen := map[string]bool{}
	gjson.ParseBytes(body).ForEach(func(key, _ gjson.Result) bool {
		if seen[key.String()] {
			j.refuse("duplicate-key", key.String(), "Duplicate key %q in the request body.", key.String())
		}
		seen[key.String()] = true
		return true
	})
	return true
}

func present(value gjson.Result) bool { return value.Exists() && value.Type != gjson.Null }

// common checks the members that both dialects share.
func (j *judge) common(body gjson.Result) {
	if body.Get("model").Type != gjson.String || body.Get("model").String() == "" {
		j.refuse("model", "model", "you must provide a model parameter")
	}
	if stream := body.Get("stream"); present(stream) && !stream.IsBool() {
		j.refuse("stream", "stream", "Invalid type for 'stream': expected a boolean.")
	}
	if present(body.Get("stream_options")) && !body.Get("stream").Bool() {
		j.refuse("stream-options", "stream_options",
			"The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
}

// toolSet is what tools declares: names by kind, and the kinds of hosted tools.
type toolSet struct {
	functions  map[string]bool
	customs    map[string]bool
	namespaces map[string]bool
	kinds      map[string]bool
	servers    map[string]bool // MCP labels
	count      int
}

func newToolSet() *toolSet {
	return &toolSet{
		functions: map[string]bool{}, customs: map[string]bool{}, namespaces: map[string]bool{},
		kinds: map[string]bool{}, servers: map[string]bool{},
	}
}

// name checks one tool name and its uniqueness among the names it must differ from.
func (j *judge) name(param string, name gjson.Result, taken ...map[string]bool) {
	if name.Type != gjson.String || name.String() == "" {
		j.refuse("tool-name", param, "Missing required parameter: '%s'.", param)
		return
	}
	if j.rules.Names && !namePattern.MatchString(name.String()) {
		j.refuse("tool-name", param, "Invalid '%s': string %q does not match pattern '^[a-zA-Z0-9_-]{1,64}$'.",
			param, name.String())
	}
	for _, names := range taken {
		if names[name.String()] {
			j.refuse("tool-name-twice", param, "Tool names must be unique: %q.", name.String())
			return
		}
	}
	taken[0][name.String()] = true
}

// arguments checks a call of the history: a string that holds JSON.
func (j *judge) arguments(param string, arguments gjson.Result) {
	if arguments.Type != gjson.String {
		j.refuse("arguments", param, "Invalid type for '%s': expected a string.", param)
	} else if !json.Valid([]byte(arguments.String())) {
		j.refuse("arguments", param, "Invalid '%s': the arguments of a call must be valid JSON.", param)
	}
}

func (j *judge) callID(param string, id gjson.Result) {
	if id.Type != gjson.String || id.String() == "" {
		j.refuse("call-id", param, "Missing required parameter: '%s'.", param)
	} else if len(id.String()) > 64 {
		j.refuse("call-id", param, "Invalid '%s': string too long. Expected a string with maximum length 64.", param)
	}
}
