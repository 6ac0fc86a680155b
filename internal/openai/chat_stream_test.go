package openai

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tidwall/gjson"
)

// chatRequest is a request with one exposed and two deferred tools.
const chatRequest = `{"model":"m","stream":true,"stream_options":{"include_usage":true},` +
	`"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"weather?"}],"tools":[` +
	`{"type":"function","function":{"name":"read_file","parameters":{"type":"object"}}},` +
	`{"type":"function","function":{"name":"get_weather","parameters":{"type":"object"}}},` +
	`{"type":"function","function":{"name":"send_mail","parameters":{"type":"object"}}}]}`

// deferredNames says what called names are in the tests of Chat: tool_search is virtual, the names listed are deferred.
type deferredNames []string

func (n deferredNames) Classify(name string) Class {
	name = strings.TrimPrefix(name, "functions.")
	if name == "tool_search" {
		return Virtual
	}
	for _, hidden := range n {
		if hidden == name {
			return Unexposed
		}
	}
	return Visible
}

func (n deferredNames) MayBeHidden(prefix string) bool {
	for _, hidden := range append([]string{"tool_search"}, n...) {
		if len(prefix) < len(hidden) && strings.HasPrefix(hidden, prefix) {
			return n.Classify(prefix) == Visible
		}
	}
	return false
}

var weatherAndMail = deferredNames{"get_weather", "send_mail"}

// identity opens a chunk of a round.
func identity(id string) string {
	return `{"id":"` + id + `","object":"chat.completion.chunk","created":1` + id[len(id)-1:] + `,"model":"m-` + id +
		`",`
}

// chunks writes one round: a text that begins with "{" is a delta, "=" begins a finish reason, "#" a usage chunk of so
// many tokens, "." the end, "!" a whole event, and everything else is a delta of content.
func chunks(id string, parts ...string) []byte {
	var out []byte
	for _, p := range parts {
		data := ""
		switch p[0] {
		case '{':
			data = identity(id) + `"choices":[{"index":0,"delta":` + p + `,"finish_reason":null}]}`
		case '=':
			data = identity(id) + `"choices":[{"index":0,"delta":{},"finish_reason":"` + p[1:] + `"}]}`
		case '#':
			data = identity(id) + `"choices":[],"usage":` + usageOf(p[1:]) + `}`
		case '.':
			data = "[DONE]"
		case '!':
			data = p[1:]
		default:
			data = identity(id) + `"choices":[{"index":0,"delta":{"content":` + string(AppendString(nil, p)) +
				`},"finish_reason":null}]}`
		}
		out = appendEvent(out, "", []byte(data))
	}
	return out
}

func usageOf(n string) string {
	return `{"prompt_tokens":` + n + `0,"completion_tokens":` + n + `,"total_tokens":` + n + n + `}`
}

// whole call in one delta
func callDelta(index, id, name, arguments string) string {
	members := []string{`"type":"function"`, `"function":{"name":"` + name + `","arguments":` +
		string(AppendString(nil, arguments)) + `}`}
	if id != "" {
		members = append([]string{`"id":"` + id + `"`}, members...)
	}
	if index != "" {
		members = append([]string{`"index":` + index}, members...)
	}
	return `{"tool_calls":[{` + strings.Join(members, ",") + `}]}`
}

func searchDelta(query string) string {
	return callDelta("0", "s1", "tool_search", `{"query":"`+query+`"}`)
}

// playedChat is what came of the rounds of one answer.
type playedChat struct {
	client    []byte
	rounds    []Round
	results   [][]Result
	last      Round
	body      []byte   // of the request after the hidden rounds
	perRound  []string // what the client got in each round
	truncated bool
}

// playChat feeds rounds to an answer as the engine does; hidden calls are answered with "R" and their number.
func playChat(t testing.TB, v *View, o AnswerOptions, names Names, oneByte bool, rounds ...[]byte) playedChat {
	t.Helper()
	a := Chat.NewAnswer(v, o)
	var p playedChat
	streamed := !bytes.HasPrefix(rounds[0], []byte("{"))
	for n, raw := range rounds {
		a.Begin(names)
		from := len(p.client)
		if !streamed {
			a.Whole(raw)
		} else {
			var source io.Reader = bytes.NewReader(raw)
			if oneByte {
				source = iotest.OneByteReader(source)
			}
			reader := NewEventReader(source, 1<<20)
			for a.Progress() != Over {
				ev, err := reader.Next()
				if err != nil {
					break
				}
				p.client = a.Event(p.client, ev)
			}
		}
		p.perRound = append(p.perRound, string(p.client[from:]))
		p.last = a.End()
		hidden, visible := p.last.Hidden()
		if p.last.Failure != nil {
			p.client = a.Fail(p.client, *p.last.Failure)
			return p
		}
		if !p.last.Complete {
			p.truncated = true
			p.client = a.Fail(p.client, Failure{Message: "cut", Type: "server_error", Code: "server_error"})
			return p
		}
		ends := n == len(rounds)-1
		if len(hidden) > 0 && !p.last.Stopped && !(ends && visible == 0) {
			var results []Result
			for i, c := range hidden {
				results = append(results, Result{c.ID, "R" + strconv.Itoa(n+1) + strconv.Itoa(i+1)})
			}
			p.results = append(p.results, results)
		}
		if len(hidden) == 0 || visible > 0 || p.last.Stopped || ends {
			if !ends {
				t.Fatalf("round %d of %d ends the answer", n+1, len(rounds))
			}
			break
		}
		p.rounds = append(p.rounds, p.last)
		p.body = Chat.Compose(v, Projection{Rounds: p.rounds, Results: p.results})
		if !gjson.ValidBytes(p.body) {
			t.Fatalf("the next request is no JSON: %s", p.body)
		}
	}
	if streamed {
		p.client = a.Finish(p.client)
	} else {
		p.client = a.Body()
	}
	return p
}

func chatView(t testing.TB, body string) *View {
	t.Helper()
	v, err := Chat.View([]byte(body), nil)
	if err != nil {
		t.Fatal(err)
	}
	if v.Passthrough != "" {
		t.Fatalf("the request would pass through: %s", v.Passthrough)
	}
	return v
}

// appended returns the messages that the request after the hidden rounds holds beyond the client's.
func (p playedChat) appended(v *View) string {
	var out []string
	for i, m := range gjson.GetBytes(p.body, "messages").Array() {
		if i >= len(v.Items) {
			out = append(out, m.Raw)
		}
	}
	return strings.Join(out, "\n")
}

// chatClient is what a client makes of a stream: the strictest of what SDKs do.
type chatClient struct {
	id, model, content, reasoning, finish, usage, failure string
	roles, done                                           int
	calls                                                 []clientCall
}

type clientCall struct{ id, name, arguments string }

func (c chatClient) callList() string {
	var out []string
	for _, call := range c.calls {
		out = append(out, call.id+" "+call.name+" "+call.arguments)
	}
	return strings.Join(out, "\n")
}

// readChat reads a stream and holds it to one id, one created, one role, dense call indexes in rising order, nothing of the
// choice behind the finish reason, the usage last, and one [DONE] or one error as the end.
func readChat(t testing.TB, stream []byte) chatClient {
	t.Helper()
	var c chatClient
	createdAt := ""
	reader := NewEventReader(bytes.NewReader(stream), 1<<24)
	for {
		ev, err := reader.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if ev.Data == nil {
			continue
		}
		if c.done > 0 || c.failure != "" {
			t.Errorf("behind the end stands %s", ev.Raw)
		}
		if string(ev.Data) == "[DONE]" {
			c.done++
			continue
		}
		if !gjson.ValidBytes(ev.Data) {
			t.Errorf("an event is no JSON: %q", ev.Raw)
			continue
		}
		e := gjson.ParseBytes(bytes.Clone(ev.Data))
		if f := e.Get("error"); f.IsObject() {
			c.failure = f.Raw
			continue
		}
		if id := e.Get("id").String(); id != "" {
			if c.id != "" && c.id != id {
				t.Errorf("the id changes from %s to %s", c.id, id)
			}
			if created := e.Get("created").Raw; createdAt != "" && createdAt != created {
				t.Errorf("created changes from %s to %s", createdAt, created)
			}
			c.id, createdAt, c.model = id, e.Get("created").Raw, e.Get("model").String()
		}
		if c.usage != "" && e.Get("choices.0.delta").Exists() {
			t.Errorf("behind the usage stands %s", e.Raw)
		}
		if u := e.Get("usage"); u.IsObject() {
			c.usage = u.Raw
		}
		choice := e.Get("choices.0")
		delta := choice.Get("delta")
		if c.finish != "" && delta.Exists() && !(e.Get("usage").IsObject() && delta.Get("content").String() == "") {
			t.Errorf("behind the finish reason stands %s", e.Raw)
		}
		if delta.Get("role").Type == gjson.String {
			c.roles++
		}
		content := delta.Get("content")
		if content.IsArray() {
			c.content += content.Raw
		} else {
			c.content += content.String()
		}
		c.reasoning += delta.Get("reasoning_content").String()
		if list := delta.Get("tool_calls"); list.IsArray() {
			for _, piece := range list.Array() {
				index := int(piece.Get("index").Int())
				if !piece.Get("index").Exists() || index > len(c.calls) {
					t.Errorf("a call has no or a wrong index: %s", piece.Raw)
					continue
				}
				if index == len(c.calls) {
					c.calls = append(c.calls, clientCall{})
				}
				call := &c.calls[index]
				if id := piece.Get("id").String(); id != "" {
					if call.id != "" && call.id != id {
						t.Errorf("two calls share an index: %s", piece.Raw)
					}
					call.id = id
				}
				body := piece.Get("function")
				if !body.Exists() {
					body = piece.Get("custom")
				}
				if name := body.Get("name").String(); name != call.name {
					call.name += name
				}
				call.arguments += body.Get("arguments").String() + body.Get("input").String()
			}
		}
		if reason := choice.Get("finish_reason").String(); reason != "" {
			if c.finish != "" {
				t.Errorf("a second finish reason: %s", reason)
			}
			c.finish = reason
		}
	}
	if c.roles > 1 {
		t.Errorf("the role is given %d times", c.roles)
	}
	if c.done > 1 {
		t.Errorf("the stream ends %d times", c.done)
	}
	return c
}
