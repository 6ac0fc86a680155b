package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"tool-search-proxy/internal/openai"
)

// model stands in for a language model: a script with three moves. It searches for what it lacks, calls what it has
// found, and tells of the result. It reads only what a model would read, so what it can do shows what it was given.
type model struct {
	query, tool, arguments, answer string

	mu    sync.Mutex
	calls []modelCall
}

// modelCall is one round as the model saw it.
type modelCall struct {
	body  []byte
	moved string // what it did
}

// round is what the script reads in a request.
type round struct {
	names     []string
	directory bool
	last      gjson.Result
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || !gjson.ValidBytes(body) {
		http.Error(w, "the demo model wants a JSON body", http.StatusBadRequest)
		return
	}
	request := gjson.ParseBytes(body)
	seen := round{last: request.Get("messages|@reverse|0")}
	request.Get("tools.#.function.name").ForEach(func(_, name gjson.Result) bool {
		seen.names = append(seen.names, name.String())
		return true
	})
	seen.directory = strings.Contains(request.Get("messages.0.content").String(), "<available_deferred_tools>")
	text, name, arguments := m.move(seen)
	moved := "answered: " + text
	if name != "" {
		moved = "called " + name + " " + arguments
	}
	m.mu.Lock()
	m.calls = append(m.calls, modelCall{body, moved})
	number := len(m.calls)
	m.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range answer(number, text, name, arguments) {
		fmt.Fprintf(w, "data: %s\n\n", event)
	}
}

// move decides what the model does next: words, or a call.
func (m *model) move(seen round) (text, name, arguments string) {
	for _, exposed := range seen.names {
		if exposed != m.tool {
			continue
		}
		if seen.last.Get("role").String() == "tool" && !strings.Contains(seen.last.Get("content").String(), `"loaded"`) {
			return m.answer, "", ""
		}
		return "", m.tool, m.arguments
	}
	if seen.directory {
		return "", "tool_search", `{"query":` + string(openai.AppendString(nil, m.query)) + `}`
	}
	return "I have no tool for this.", "", ""
}

// answer returns the events of a streamed answer.
func answer(number int, text, name, arguments string) []string {
	chunk := func(delta, finish string) string {
		return fmt.Sprintf(`{"id":"chatcmpl-demo-%d","object":"chat.completion.chunk","created":1,"model":"demo",`+
			`"choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`, number, delta, finish)
	}
	quoted := func(s string) string { return string(openai.AppendString(nil, s)) }
	if name != "" {
		call := fmt.Sprintf(`{"role":"assistant","tool_calls":[{"index":0,"id":"call_demo_%d","type":"function",`+
			`"function":{"name":%s,"arguments":%s}}]}`, number, quoted(name), quoted(arguments))
		return []string{chunk(call, "null"), chunk(`{}`, `"tool_calls"`), "[DONE]"}
	}
	events := []string{chunk(`{"role":"assistant","content":""}`, "null")}
	for word := range strings.SplitAfterSeq(text, " ") {
		events = append(events, chunk(`{"content":`+quoted(word)+`}`, "null"))
	}
	return append(events, chunk(`{}`, `"stop"`), "[DONE]")
}
