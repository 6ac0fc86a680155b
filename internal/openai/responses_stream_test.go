package openai

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// responsesRequest is a request with one exposed and two deferred tools, and words of its own to be echoed.
const responsesRequest = `{"model":"m","stream":true,"instructions":"Be brief.","tool_choice":"auto",` +
	`"input":[{"role":"user","content":"weather?"}],"tools":[` +
	`{"type":"function","name":"read_file","parameters":{"type":"object"}},` +
	`{"type":"function","name":"get_weather","parameters":{"type":"object"}},` +
	`{"type":"namespace","name":"mail","description":"","tools":[{"type":"function","name":"send","parameters":{}}]}]}`

// testNames says what the tools of the tests are: tool_search is virtual, names in the set are not exposed.
type testNames map[string]bool

func (n testNames) Classify(name string) Class {
	switch {
	case name == "tool_search":
		return Virtual
	case n[name]:
		return Unexposed
	}
	return Visible
}

func (testNames) MayBeHidden(string) bool { return false }

// script writes the events of one upstream round, numbered from 0.
func script(events ...string) []byte {
	var out []byte
	for n, e := range events {
		kind := gjson.Get(e, "type").String()
		e = strings.Replace(e, `,`, `,"sequence_number":`+strconv.Itoa(n)+`,`, 1)
		out = appendEvent(out, kind, []byte(e))
	}
	return out
}

// response writes a response object with the upstream's own echo.
func response(id, status, output string) string {
	usage := "null"
	if status == "completed" || status == "incomplete" {
		usage = `{"input_tokens":100,"output_tokens":10,"total_tokens":110}`
	}
	return `{"id":"` + id + `","object":"response","created_at":17` + id[len(id)-1:] + `,"status":"` + status +
		`","error":null,"instructions":"Be brief.\n\nDIRECTORY","model":"m","output":[` + output +
		`],"tool_choice":"auto","tools":[{"type":"function","name":"tool_search"}],"usage":` + usage + `,"x":{"é":1.0}}`
}

func created(id string) string {
	return `{"type":"response.created","response":` + response(id, "in_progress", "") + `}`
}

func inProgress(id string) string {
	return `{"type":"response.in_progress","response":` + response(id, "in_progress", "") + `}`
}

func ends(id, status, output string) string {
	return `{"type":"response.` + status + `","response":` + response(id, status, output) + `}`
}

// The events of single items, by their place.

func at(place int) string { return `"output_index":` + strconv.Itoa(place) }

func messageItem(id, text string) string {
	return `{"id":"` + id + `","type":"message","status":"completed","content":[{"type":"output_text","text":"` + text +
		`","annotations":[]}],"role":"assistant"}`
}

func messageEvents(place int, id string, pieces ...string) []string {
	where := `"item_id":"` + id + `",` + at(place) + `,"content_index":0`
	out := []string{
		`{"type":"response.output_item.added",` + at(place) + `,"item":{"id":"` + id +
			`","type":"message","status":"in_progress","content":[],"role":"assistant"}}`,
		`{"type":"response.content_part.added",` + where + `,"part":{"type":"output_text","text":"","annotations":[]}}`,
	}
	for _, p := range pieces {
		out = append(out, `{"type":"response.output_text.delta",`+where+`,"delta":"`+p+`","logprobs":[],"obfuscation":"xx"}`)
	}
	text := strings.Join(pieces, "")
	return append(out,
		`{"type":"response.output_text.done",`+where+`,"text":"`+text+`","logprobs":[]}`,
		`{"type":"response.content_part.done",`+where+`,"part":{"type":"output_text","text":"`+text+`","annotations":[]}}`,
		`{"type":"response.output_item.done",`+at(place)+`,"item":`+messageItem(id, text)+`}`)
}

func callItem(id, callID, name, arguments string) string {
	return `{"id":"` + id + `","type":"function_call","status":"completed","arguments":` +
		string(AppendString(nil, arguments)) + `,"call_id":"` + callID + `",` + nameMembers(name) + `}`
}

func nameMembers(name string) string {
	if group, member, ok := strings.Cut(name, "/"); ok {
		return `"name":"` + member + `","namespace":"` + group + `"`
	}
	return `"name":"` + name + `"`
}

func callEvents(place int, id, callID, name, arguments string) []string {
	where := `"item_id":"` + id + `",` + at(place)
	quoted := string(AppendString(nil, arguments))
	return []string{
		`{"type":"response.output_item.added",` + at(place) + `,"item":{"id":"` + id +
			`","type":"function_call","status":"in_progress","arguments":"","call_id":"` + callID + `",` + nameMembers(name) + `}}`,
		`{"type":"response.function_call_arguments.delta",` + where + `,"delta":` + quoted + `,"obfuscation":"x"}`,
		`{"type":"response.function_call_arguments.done",` + where + `,"arguments":` + quoted + `}`,
		`{"type":"response.output_item.done",` + at(place) + `,"item":` + callItem(id, callID, name, arguments) + `}`,
	}
}

func reasoningItem(id, summary string) string {
	if summary != "" {
		summary = `{"type":"summary_text","text":"` + summary + `"}`
	}
	return `{"id":"` + id + `","type":"reasoning","encrypted_content":"ENC-` + id + `","summary":[` + summary + `]}`
}

func reasoningEvents(place int, id, summary string) []string {
	where := `"item_id":"` + id + `",` + at(place) + `,"summary_index":0`
	out := []string{`{"type":"response.output_item.added",` + at(place) + `,"item":{"id":"` + id +
		`","type":"reasoning","encrypted_content":"EARLY","summary":[]}}`}
	if summary != "" {
		out = append(out,
			`{"type":"response.reasoning_summary_part.added",`+where+`,"part":{"type":"summary_text","text":""}}`,
			`{"type":"response.reasoning_summary_text.delta",`+where+`,"delta":"`+summary+`","obfuscation":""}`,
			`{"type":"response.reasoning_summary_text.done",`+where+`,"text":"`+summary+`"}`,
			`{"type":"response.reasoning_summary_part.done",`+where+`,"part":{"type":"summary_text","text":"`+summary+`"}}`)
	}
	return append(out, `{"type":"response.output_item.done",`+at(place)+`,"item":`+reasoningItem(id, summary)+`}`)
}

// round joins the events of a round.
func round(id string, output []string, groups ...[]string) []byte {
	events := []string{created(id), inProgress(id)}
	for _, g := range groups {
		events = append(events, g...)
	}
	return script(append(events, ends(id, "completed", strings.Join(output, ",")))...)
}

// played is what came of the rounds of one answer.
type played struct {
	client  []byte
	rounds  []Round // hidden ones
	results [][]Result
	last    Round
	body    []byte // of the request after the hidden rounds
}

// play feeds streamed rounds to an answer as the engine does: rounds whose calls are all hidden are answered with "R".
func play(t testing.TB, v *View, o AnswerOptions, names Names, rounds ...[]byte) played {
	t.Helper()
	return playFrom(t, Responses.NewAnswer(v, o), v, names, rounds, func(b []byte) io.Reader { return bytes.NewReader(b) })
}

func playFrom(t testing.TB, a Answer, v *View, names Names, rounds [][]byte, reader func([]byte) io.Reader) played {
	t.Helper()
	var p played
	for n, raw := range rounds {
		a.Begin(names)
		if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
			a.Whole(raw)
		} else {
			from := NewEventReader(reader(raw), 1<<20)
			for a.Progress() != Over {
				ev, err := from.Next()
				if err != nil {
					break
				}
				p.client = a.Event(p.client, ev)
			}
		}
		p.last = a.End()
		hidden, visible := p.last.Hidden()
		var results []Result
		for _, c := range hidden {
			results = append(results, Result{c.ID, "R"})
		}
		if p.last.Failure != nil {
			p.client = a.Fail(p.client, *p.last.Failure)
			return p
		}
		if !p.last.Complete {
			p.client = a.Fail(p.client, Failure{Message: "cut", Type: "server_error", Code: "server_error"})
			return p
		}
		if len(hidden) > 0 && !p.last.Stopped {
			p.results = append(p.results, results)
		}
		if len(hidden) == 0 || visible > 0 || p.last.Stopped {
			if n != len(rounds)-1 {
				t.Fatalf("round %d of %d ends the answer", n+1, len(rounds))
			}
			break
		}
		p.rounds = append(p.rounds, p.last)
		p.body = Responses.Compose(v, Projection{Rounds: p.rounds, Results: p.results})
	}
	if bytes.HasPrefix(bytes.TrimSpace(rounds[len(rounds)-1]), []byte("{")) {
		p.client = a.Body()
	} else {
		p.client = a.Finish(p.client)
	}
	return p
}

func responsesView(t testing.TB, body string) *View {
	t.Helper()
	v, err := Responses.View([]byte(body), nil)
	if err != nil {
		t.Fatal(err)
	}
	if v.Passthrough != "" {
		t.Fatalf("the request would pass through: %s", v.Passthrough)
	}
	return v
}

// eventsOf splits a stream into the data of its events.
func eventsOf(t testing.TB, stream []byte) []gjson.Result {
	t.Helper()
	var out []gjson.Result
	r := NewEventReader(bytes.NewReader(stream), 1<<20)
	for {
		ev, err := r.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if ev.Data == nil {
			continue
		}
		if !gjson.ValidBytes(ev.Data) {
			t.Fatalf("an event is no JSON: %s", ev.Raw)
		}
		data := gjson.ParseBytes(bytes.Clone(ev.Data))
		if kind := data.Get("type").String(); string(ev.Name) != "" && string(ev.Name) != kind {
			t.Errorf("event %s says that it is %s", ev.Name, kind)
		}
		out = append(out, data)
	}
}

// summary tells the events of a stream one a line: sequence number, type, output index, what it is about.
func summary(t testing.TB, stream []byte) string {
	t.Helper()
	var s strings.Builder
	for _, e := range eventsOf(t, stream) {
		fmt.Fprintf(&s, "%s %s", e.Get("sequence_number").Raw, strings.TrimPrefix(e.Get("type").String(), "response."))
		if place := e.Get("output_index"); place.Exists() {
			s.WriteString(" " + place.Raw)
		}
		if item := e.Get("item"); item.Exists() {
			s.WriteString(" " + item.Get("id").String())
		}
		if id := e.Get("response.id"); id.Exists() {
			s.WriteString(" " + id.String())
		}
		if delta := e.Get("delta"); delta.Exists() {
			s.WriteString(" " + delta.Raw)
		}
		s.WriteByte('\n')
	}
	return s.String()
}

// checkStream holds a client's stream to what the strictest SDKs ask: one lifecycle, dense indexes, rising sequence
// numbers, every item complete and true to its deltas, a final output that equals what was streamed.
func checkStream(t testing.TB, v *View, stream []byte) {
	t.Helper()
	type open struct {
		added, done gjson.Result
		text        map[string]string // by member and index
	}
	var items []*open
	count := map[string]int{}
	createdAt, ended := "", ""
	for n, e := range eventsOf(t, stream) {
		kind := e.Get("type").String()
		count[kind]++
		if ended != "" && !(ended == "error" && kind == "response.failed") {
			t.Errorf("%s follows %s", kind, ended)
		}
		if n == 0 && kind != "response.created" {
			t.Errorf("the stream begins with %s", kind)
		}
		if got := e.Get("sequence_number"); got.Raw != strconv.Itoa(n) {
			t.Errorf("event %d, %s, has the sequence number %q", n, kind, got.Raw)
		}
		if r := e.Get("response"); r.Exists() {
			if createdAt == "" {
				createdAt = r.Get("created_at").Raw
			}
			if r.Get("created_at").Raw != createdAt {
				t.Errorf("%s was created at %s, the stream at %s", kind, r.Get("created_at").Raw, createdAt)
			}
			for member, own := range map[string]Range{"tools": v.tools, "instructions": v.instructions} {
				want := "null"
				if !own.Absent() {
					want = string(own.Of(v.Body))
				}
				if got := r.Get(member).Raw; got != want {
					t.Errorf("%s echoes %s %s, want %s", kind, member, got, want)
				}
			}
		}
		place := e.Get("output_index")
		if place.Exists() && kind != "response.output_item.added" && place.Int() >= int64(len(items)) {
			t.Errorf("%s is of item %d, and there are %d", kind, place.Int(), len(items))
			continue
		}
		switch kind {
		case "response.output_item.added":
			if place.Int() != int64(len(items)) {
				t.Errorf("item %d is added with index %d", len(items), place.Int())
			}
			items = append(items, &open{added: e.Get("item"), text: map[string]string{}})
			continue
		case "response.output_item.done":
			item := items[place.Int()]
			item.done = e.Get("item")
			for _, member := range []string{"type", "id", "call_id", "name", "namespace"} {
				if item.added.Get(member).Raw != item.done.Get(member).Raw {
					t.Errorf("item %d is added with %s %s and done with %s", place.Int(), member, item.added.Get(member).Raw,
						item.done.Get(member).Raw)
				}
			}
			if arguments, ok := item.text["arguments"]; ok && arguments != item.done.Get("arguments").String() {
				t.Errorf("item %d has the arguments %s, its deltas said %s", place.Int(), item.done.Get("arguments"), arguments)
			}
			for i, part := range item.done.Get("content").Array() {
				if text := item.text["content"+strconv.Itoa(i)]; part.Get("type").String() == "output_text" &&
					text != part.Get("text").String() {
					t.Errorf("item %d has the text %q, its deltas said %q", place.Int(), part.Get("text"), text)
				}
			}
			continue
		case "response.completed", "response.incomplete", "response.failed":
			ended = kind
			var done []string
			for i, item := range items {
				if !item.done.Exists() {
					if kind == "response.completed" {
						t.Errorf("item %d was never done", i)
					}
					continue
				}
				done = append(done, item.done.Raw)
			}
			if got, want := e.Get("response.output").Raw, "["+strings.Join(done, ",")+"]"; got != want {
				t.Errorf("the final output is\n%s\nstreamed was\n%s", got, want)
			}
			continue
		case "error":
			ended = kind
			continue
		}
		if !place.Exists() {
			continue
		}
		item := items[place.Int()]
		if item.done.Exists() {
			t.Errorf("%s follows the end of item %d", kind, place.Int())
		}
		if id := e.Get("item_id"); id.Exists() && id.String() != item.added.Get("id").String() {
			t.Errorf("%s is of %s, item %d is %s", kind, id, place.Int(), item.added.Get("id"))
		}
		switch kind {
		case "response.output_text.delta":
			item.text["content"+e.Get("content_index").Raw] += e.Get("delta").String()
		case "response.function_call_arguments.delta":
			item.text["arguments"] += e.Get("delta").String()
		case "response.function_call_arguments.done":
			item.text["arguments"] = e.Get("arguments").String()
		}
	}
	if ended == "" {
		t.Error("the stream has no end")
	}
	for kind, n := range count {
		switch kind {
		case "response.created", "response.in_progress", "response.completed", "response.incomplete", "response.failed", "error":
			if n > 1 {
				t.Errorf("%d events %s", n, kind)
			}
		}
	}
}
