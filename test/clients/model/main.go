// Command model is the upstream of the client tests: a scripted model behind the strict rules of the real API. It prints its
// base URL, plays until it is told to stop, and fails if a request broke a rule.
//
// What it does, the user's message says: "[[need:a,b]]" makes it call these tools, and search for those that it cannot see;
// "[[mixed]]" makes it search and call in one turn, "[[speak]]" say a word before it searches. When it has its results it answers "done: " with them.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/tidwall/gjson"

	"tool-search-proxy/internal/upstreamtest"
)

func main() {
	server, err := upstreamtest.NewServer(upstreamtest.Script{Respond: respond, StreamChunk: upstreamtest.ByEvent})
	if err != nil {
		fmt.Fprintln(os.Stderr, "model:", err)
		os.Exit(1)
	}
	fmt.Println(server.URL)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	<-stop
	for i, request := range server.Requests() {
		if os.Getenv("MODEL_VERBOSE") != "" {
			fmt.Fprintf(os.Stderr, "%d %s %d bytes, %d tools\n", i+1, request.Path, len(request.Body), gjson.GetBytes(request.Body, "tools.#").Int())
		}
	}
	violations := server.Violations()
	server.Close()
	for _, v := range violations {
		fmt.Fprintln(os.Stderr, "model: a request broke a rule:", v)
	}
	if len(violations) > 0 {
		os.Exit(1)
	}
}

var (
	needed = regexp.MustCompile(`\[\[need:([^\]]+)\]\]`)
	ids    atomic.Int64
)

// seen is what a request shows of the conversation since the last user message.
type seen struct {
	user     string
	searched bool
	called   map[string]string // call id to name
	results  []string
	done     map[string]bool // names that have a result
}

func (s *seen) read(request gjson.Result) {
	start := func(text string) { *s = seen{user: text, called: map[string]string{}, done: map[string]bool{}} }
	start("")
	call := func(id, name string) {
		s.called[id] = name
		s.searched = s.searched || name == "tool_search"
	}
	result := func(id, output string) {
		name := s.called[id]
		if name == "tool_search" {
			return
		}
		s.done[name] = true
		s.results = append(s.results, output)
	}
	request.Get("messages").ForEach(func(_, m gjson.Result) bool {
		switch m.Get("role").String() {
		case "user":
			start(text(m.Get("content")))
		case "assistant":
			m.Get("tool_calls").ForEach(func(_, c gjson.Result) bool {
				call(c.Get("id").String(), c.Get("function.name").String())
				return true
			})
		case "tool":
			result(m.Get("tool_call_id").String(), text(m.Get("content")))
		}
		return true
	})
	input := request.Get("input")
	if input.Type == gjson.String {
		start(input.String())
	}
	input.ForEach(func(_, item gjson.Result) bool {
		switch item.Get("type").String() {
		case "function_call":
			call(item.Get("call_id").String(), canonical(item.Get("namespace").String(), item.Get("name").String()))
		case "function_call_output":
			result(item.Get("call_id").String(), text(item.Get("output")))
		default:
			if item.Get("role").String() == "user" {
				start(text(item.Get("content")))
			}
		}
		return true
	})
}

func text(content gjson.Result) string {
	if content.Type == gjson.String {
		return content.String()
	}
	var parts []string
	content.ForEach(func(_, part gjson.Result) bool {
		parts = append(parts, part.Get("text").String())
		return true
	})
	return strings.Join(parts, " ")
}

func canonical(group, name string) string {
	if group == "" {
		return name
	}
	return group + "." + name
}

// visible returns the function tools of a request by canonical name, with the group of each.
func visible(request gjson.Result) map[string]string {
	tools := map[string]string{}
	request.Get("tools").ForEach(func(_, tool gjson.Result) bool {
		switch {
		case tool.Get("function.name").Exists():
			tools[tool.Get("function.name").String()] = ""
		case tool.Get("type").String() == "namespace":
			group := tool.Get("name").String()
			tool.Get("tools.#.name").ForEach(func(_, name gjson.Result) bool {
				tools[canonical(group, name.String())] = group
				return true
			})
		case tool.Get("type").String() == "function":
			tools[tool.Get("name").String()] = ""
		}
		return true
	})
	return tools
}

func respond(r upstreamtest.Request) upstreamtest.Answer {
	request := gjson.ParseBytes(r.Body)
	var s seen
	s.read(request)
	tools := visible(request)
	thought := "" // Responses show no reasoning unless they are asked for a summary
	if request.Get("messages").Exists() {
		thought = "I think about it."
	}
	turn := []upstreamtest.TurnOption{upstreamtest.Reasoning(thought)}
	var missing []string
	calls := 0
	if match := needed.FindStringSubmatch(s.user); match != nil {
		for name := range strings.SplitSeq(match[1], ",") {
			group, ok := tools[name]
			switch {
			case s.done[name]:
			case ok:
				turn = append(turn, callOf(group, name))
				calls++
			default:
				missing = append(missing, name)
			}
		}
	}
	if _, ok := tools["tool_search"]; ok && len(missing) > 0 && !s.searched && (calls == 0 || strings.Contains(s.user, "[[mixed]]")) {
		if strings.Contains(s.user, "[[speak]]") {
			turn = append(turn, upstreamtest.Text("Let me look. "))
		}
		turn = append(turn, upstreamtest.Call(newID(), "tool_search", `{"query":"select:`+strings.Join(missing, ",")+`"}`))
		return upstreamtest.Reply(turn...)
	}
	if calls > 0 {
		return upstreamtest.Reply(turn...)
	}
	if len(missing) > 0 {
		return upstreamtest.Reply(upstreamtest.Text("missing: " + strings.Join(missing, ", ")))
	}
	return upstreamtest.Reply(append(turn, upstreamtest.Text("done: "+strings.Join(s.results, " ")))...)
}

func newID() string { return fmt.Sprintf("call_%d", ids.Add(1)) }

func callOf(group, name string) upstreamtest.TurnOption {
	if group == "" {
		return upstreamtest.Call(newID(), name, `{}`)
	}
	id := newID()
	return upstreamtest.Item(fmt.Sprintf(`{"type":"function_call","id":"fc_%s","call_id":%q,"namespace":%q,"name":%q,"arguments":"{}","status":"completed"}`,
		id, id, group, strings.TrimPrefix(name, group+".")))
}
