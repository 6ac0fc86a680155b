package app

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/tidwall/gjson"

	"tool-search-proxy/internal/upstreamtest"
)

// The tests of this file are named after the cases of docs/compatibility.md: failures that proxies of this kind had.

func TestEachCaseOfTheListHasATest(t *testing.T) {
	list, err := os.ReadFile("../../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("cases_test.go")
	if err != nil {
		t.Fatal(err)
	}
	tested := map[string]bool{}
	for _, name := range regexp.MustCompile(`func TestPC[0-9]+(And[0-9]+)*`).FindAllString(string(source), -1) {
		for _, id := range regexp.MustCompile(`[0-9]+`).FindAllString(name, -1) {
			tested[id] = true
		}
	}
	ids := regexp.MustCompile(`PC-([0-9]+)`).FindAllStringSubmatch(string(list), -1)
	for _, id := range ids {
		if !tested[id[1]] {
			t.Errorf("no test is named after %s", id[0])
		}
	}
	if len(ids) == 0 {
		t.Error("the list is empty")
	}
}

func noSearch(t *testing.T, a reply) {
	t.Helper()
	for _, secret := range []string{`"name":"tool_search"`, `available_deferred_tools`, `"loaded":`} {
		if strings.Contains(a.body, secret) {
			t.Errorf("the client sees %s in %s", secret, a.body)
		}
	}
}

func TestPC001HiddenRoundStaysOneStream(t *testing.T) {
	release := make(chan struct{})
	second := sse(delta(`{"role":"assistant","content":"Lo"}`), delta(`{"content":"ading"}`), finish("stop"), done)
	r := newRig(t, nil, searches("s1", "weather"), second)
	close(release)
	a := r.post(chatPath, chat(`"stream":true,`, user, threeTools))
	noSearch(t, a)
	got := r.want(2)
	if a.status != 200 || !strings.HasPrefix(a.header.Get("Content-Type"), "text/event-stream") || a.text() != "Loading" {
		t.Errorf("the client got %d %s", a.status, a.body)
	}
	if roles, finishes := a.all("choices.0.delta.role"), a.all("choices.0.finish_reason"); len(roles) != 1 || !slices.Equal(finishes, []string{"stop"}) {
		t.Errorf("roles %q, finish reasons %q", roles, finishes)
	}
	if strings.Count(a.body, done) != 1 || !got[1].get("stream").Bool() {
		t.Errorf("%s after %s", a.body, got[1].body)
	}
}

func TestPC002HiddenRoundIsOneLifecycle(t *testing.T) {
	r := newRig(t, nil, responsesSearch("resp_1", "c1"), responsesText("resp_2", "ok"))
	a := r.post(responsesPath, `{"model":"m","stream":true,"input":"weather?","tools":`+threeFlat+`}`)
	noSearch(t, a)
	types := a.all("type")
	count := func(name string) (n int) {
		for _, kind := range types {
			if kind == name {
				n++
			}
		}
		return n
	}
	if count("response.created") != 1 || count("response.in_progress") > 1 || count("response.completed") != 1 || a.text() != "ok" {
		t.Errorf("events %q of %s", types, a.body)
	}
	last := int64(-1)
	for _, data := range a.data() {
		n := gjson.Get(data, "sequence_number")
		if !n.Exists() || n.Int() <= last {
			t.Errorf("sequence number %s after %d", n.Raw, last)
		}
		last = n.Int()
		if i := gjson.Get(data, "output_index"); i.Exists() && i.Int() != 0 {
			t.Errorf("output index %d in %s", i.Int(), data)
		}
	}
	if id := a.all("response.id"); id[len(id)-1] != "resp_2" {
		t.Errorf("response ids %q", id)
	}
	r.want(2)
}

func TestPC004DeltaWithoutIndex(t *testing.T) {
	r := newRig(t, nil,
		sse(delta(`{"tool_calls":[{"id":"a","type":"function","function":{"name":"tool_search","arguments":"{\"query\":\"mail\"}"}}]}`), finish("tool_calls"), done),
		sse(delta(`{"tool_calls":[{"id":"b","type":"function","function":{"name":"send_mail","arguments":"{\"a\":"}}]}`),
			delta(`{"tool_calls":[{"function":{"arguments":"1}"}}]}`),
			delta(`{"tool_calls":[{"id":"c","type":"function","function":{"name":"read_file","arguments":"{}"}}]}`), finish("tool_calls"), done))
	a := r.post(chatPath, chat(`"stream":true,`, user, threeTools))
	noSearch(t, a)
	if got := r.want(2)[1].names(); got != "read_file tool_search send_mail" {
		t.Errorf("round two exposes %s", got)
	}
	if ids := a.all("choices.0.delta.tool_calls.0.id"); !slices.Equal(ids, []string{"b", "c"}) {
		t.Errorf("the client sees the calls %q in %s", ids, a.body)
	}
}

func TestPC005MixedTurn(t *testing.T) {
	search := call("s1", "tool_search", `{"query":"mail"}`)
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprint("stream=", stream), func(t *testing.T) {
			first := message(turnOf(search, call("w1", "read_file", `{"path":"a.txt"}`)), "tool_calls")
			if stream {
				first = sse(calls(0, "s1", "tool_search", `{"query":"mail"}`), calls(1, "w1", "read_file", `{"path":"a.txt"}`), finish("tool_calls"), done)
			}
			r := newRig(t, nil, first, message(`{"role":"assistant","content":"sent"}`, "stop"))
			a := r.post(chatPath, chat(fmt.Sprintf(`"stream":%v,`, stream), user, threeTools))
			noSearch(t, a)
			r.want(1)
			seen := a.get("choices.0.message.tool_calls.#.id").Raw
			if stream {
				seen = fmt.Sprint(a.all("choices.0.delta.tool_calls.0.id"))
			}
			if seen != `["w1"]` && seen != "[w1]" {
				t.Fatalf("the client sees the calls %s in %s", seen, a.body)
			}
			history := user + "," + turnOf(call("w1", "read_file", `{"path":"a.txt"}`)) + `,{"role":"tool","tool_call_id":"w1","content":"text"}`
			r.post(chatPath, chat("", history, threeTools))
			q := r.want(2)[1]
			if got := q.names(); got != "read_file tool_search send_mail" {
				t.Errorf("the next request exposes %s", got)
			}
			ids := q.get("messages.#(role==\"assistant\").tool_calls.#.id").Raw
			results := q.get("messages.#(role==\"tool\")#.tool_call_id").Raw
			if ids != `["s1","w1"]` || results != `["s1","w1"]` {
				t.Errorf("calls %s, results %s in %s", ids, results, q.body)
			}
		})
	}
}

func TestPC007CompressedRequests(t *testing.T) {
	plain := chat("", user, threeTools)
	pack := map[string]func() []byte{
		"gzip": func() []byte {
			var b bytes.Buffer
			w := gzip.NewWriter(&b)
			_, _ = io.WriteString(w, plain)
			_ = w.Close()
			return b.Bytes()
		},
		"zstd": func() []byte {
			w, _ := zstd.NewWriter(nil)
			return w.EncodeAll([]byte(plain), nil)
		},
	}
	for coding, packed := range pack {
		t.Run(coding, func(t *testing.T) {
			r := newRig(t, nil, message(`{"role":"assistant","content":"ok"}`, "stop"))
			a := r.post(chatPath, string(packed()), "Content-Encoding", coding)
			q := r.want(1)[0]
			if a.text() != "ok" || q.header.Get("Content-Encoding") != "" || q.names() != "read_file tool_search" {
				t.Errorf("the upstream got %v %s", q.header, q.body)
			}
			if q.header.Get("Content-Length") != fmt.Sprint(len(q.body)) {
				t.Errorf("length %s of %d bytes", q.header.Get("Content-Length"), len(q.body))
			}
		})
	}
}

func TestPC008ReasoningComesBack(t *testing.T) {
	r := newRig(t, nil,
		sse(delta(`{"role":"assistant","reasoning_content":"need "}`), delta(`{"reasoning_content":"tools"}`),
			calls(0, "s1", "tool_search", `{"query":"mail"}`), finish("tool_calls"), done), says("ok"))
	a := r.post(chatPath, chat(`"stream":true,`, user, threeTools))
	if got := strings.Join(a.all("choices.0.delta.reasoning_content"), ""); got != "need tools" {
		t.Errorf("the client sees the reasoning %q", got)
	}
	m := r.want(2)[1].get(`messages.#(role=="assistant")`)
	if m.Get("reasoning_content").String() != "need tools" || m.Get("tool_calls.0.id").String() != "s1" || m.Get("content").Raw != "null" {
		t.Errorf("round two replays %s", m.Raw)
	}
}

func TestPC010ForcedToolIsExposed(t *testing.T) {
	choice := `"tool_choice":{"type":"function","function":{"name":"get_weather"}},`
	r := newRig(t, nil, message(turnOf(call("g", "get_weather", "{}")), "tool_calls"))
	r.post(chatPath, chat(choice, user, threeTools))
	q := r.want(1)[0]
	if q.names() != "read_file get_weather tool_search" || q.get("tool_choice.function.name").String() != "get_weather" {
		t.Errorf("the upstream got %s", q.body)
	}
	r = newRig(t, nil, whole(`{"id":"r","object":"response","output":[],"status":"completed"}`))
	r.post(responsesPath, `{"model":"m","input":"x","tool_choice":{"type":"function","name":"get_weather"},"tools":`+threeFlat+`}`)
	if q := r.want(1)[0]; q.names() != "read_file get_weather tool_search" {
		t.Errorf("the upstream got %s", q.body)
	}
}

func TestPC011DeferredToolCalledStraightAway(t *testing.T) {
	r := newRig(t, nil, message(turnOf(call("g1", "get_weather", `{"city":"Oslo"}`)), "tool_calls"),
		message(turnOf(call("s1", "tool_search", `{"query":"select:get_weather"}`)), "tool_calls"),
		message(turnOf(call("g2", "get_weather", `{"city":"Oslo"}`)), "tool_calls"))
	a := r.post(chatPath, chat("", user, threeTools))
	got := r.want(3)
	if text := got[1].get(`messages.#(role=="tool").content`).String(); !strings.Contains(text, "select:get_weather") || !strings.Contains(text, "not loaded") {
		t.Errorf("the model is told %q", text)
	}
	if ids := a.get("choices.0.message.tool_calls.#.id").Raw; ids != `["g2"]` {
		t.Errorf("the client sees %s", a.body)
	}
	r = newRig(t, []string{"skills.tool_search_unloaded_calls=pass"}, message(turnOf(call("g1", "get_weather", `{"city":"Oslo"}`)), "tool_calls"),
		message(`{"role":"assistant","content":"cold"}`, "stop"))
	a = r.post(chatPath, chat("", user, threeTools))
	if ids := a.get("choices.0.message.tool_calls.#.id").Raw; ids != `["g1"]` {
		t.Errorf("the client sees %s", a.body)
	}
	r.post(chatPath, chat("", user+","+turnOf(call("g1", "get_weather", `{"city":"Oslo"}`))+`,{"role":"tool","tool_call_id":"g1","content":"1"}`, threeTools))
	if got := r.want(2)[1].names(); got != "read_file tool_search get_weather" {
		t.Errorf("the next request exposes %s", got)
	}
}

func TestPC013DataWithoutBlank(t *testing.T) {
	text := "data:" + delta(`{"content":"hi"}`) + "\n\ndata:" + finish("stop") + "\n\ndata:[DONE]\n\n"
	hidden := "data:" + calls(0, "s1", "tool_search", `{"query":"mail"}`) + "\n\ndata:" + finish("tool_calls") + "\n\ndata:[DONE]\n\n"
	r := newRig(t, nil, sse("raw:"+hidden), sse("raw:"+text))
	a := r.post(chatPath, chat(`"stream":true,`, user, threeTools))
	noSearch(t, a)
	if r.want(2); a.text() != "hi" {
		t.Errorf("the client got %s", a.body)
	}
}

func TestPC014LongLine(t *testing.T) {
	long := delta(`{"content":"` + strings.Repeat("A", 3<<20) + `"}`)
	r := newRig(t, nil, sse(long, finish("stop"), done))
	a := r.post(chatPath, chat(`"stream":true,`, user, threeTools))
	if !strings.Contains(a.body, "data: "+long+"\n\n") {
		t.Errorf("the line came as %d bytes", len(a.body))
	}
}

func TestPC016UsageChunk(t *testing.T) {
	usage := `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}`
	round := func(a answer) answer {
		a.body = strings.Replace(a.body, "data: [DONE]", "data: "+usage+"\n\ndata: [DONE]", 1)
		return a
	}
	for option, wanted := range map[string]int{"": 0, `"stream_options":{"include_usage":true},`: 1, `"stream_options":{"include_usage":false},`: 0} {
		r := newRig(t, nil, round(searches("s1", "mail")), round(says("ok")))
		a := r.post(chatPath, chat(`"stream":true,`+option, user, threeTools))
		got := r.want(2)
		if n := len(a.all("usage")); n != wanted {
			t.Errorf("%s: %d usage chunks in %s", option, n, a.body)
		}
		if got[0].get("stream_options").Raw != got[1].get("stream_options").Raw || got[0].get("stream_options").Raw != gjson.Get("{"+strings.TrimSuffix(option, ",")+"}", "stream_options").Raw {
			t.Errorf("%s: the upstream got %s", option, got[0].get("stream_options"))
		}
		if wanted == 1 {
			u := gjson.Parse(a.all("usage")[0])
			if u.Get("prompt_tokens").Int() != 9 || u.Get("completion_tokens").Int() != 6 || u.Get("tool_search.rounds").Int() != 2 {
				t.Errorf("usage %s", u.Raw)
			}
			if data := a.data(); data[len(data)-1] != done || !gjson.Get(data[len(data)-2], "usage").Exists() {
				t.Errorf("the usage chunk is not the last before the end: %s", a.body)
			}
		}
	}
}

func TestPC017WebSocketProbe(t *testing.T) {
	r := newRig(t, nil, whole(`{"object":"list","data":[]}`))
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+responsesPath, nil)
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", "websocket")
	a := r.do(request)
	if a.status != http.StatusUpgradeRequired || a.get("error.message").String() == "" || a.get("error.code").String() == "" {
		t.Errorf("got %d %s", a.status, a.body)
	}
	r.want(0)
	request, _ = http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+responsesPath, nil)
	if a := r.do(request); a.status != 200 || a.get("object").String() != "list" {
		t.Errorf("a plain GET gives %d %s", a.status, a.body)
	}
}

func TestPC019RoundTwoKeepsParametersAndHeaders(t *testing.T) {
	extra := `"temperature":0.1,"seed":7,"user":"u1","response_format":{"type":"json_object"},"reasoning_effort":"low","metadata":{"k":"v"},"x_vendor":{"a":[1,2]},"stream":true,`
	r := newRig(t, nil, searches("s1", "mail"), says("{}"))
	r.post(chatPath+"?a=b%20c&x=%2F", chat(extra, user, threeTools), "Authorization", "Bearer K", "OpenAI-Organization", "O", "Idempotency-Key", "I")
	got := r.want(2)
	strip := func(body string) string {
		i, j := strings.Index(body, `"messages"`), strings.Index(body, `,"tools"`)
		return body[:i] + body[j:j+9]
	}
	if strip(got[0].body) != strip(got[1].body) || !strings.HasPrefix(got[1].body, `{"model":"m",`+extra) {
		t.Errorf("round two sends %s", got[1].body)
	}
	if got[0].uri != got[1].uri || got[1].uri != chatPath+"?a=b%20c&x=%2F" {
		t.Errorf("paths %s and %s", got[0].uri, got[1].uri)
	}
	for _, name := range []string{"Authorization", "Openai-Organization"} {
		if got[0].header.Get(name) != got[1].header.Get(name) || got[1].header.Get(name) == "" {
			t.Errorf("%s is %q, then %q", name, got[0].header.Get(name), got[1].header.Get(name))
		}
	}
	if key := got[1].header.Get("Idempotency-Key"); key == "I" {
		t.Errorf("round two repeats the idempotency key %q", key)
	}
	before, after := got[0].get("messages").Raw, got[1].get("messages").Raw
	if !strings.HasPrefix(after, before[:len(before)-1]) || got[1].get("messages.#").Int() != got[0].get("messages.#").Int()+2 {
		t.Errorf("messages %s became %s", before, after)
	}
}

func TestPC020And071ForcedChoiceAndCap(t *testing.T) {
	for _, stream := range []bool{false, true} {
		var answers []answer
		for i := range 3 {
			id := fmt.Sprint("s", i)
			if stream {
				answers = append(answers, searches(id, fmt.Sprint("mail ", i)))
			} else {
				answers = append(answers, message(turnOf(call(id, "tool_search", fmt.Sprintf(`{"query":"mail %d"}`, i))), "tool_calls"))
			}
		}
		if stream {
			answers = append(answers, says("enough"))
		} else {
			answers = append(answers, message(`{"role":"assistant","content":"enough"}`, "stop"))
		}
		r := newRig(t, []string{"skills.tool_search_max_rounds=3"}, answers...)
		a := r.post(chatPath, chat(fmt.Sprintf(`"tool_choice":"required","stream":%v,`, stream), user, threeTools))
		noSearch(t, a)
		got := r.want(4)
		if a.text() != "enough" {
			t.Errorf("stream %v: the client got %s", stream, a.body)
		}
		if got[3].names() != "read_file get_weather send_mail" || strings.Contains(got[3].get("messages.0.content").String(), "available_deferred") {
			t.Errorf("stream %v: the last round is %s", stream, got[3].body)
		}
		for i, q := range got {
			if q.get("tool_choice").String() != "required" {
				t.Errorf("round %d has the choice %s", i+1, q.get("tool_choice"))
			}
		}
	}
	r := newRig(t, nil, message(turnOf(call("s", "tool_search", `{"query":"mail"}`)), "tool_calls"), message(`{"role":"assistant","content":"ok"}`, "stop"))
	r.post(chatPath, chat(`"tool_choice":{"type":"function","function":{"name":"tool_search"}},`, user, threeTools))
	if got := r.want(2); got[1].get("tool_choice").String() != "auto" {
		t.Errorf("round two has the choice %s", got[1].get("tool_choice"))
	}
}

func TestPC022CollisionWithARealTool(t *testing.T) {
	body := chat("", user, "["+function("tool_search")+","+function("get_weather")+"]")
	r := newRig(t, nil, message(turnOf(call("x", "tool_search", `{"q":"a"}`)), "tool_calls"))
	a := r.post(chatPath, body)
	if q := r.want(1)[0]; q.body != body {
		t.Errorf("the upstream got %s", q.body)
	}
	if a.get("choices.0.message.tool_calls.0.function.name").String() != "tool_search" || r.logs.FilterMessageSnippet("name of the virtual tool").Len() != 1 {
		t.Errorf("the client got %s; logs %v", a.body, r.logs.All())
	}
}

func TestPC023And101NativeToolSearchPasses(t *testing.T) {
	for _, body := range []string{
		`{"model":"m","input":"x","tools":[{"type":"tool_search","execution":"client"},` + flat("a") + `]}`,
		`{"model":"m","input":"x","tools":[{"type":"function","name":"a","defer_loading":true},` + flat("b") + `]}`,
	} {
		r := newRig(t, nil, whole(`{"id":"r","object":"response","output":[],"status":"completed"}`))
		r.post(responsesPath, body)
		if q := r.want(1)[0]; q.body != body {
			t.Errorf("the upstream got %s", q.body)
		}
	}
	item := `{"type":"additional_tools","tools":[{"type":"function","name":"x"}]}`
	r := newRig(t, nil, whole(`{"id":"r","object":"response","output":[{"type":"function_call","id":"f","call_id":"c","name":"x","arguments":"{}"}],"status":"completed"}`))
	a := r.post(responsesPath, `{"model":"m","input":[`+item+`,{"type":"message","role":"user","content":"go"}],"tools":`+threeFlat+`}`)
	if q := r.want(1)[0]; !strings.Contains(q.body, item) || a.get("output.0.name").String() != "x" {
		t.Errorf("the upstream got %s, the client %s", q.body, a.body)
	}
}

func TestPC025Namespaces(t *testing.T) {
	tools := `[{"type":"namespace","name":"mcp__docs","description":"docs","tools":[{"type":"function","name":"search","parameters":{"type":"object"}},` +
		`{"type":"function","name":"fetch","parameters":{"type":"object"}}]},{"type":"namespace","name":"mcp__web","tools":[{"type":"function","name":"search"}]},` + flat("read_file") + `]`
	r := newRig(t, nil,
		whole(`{"id":"r1","object":"response","status":"completed","output":[{"type":"function_call","id":"f1","call_id":"c1","name":"tool_search","arguments":"{\"query\":\"select:mcp__docs.search\"}"}]}`),
		whole(`{"id":"r2","object":"response","status":"completed","output":[{"type":"function_call","id":"f2","call_id":"c2","name":"search","namespace":"mcp__docs","arguments":"{}"}]}`))
	a := r.post(responsesPath, `{"model":"m","input":"x","tools":`+tools+`}`)
	got := r.want(2)
	if s := got[0].get("instructions").String(); !strings.Contains(s, "\nmcp__docs.fetch\nmcp__docs.search\nmcp__web.search\n") || got[0].names() != "read_file tool_search" {
		t.Errorf("round one is %s", got[0].body)
	}
	if group := got[1].get(`tools.#(type=="namespace")#`).Raw; group != `[{"type":"namespace","name":"mcp__docs","description":"docs","tools":[{"type":"function","name":"search","parameters":{"type":"object"}}]}]` {
		t.Errorf("round two has the groups %s", group)
	}
	if c := a.get("output.0"); c.Get("name").String() != "search" || c.Get("namespace").String() != "mcp__docs" {
		t.Errorf("the client got %s", a.body)
	}
}

func TestPC026DisconnectCancelsTheUpstream(t *testing.T) {
	phases := map[string][]answer{
		"before headers":      {{stall: make(chan struct{}), header: isStream}},
		"in the stream":       {{stall: make(chan struct{}), header: isStream, body: sse(delta(`{"content":"a"}`)).body}},
		"in a hidden round":   {searches("s1", "mail"), {stall: make(chan struct{}), header: isStream}},
		"in a whole answer":   {{stall: make(chan struct{}), header: isJSON, body: `{"id":`}},
		"on another path":     {{stall: make(chan struct{}), header: isStream, body: "data: x\n\n"}},
		"when passed through": {{stall: make(chan struct{}), header: isStream, body: "data: x\n\n"}},
	}
	for phase, answers := range phases {
		t.Run(phase, func(t *testing.T) {
			r := newRig(t, nil, answers...)
			ctx, cancel := context.WithCancel(t.Context())
			path, body := chatPath, chat(fmt.Sprintf(`"stream":%v,`, phase != "in a whole answer"), user, threeTools)
			switch phase {
			case "on another path":
				path = "/v1/embeddings"
			case "when passed through":
				body = `{"model":"m","stream":true,"messages":[]}`
			}
			request, _ := http.NewRequestWithContext(ctx, http.MethodPost, r.url+path, strings.NewReader(body))
			go func() {
				if response, err := http.DefaultTransport.RoundTrip(request); err == nil {
					_, _ = io.Copy(io.Discard, response.Body)
					_ = response.Body.Close()
				}
			}()
			for range 500 {
				if len(r.upstream()) == len(answers) {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			time.Sleep(20 * time.Millisecond)
			cancel()
			select {
			case n := <-r.gone:
				if n != len(answers)-1 {
					t.Errorf("request %d was given up", n)
				}
			case <-time.After(5 * time.Second):
				t.Error("the upstream goes on")
			}
		})
	}
}

// TestPC028LongStreams takes longer than every timeout.
func TestPC028LongStreams(t *testing.T) {
	t.Parallel()
	pace := upstreamtest.Pace{Chunk: upstreamtest.ByEvent, Between: 100 * time.Millisecond}
	upstream := upstreamtest.New(t, upstreamtest.Reply(upstreamtest.Text("one two three four five six seven eight nine ten")).Paced(pace))
	_, url, _ := startProxy(t, upstream.URL+"/v1", []string{"upstream.header_timeout=400ms", "upstream.idle_timeout=400ms",
		"upstream.connect_timeout=400ms"})
	response, err := http.Post(url+chatPath, "application/json", strings.NewReader(chat(`"stream":true,`, user, threeTools)))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	start := time.Now()
	body, err := io.ReadAll(response.Body)
	if got := (reply{response.StatusCode, response.Header, string(body), err}); err != nil || !strings.HasSuffix(got.text(), "nine ten") {
		t.Errorf("the client got %q, %v", got.text(), err)
	}
	if took := time.Since(start); took < 800*time.Millisecond {
		t.Errorf("the stream took %v only", took)
	}
}

func TestPC029And031And097BytesSurvive(t *testing.T) {
	tool := `{"type":"function","function":{"name":"read_file","description":"use -> & <x>","parameters":{"type":"object","properties":{"n":{"type":"integer","maximum":9223372036854775807}}}},"new_2027":[1e0]}`
	extra := `"seed":9007199254740993,"metadata":{"id":1234567890123456789},"x":1.0,"y":1e21,"new_param_2027":{"x":1},`
	system := `{"role":"system","content":"<rules>a & b</rules>"}`
	r := newRig(t, nil, message(turnOf(call("s", "tool_search", `{"query":"<mail> & more"}`)), "tool_calls"), message(`{"role":"assistant","content":"ok"}`, "stop"))
	r.post(chatPath, chat(extra, system+","+user, "["+tool+","+function("send_mail")+"]"))
	for _, q := range r.want(2) {
		if !strings.HasPrefix(q.body, `{"model":"m",`+extra) || !strings.Contains(q.body, tool) ||
			!strings.Contains(q.body, `"<rules>a & b</rules>\n\n`) || !strings.Contains(q.body, "<available_deferred_tools>") || strings.Contains(q.body, `\u003c`) {
			t.Errorf("the upstream got %s", q.body)
		}
	}
	deep := `{"model":"m","messages":[` + user + `],"tools":[` + function("a") + `],"deep":` + strings.Repeat("[", 10001) + strings.Repeat("]", 10001) + "}"
	r = newRig(t, nil)
	if a := r.post(chatPath, deep); a.status != 400 || a.get("error.type").String() != "invalid_request_error" {
		t.Errorf("absurd nesting gives %d %s", a.status, a.body)
	}
	repeated := `{"model":"m","model":"m2","messages":[` + user + `],"tools":` + threeTools + `}`
	r = newRig(t, nil, message(`{"role":"assistant","content":"ok"}`, "stop"))
	r.post(chatPath, repeated)
	if q := r.want(1)[0]; q.body != repeated {
		t.Errorf("the upstream got %s", q.body)
	}
}

func TestPC032SameStateSameBytes(t *testing.T) {
	var answers []answer
	for range 20 {
		answers = append(answers, message(`{"role":"assistant","content":"ok"}`, "stop"))
	}
	r := newRig(t, nil, answers...)
	for range 20 {
		r.post(chatPath, chat("", user, threeTools))
	}
	got := r.want(20)
	for _, q := range got {
		if q.body != got[0].body || !strings.Contains(q.body, "<available_deferred_tools>") {
			t.Fatalf("%s differs from %s", q.body, got[0].body)
		}
	}
}

func TestPC034ParallelCallsOfIndexZero(t *testing.T) {
	r := newRig(t, nil, sse(calls(0, "a", "tool_search", `{"query":"x"}`), calls(0, "b", "read_file", `{"path":"p"}`), finish("tool_calls"), done))
	a := r.post(chatPath, chat(`"stream":true,`, user, threeTools))
	noSearch(t, a)
	r.want(1)
	if ids, names, arguments := a.all("choices.0.delta.tool_calls.0.id"), a.all("choices.0.delta.tool_calls.0.function.name"), strings.Join(a.all("choices.0.delta.tool_calls.0.function.arguments"), ""); !slices.Equal(ids, []string{"b"}) || !slices.Equal(names, []string{"read_file"}) || arguments != `{"path":"p"}` {
		t.Errorf("the client got %s", a.body)
	}
}

func TestPC035And037CommentsAndLineEndings(t *testing.T) {
	body := ": OPENROUTER PROCESSING\r\n\r\ndata: " + delta(`{"content":"a"}`) + "\r\n\r\n: still here\r\rdata: " + delta(`{"content":"b"}`) + "\r\rdata: " + finish("stop") + "\n\ndata: [DONE]\r\n\r\n"
	r := newRig(t, nil, sse("raw:"+body))
	a := r.post(chatPath, chat(`"stream":true,`, user, threeTools))
	for _, want := range []string{delta(`{"content":"a"}`), delta(`{"content":"b"}`), "[DONE]"} {
		if !strings.Contains(a.body, "data: "+want) {
			t.Errorf("%s is missing in %q", want, a.body)
		}
	}
	if strings.Contains(a.body, "data: : ") || strings.Contains(a.body, "data: OPENROUTER") {
		t.Errorf("a comment became data: %q", a.body)
	}
}

func TestPC038PreviousResponseAfterAHiddenRound(t *testing.T) {
	r := newRig(t, nil, responsesSearch("resp_1", "c1"), responsesText("resp_2", "ok"), responsesText("resp_3", "you are welcome"))
	a := r.post(responsesPath, `{"model":"m","stream":true,"store":true,"input":"weather?","tools":`+threeFlat+`}`)
	ids := a.all("response.id")
	if ids[len(ids)-1] != "resp_2" {
		t.Fatalf("response ids %q", ids)
	}
	for _, id := range []string{"resp_2", ids[0]} {
		r.mu.Lock()
		r.answers = append(r.answers[:len(r.requests)], responsesText("resp_9", "fine"))
		n := len(r.requests)
		r.mu.Unlock()
		r.post(responsesPath, `{"model":"m","stream":true,"previous_response_id":"`+id+`","input":"thanks","tools":`+threeFlat+`}`)
		if q := r.want(n + 1)[n]; q.get("previous_response_id").String() != "resp_2" {
			t.Errorf("after %s the upstream gets %s", id, q.get("previous_response_id"))
		}
	}
}

func TestPC040UnstoredItemsAreReplayedWhole(t *testing.T) {
	reasoning := `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"ENC"}`
	search := `{"type":"function_call","id":"fc_1","call_id":"c1","name":"tool_search","arguments":"{\"query\":\"mail\"}"}`
	r := newRig(t, nil, whole(`{"id":"r1","object":"response","status":"completed","output":[`+reasoning+","+search+`]}`),
		whole(`{"id":"r2","object":"response","status":"completed","output":[]}`))
	r.post(responsesPath, `{"model":"m","store":false,"include":["reasoning.encrypted_content"],"input":[{"role":"user","content":"mail"}],"tools":`+threeFlat+`}`)
	q := r.want(2)[1]
	if input := q.get("input").Raw; !strings.HasPrefix(input, `[{"role":"user","content":"mail"},`+reasoning+","+search+`,{"type":"function_call_output","call_id":"c1","output":`) {
		t.Errorf("round two has the input %s", input)
	}
	if q.get("store").Raw != "false" || q.get("include").Raw != `["reasoning.encrypted_content"]` {
		t.Errorf("round two is %s", q.body)
	}
}

func TestPC041ErrorsPassWhole(t *testing.T) {
	limited := answer{status: 429, header: http.Header{"Content-Type": {"application/json"}, "Retry-After": {"7"}, "X-Ratelimit-Remaining-Requests": {"0"}, "X-Request-Id": {"r1"}},
		body: `{"error":{"message":"slow down","type":"rate_limit_error"}}`}
	for name, answers := range map[string][]answer{"round one": {limited}, "round two": {searches("s1", "mail"), limited}} {
		r := newRig(t, nil, answers...)
		a := r.post(chatPath, chat(`"stream":true,`, user, threeTools))
		r.want(len(answers))
		if a.status != 429 || a.body != limited.body || a.header.Get("Retry-After") != "7" || a.header.Get("X-Request-Id") != "r1" {
			t.Errorf("%s: the client got %d %v %s", name, a.status, a.header, a.body)
		}
	}
}

func TestPC043ErrorInRoundTwoAfterBytes(t *testing.T) {
	failed := answer{status: 503, header: isJSON, body: `{"error":{"message":"overloaded","type":"server_error"}}`}
	r := newRig(t, nil, sse(delta(`{"role":"assistant","content":"Let me look. "}`), calls(0, "s1", "tool_search", `{"query":"mail"}`), finish("tool_calls"), done), failed)
	a := r.post(chatPath, chat(`"stream":true,`, user, threeTools))
	data := a.data()
	if last := gjson.Get(data[len(data)-1], "error"); last.Get("message").String() != "overloaded" || last.Get("type").String() != "server_error" || len(a.all("choices.0.finish_reason")) != 0 {
		t.Errorf("the client got %s", a.body)
	}
	first := responsesSearch("resp_1", "c1")
	first.body = responsesMessage("resp_1", "Let me look. ", `,{"type":"function_call","id":"fc_c1","call_id":"c1","name":"tool_search","arguments":"{\"query\":\"weather\"}","status":"completed"}`)
	r = newRig(t, nil, first, failed)
	a = r.post(responsesPath, `{"model":"m","stream":true,"input":"x","tools":`+threeFlat+`}`)
	types := a.all("type")
	if types[len(types)-1] != "response.failed" || !strings.Contains(a.body, "overloaded") || slices.Contains(types, "response.completed") {
		t.Errorf("the client got %s", a.body)
	}
}

func TestPC044And046And070And074And085PassOrFlags(t *testing.T) {
	r := newRig(t, []string{"skills.tool_search_always_loaded="}, message(`{"role":"assistant","content":"ok"}`, "stop"))
	r.post(chatPath, chat(`"parallel_tool_calls":false,"tool_choice":"auto",`, user, "["+function("get_weather")+","+function("send_mail")+"]"))
	if q := r.want(1)[0]; q.names() != "tool_search" || q.get("parallel_tool_calls").Raw != "false" || q.get("tool_choice").String() != "auto" {
		t.Errorf("the upstream got %s", q.body)
	}
	for name, test := range map[string]struct{ path, body string }{
		"no tools":      {chatPath, `{"model":"m","messages":[` + user + `]}`},
		"empty tools":   {chatPath, chat("", user, "[]")},
		"null tools":    {chatPath, chat("", user, "null")},
		"always loaded": {chatPath, chat("", user, "["+function("read_file")+"]")},
		"n":             {chatPath, chat(`"n":2,`, user, threeTools)},
		"functions":     {chatPath, `{"model":"m","functions":[{"name":"lookup"}],"function_call":{"name":"lookup"},"messages":[` + user + `,{"role":"assistant","content":null,"function_call":{"name":"lookup","arguments":"{}"}},{"role":"function","name":"lookup","content":"1"}]}`},
		"background":    {responsesPath, `{"model":"m","background":true,"input":"x","tools":` + threeFlat + `}`},
		"no JSON":       {chatPath, `{"model":`},
	} {
		r := newRig(t, []string{"skills.tool_search_debug_headers=true"}, whole(`{"ok":true}`))
		a := r.post(test.path, test.body)
		if q := r.want(1)[0]; q.body != test.body || a.body != `{"ok":true}` || a.header.Get("X-Tool-Search-Passthrough") == "" {
			t.Errorf("%s: the upstream got %s, the client %v %s", name, q.body, a.header, a.body)
		}
	}
}

func TestPC047ReasoningDetailsAreMerged(t *testing.T) {
	r := newRig(t, nil, sse(
		delta(`{"role":"assistant","reasoning_details":[{"type":"reasoning.text","text":"Let","format":"f","index":0}]}`),
		delta(`{"reasoning_details":[{"type":"reasoning.text","text":" me","format":"f","index":0}]}`),
		delta(`{"reasoning_details":[{"type":"reasoning.text","signature":"SIG","format":"f","index":0}]}`),
		calls(0, "s1", "tool_search", `{"query":"mail"}`), finish("tool_calls"), done), says("ok"))
	r.post(chatPath, chat(`"stream":true,`, user, threeTools))
	details := r.want(2)[1].get(`messages.#(role=="assistant").reasoning_details`)
	if details.Get("#").Int() != 1 || details.Get("0.text").String() != "Let me" || details.Get("0.signature").String() != "SIG" || details.Get("0.type").String() != "reasoning.text" {
		t.Errorf("round two replays %s", details.Raw)
	}
}

func TestPC050And052OneSystemMessageAndWholeGroups(t *testing.T) {
	system := `{"role":"system","content":"You are X."}`
	history := system + "," + user
	answers := []answer{message(turnOf(call("s1", "tool_search", `{"query":"weather mail"}`)), "tool_calls"),
		message(turnOf(call("w1", "get_weather", "{}"), call("w2", "send_mail", "{}")), "tool_calls"), message(`{"role":"assistant","content":"ok"}`, "stop")}
	r := newRig(t, nil, answers...)
	r.post(chatPath, chat("", history, threeTools))
	history += "," + turnOf(call("w1", "get_weather", "{}"), call("w2", "send_mail", "{}")) + `,{"role":"tool","tool_call_id":"w1","content":"1"},{"role":"tool","tool_call_id":"w2","content":"2"}`
	r.post(chatPath, chat("", history, threeTools))
	got := r.want(3)
	for _, q := range got {
		if q.get(`messages.#(role=="system")#`).Get("#").Int() != 1 || q.get("messages.0.role").String() != "system" || !strings.HasPrefix(q.get("messages.0.content").String(), "You are X.") {
			t.Errorf("the upstream got %s", q.body)
		}
	}
	var order []string
	got[2].get("messages").ForEach(func(_, m gjson.Result) bool {
		order = append(order, m.Get("role").String()+m.Get("tool_calls.#.id").Raw+m.Get("tool_call_id").String())
		return true
	})
	if want := `system user assistant["s1"] tools1 assistant["w1","w2"] toolw1 toolw2`; strings.Join(order, " ") != want {
		t.Errorf("the history is %s", order)
	}
	before, after := got[1].get("messages").Raw, got[2].get("messages").Raw
	if !strings.HasPrefix(after, before[:len(before)-1]) {
		t.Errorf("the history changed:\n%s\n%s", before, after)
	}
}

func TestPC049And053And055Sessions(t *testing.T) {
	load := func(id string) answer {
		return message(turnOf(call(id, "tool_search", `{"query":"select:send_mail"}`)), "tool_calls")
	}
	next := func(id, name string) answer { return message(turnOf(call(id, name, "{}")), "tool_calls") }
	history := func(id, name string) string {
		return user + "," + turnOf(call(id, name, "{}")) + `,{"role":"tool","tool_call_id":"` + id + `","content":"1"}`
	}
	ok := message(`{"role":"assistant","content":"ok"}`, "stop")
	r := newRig(t, nil, load("s1"), next("w1", "send_mail"), ok, ok, ok)
	r.post(chatPath, chat("", user, threeTools), "Authorization", "Bearer old")
	// The same question of another caller knows nothing of it, and a rotated credential is rebuilt from the transcript.
	r.post(chatPath, chat("", user, threeTools), "Authorization", "Bearer other")
	r.post(chatPath, chat("", history("w1", "send_mail"), threeTools), "Authorization", "Bearer new")
	r.post(chatPath, chat("", history("w1", "send_mail"), threeTools), "Authorization", "Bearer old")
	got := r.want(5)
	if got[2].names() != "read_file tool_search" || got[3].names() != "read_file tool_search send_mail" || got[4].names() != "read_file tool_search send_mail" {
		t.Errorf("exposed: %s, %s, %s", got[2].names(), got[3].names(), got[4].names())
	}
	if strings.Contains(got[3].body, `"s1"`) || !strings.Contains(got[4].body, `"s1"`) {
		t.Errorf("hidden rounds: %s\n%s", got[3].body, got[4].body)
	}
}

func TestPC056And058CompressedAnswers(t *testing.T) {
	pack := func(s string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = io.WriteString(w, s)
		_ = w.Close()
		return b.String()
	}
	packed := http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {"gzip"}}
	plain := message(`{"role":"assistant","content":"ok"}`, "stop").body
	failure := `{"error":{"message":"bad temperature","type":"invalid_request_error"}}`
	for _, test := range []struct {
		status int
		body   string
	}{{200, plain}, {429, failure}} {
		r := newRig(t, nil, answer{status: test.status, header: packed, body: pack(test.body)})
		a := r.post(chatPath, chat("", user, threeTools), "Accept-Encoding", "gzip")
		if a.status != test.status || a.body != test.body || a.header.Get("Content-Encoding") != "" {
			t.Errorf("the client got %d %v %q", a.status, a.header, a.body)
		}
	}
	r := newRig(t, nil, answer{header: packed, body: pack(`{"data":[]}`)})
	if a := r.post("/v1/embeddings", `{}`, "Accept-Encoding", "gzip"); a.body != pack(`{"data":[]}`) || a.header.Get("Content-Encoding") != "gzip" {
		t.Errorf("the client got %v %q", a.header, a.body)
	}
}

func TestPC059CutArguments(t *testing.T) {
	r := newRig(t, nil, sse(delta(`{"role":"assistant","content":"hm"}`), calls(0, "s1", "tool_search", `{"query":"ma`), finish("length"), done))
	a := r.post(chatPath, chat(`"stream":true,`, user, threeTools))
	noSearch(t, a)
	if r.want(1); !slices.Equal(a.all("choices.0.finish_reason"), []string{"length"}) || strings.Contains(a.body, "s1") {
		t.Errorf("the client got %s", a.body)
	}
}

func TestPC061OddArguments(t *testing.T) {
	for _, arguments := range []string{`,"arguments":""`, `,"arguments":null`, ``, `,"arguments":{"query":"mail"}`} {
		m := `{"role":"assistant","content":null,"tool_calls":[{"id":"s1","type":"function","function":{"name":"tool_search"` + arguments + `}}]}`
		r := newRig(t, nil, message(m, "tool_calls"), message(`{"role":"assistant","content":"ok"}`, "stop"))
		a := r.post(chatPath, chat("", user, threeTools))
		q := r.want(2)[1]
		replayed := q.get(`messages.#(role=="assistant").tool_calls.0.function.arguments`)
		if a.text() != "ok" || replayed.Type != gjson.String || !gjson.Valid(replayed.String()) {
			t.Errorf("%s: round two replays %s", arguments, q.body)
		}
		if strings.Contains(arguments, "mail") != strings.Contains(q.names(), "send_mail") {
			t.Errorf("%s: round two exposes %s", arguments, q.names())
		}
	}
}

func TestPC062And064TerminalEvents(t *testing.T) {
	incomplete := answer{header: isStream, body: event("response.created", 0, `"response":{"id":"r1","object":"response","status":"in_progress","output":[]}`) +
		event("response.output_item.added", 1, `"output_index":0,"item":{"type":"function_call","id":"fc","call_id":"c1","name":"tool_search","arguments":"","status":"in_progress"}`) +
		event("response.incomplete", 2, `"response":{"id":"r1","object":"response","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}`)}
	r := newRig(t, nil, incomplete)
	a := r.post(responsesPath, `{"model":"m","stream":true,"input":"x","tools":`+threeFlat+`}`)
	noSearch(t, a)
	types := a.all("type")
	if r.want(1); types[len(types)-1] != "response.incomplete" || !strings.Contains(a.body, "max_output_tokens") {
		t.Errorf("the client got %s", a.body)
	}
	half := strings.Split(responsesMessage("r1", "half", ""), "event: response.output_text.done")[0]
	r = newRig(t, nil, answer{header: isStream, body: half})
	a = r.post(responsesPath, `{"model":"m","stream":true,"input":"x","tools":`+threeFlat+`}`)
	types = a.all("type")
	if types[len(types)-1] != "response.failed" && types[len(types)-1] != "error" {
		t.Errorf("the client got %s", a.body)
	}
	r = newRig(t, nil, answer{header: isStream, cut: true, body: sse(delta(`{"content":"half"}`)).body})
	a = r.post(chatPath, chat(`"stream":true,`, user, threeTools))
	if a.err == nil && (len(a.all("error")) != 1 || strings.Contains(a.body, done)) {
		t.Errorf("the client got %s", a.body)
	}
}

func TestPC065And067PathsAndQueries(t *testing.T) {
	r := newRig(t, nil, message(`{"role":"assistant","content":"ok"}`, "stop"), whole(`{"id":"r","object":"response","status":"completed","output":[]}`), whole(`{}`))
	paths := []string{"/openai/deployments/gpt-x/chat/completions?api-version=2025-01-01&a=b%20c", "/proxy/prefix/v1/responses?foo=%2F", "/v1/responses/compact"}
	r.post(paths[0], chat("", user, threeTools), "api-key", "K")
	r.post(paths[1], `{"model":"m","input":"x","tools":`+threeFlat+`}`)
	r.post(paths[2], `{"input":"x","tools":`+threeFlat+`}`)
	for i, q := range r.want(3) {
		if q.uri != paths[i] {
			t.Errorf("%s became %s", paths[i], q.uri)
		}
		if projected := strings.Contains(q.body, "available_deferred_tools"); projected != (i < 2) {
			t.Errorf("%s: the upstream got %s", paths[i], q.body)
		}
	}
}

func TestPC068OddChunksOfAzure(t *testing.T) {
	odd := `{"id":"","object":"","created":0,"model":"","prompt_filter_results":[{"a":1}],"choices":[]}`
	noDelta := `{"id":"","choices":[{"finish_reason":null,"index":0,"content_filter_offsets":{"check_offset":1}}],"created":0,"model":"","object":""}`
	r := newRig(t, nil, sse(odd, delta(`{"role":"assistant","content":"hi"}`), noDelta, finish("stop"), noDelta, done))
	a := r.post(chatPath, chat(`"stream":true,`, user, threeTools))
	if a.text() != "hi" || !strings.Contains(a.body, "data: "+odd+"\n\n") || !strings.Contains(a.body, "data: "+noDelta+"\n\n") || !slices.Equal(a.all("choices.0.finish_reason"), []string{"stop"}) {
		t.Errorf("the client got %s", a.body)
	}
}

func TestPC073SeveralSearches(t *testing.T) {
	r := newRig(t, nil, message(turnOf(call("s1", "tool_search", `{"query":"mail"}`), call("s2", "tool_search", `{"query":"zzzz-nothing"}`)), "tool_calls"), message(`{"role":"assistant","content":"ok"}`, "stop"))
	r.post(chatPath, chat("", user, threeTools))
	results := r.want(2)[1].get(`messages.#(role=="tool")#`)
	if results.Get("#.tool_call_id").Raw != `["s1","s2"]` || results.Get("1.content").String() != `{"loaded":[],"already_loaded":[],"not_found":["zzzz-nothing"],"truncated":false,"total_deferred_tools":2}` {
		t.Errorf("the results are %s", results.Raw)
	}
}

func TestPC076ConversationAtTheUpstream(t *testing.T) {
	r := newRig(t, nil, whole(`{"id":"r1","object":"response","status":"completed","output":[{"type":"function_call","id":"f1","call_id":"c1","name":"tool_search","arguments":"{\"query\":\"mail\"}"}]}`),
		whole(`{"id":"r2","object":"response","status":"completed","output":[]}`))
	r.post(responsesPath, `{"model":"m","conversation":"conv_1","input":[{"role":"user","content":"mail bob"}],"tools":`+threeFlat+`}`)
	q := r.want(2)[1]
	if q.get("conversation").String() != "conv_1" || q.get("input.#.type").Raw != `["function_call_output"]` || q.get("input.0.call_id").String() != "c1" {
		t.Errorf("round two is %s", q.body)
	}
}

func TestPC077ChoiceNone(t *testing.T) {
	history := user + "," + turnOf(call("w1", "get_weather", "{}")) + `,{"role":"tool","tool_call_id":"w1","content":"1"}`
	r := newRig(t, nil, message(turnOf(call("s1", "tool_search", `{"query":"x"}`)), "tool_calls"))
	a := r.post(chatPath, chat(`"tool_choice":"none",`, history, threeTools))
	noSearch(t, a)
	if q := r.want(1)[0]; q.get("tool_choice").String() != "none" || !strings.Contains(q.names(), "get_weather") {
		t.Errorf("the upstream got %s", q.body)
	}
}

func TestPC079OddNames(t *testing.T) {
	names := []string{"github.issues/create", "github-issues-create", "天气.查询", strings.Repeat("a", 70), "a<b>&c"}
	var tools []string
	for _, name := range names {
		tools = append(tools, function(name))
	}
	r := newRig(t, nil, message(turnOf(call("s1", "tool_search", `{"query":"select:天气.查询,github.issues/create,a<b>&c"}`)), "tool_calls"), message(`{"role":"assistant","content":"ok"}`, "stop"))
	r.post(chatPath, chat("", user, "["+strings.Join(tools, ",")+"]"))
	got := r.want(2)
	directory := got[0].get("messages.0.content").String()
	for _, line := range []string{"\ngithub.issues/create\n", "\n天气.查询\n", "\na&lt;b&gt;&amp;c\n", "\n" + names[3] + "\n"} {
		if !strings.Contains(directory, line) {
			t.Errorf("%q is missing in %s", line, directory)
		}
	}
	if got[1].names() != "tool_search 天气.查询 github.issues/create a<b>&c" {
		t.Errorf("round two exposes %s", got[1].names())
	}
}

func TestPC080HistoryCountsAsLoaded(t *testing.T) {
	history := user + "," + turnOf(call("w1", "get_weather", "{}")) + `,{"role":"tool","tool_call_id":"w1","content":"1"}`
	r := newRig(t, nil, message(`{"role":"assistant","content":"ok"}`, "stop"))
	r.post(chatPath, chat("", history, threeTools))
	if q := r.want(1)[0]; q.names() != "read_file tool_search get_weather" {
		t.Errorf("the upstream got %s", q.names())
	}
}

func TestPC082MoreThan128Tools(t *testing.T) {
	var tools []string
	for i := range 300 {
		tools = append(tools, function(fmt.Sprintf("tool_%03d", i)))
	}
	var answers []answer
	for i := range 40 {
		names := make([]string, 5)
		for k := range names {
			names[k] = fmt.Sprintf("tool_%03d", i*5+k)
		}
		answers = append(answers, message(turnOf(call(fmt.Sprint("s", i), "tool_search", `{"query":"select:`+strings.Join(names, ",")+`"}`)), "tool_calls"))
	}
	answers = append(answers, message(`{"role":"assistant","content":"ok"}`, "stop"))
	r := newRig(t, []string{"skills.tool_search_max_rounds=50"}, answers...)
	r.post(chatPath, chat("", user, "["+strings.Join(tools, ",")+"]"))
	got := r.want(41)
	for i, q := range got {
		if n := q.get("tools.#").Int(); n > 128 {
			t.Fatalf("round %d has %d tools", i+1, n)
		}
	}
	if last := got[40]; last.get("tools.#").Int() < 100 || !strings.Contains(last.names(), "tool_199") || strings.Contains(last.names(), "tool_000") {
		t.Errorf("the last round exposes %s", got[40].names())
	}
}

func TestPC083ToolsComeAsTheyWereWritten(t *testing.T) {
	ping, strict := `{"type":"function","function":{"name":"ping"}}`, `{"type":"function","function":{"name":"a","strict":false,"parameters":{"type":"object"}}}`
	r := newRig(t, nil, message(turnOf(call("s1", "tool_search", `{"query":"select:ping,a"}`)), "tool_calls"), message(`{"role":"assistant","content":"ok"}`, "stop"))
	r.post(chatPath, chat("", user, "["+ping+","+strict+"]"))
	if q := r.want(2)[1]; !strings.HasSuffix(q.get("tools").Raw, ","+ping+","+strict+"]") {
		t.Errorf("round two has the tools %s", q.get("tools").Raw)
	}
}

func TestPC086Preflight(t *testing.T) {
	r := newRig(t, nil, answer{status: 204, header: http.Header{"Access-Control-Allow-Origin": {"*"}}})
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodOptions, r.url+chatPath, nil)
	request.Header.Set("Origin", "http://localhost:5173")
	request.Header.Set("Access-Control-Request-Headers", "authorization,content-type,x-stainless-os")
	if a := r.do(request); a.status != 204 || a.header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("got %d %v", a.status, a.header)
	}
	if q := r.want(1)[0]; q.method != http.MethodOptions || q.header.Get("Origin") == "" {
		t.Errorf("the upstream got %v", q)
	}
}

func TestPC089And091ToolsOfTheRequestCount(t *testing.T) {
	a1, b1, c1, d1 := function("alpha"), function("beta"), function("gamma"), function("delta")
	b2 := strings.Replace(b1, "city", "location", 1)
	ok := message(`{"role":"assistant","content":"ok"}`, "stop")
	next := message(turnOf(call("w1", "beta", "{}")), "tool_calls")
	r := newRig(t, nil, message(turnOf(call("s1", "tool_search", `{"query":"select:beta"}`)), "tool_calls"), next, ok, ok)
	r.post(chatPath, chat("", user, "["+a1+","+b1+","+c1+"]"))
	history := user + "," + turnOf(call("w1", "beta", "{}")) + `,{"role":"tool","tool_call_id":"w1","content":"1"}`
	r.post(chatPath, chat("", history, "["+a1+","+c1+"]"))
	r.post(chatPath, chat("", history, "["+a1+","+b2+","+c1+","+d1+"]"))
	got := r.want(4)
	if strings.Contains(got[2].names(), "beta") || strings.Contains(got[2].get("messages.0.content").String(), "beta") {
		t.Errorf("without the tool the upstream got %s", got[2].body)
	}
	if !strings.Contains(got[3].get("tools").Raw, b2) || !strings.Contains(got[3].get("messages.0.content").String(), "\ndelta\n") {
		t.Errorf("with the new tool the upstream got %s", got[3].body)
	}
}

func TestPC092And094Ends(t *testing.T) {
	r := newRig(t, nil, sse(calls(0, "s1", "tool_search", `{"query":"mail"}`), finish("tool_calls")), sse(delta(`{"content":"ok"}`), finish("stop")))
	a := r.post(chatPath, chat(`"stream":true,`, user, threeTools))
	if r.want(2); a.text() != "ok" || !slices.Equal(a.all("choices.0.finish_reason"), []string{"stop"}) || len(a.all("error")) > 0 {
		t.Errorf("the client got %s", a.body)
	}
	r = newRig(t, nil, sse(calls(0, "w1", "read_file", `{}`), finish("tool_calls"), finish("stop"), done, done, delta(`{"content":"late"}`)))
	a = r.post(chatPath, chat(`"stream":true,`, user, threeTools))
	if !slices.Equal(a.all("choices.0.finish_reason"), []string{"tool_calls"}) || strings.Count(a.body, done) != 1 || strings.Contains(a.body, "late") {
		t.Errorf("the client got %s", a.body)
	}
}

func TestPC095NullEmptyMissing(t *testing.T) {
	m := `{"role":"assistant","content":null,"refusal":null,"tool_calls":[` + call("s1", "tool_search", `{"query":"mail"}`) + `],"x":[1.0]}`
	r := newRig(t, nil, message(m, "tool_calls"), message(`{"role":"assistant","content":"ok"}`, "stop"))
	r.post(chatPath, chat("", user, threeTools))
	if got := r.want(2)[1].get(`messages.#(role=="assistant")`).Raw; got != m {
		t.Errorf("round two replays %s", got)
	}
	r = newRig(t, nil, sse(calls(0, "s1", "tool_search", `{"query":"mail"}`), finish("tool_calls"), done), says("ok"))
	r.post(chatPath, chat(`"stream":true,`, user, threeTools))
	if got := r.want(2)[1].get(`messages.#(role=="assistant")`); got.Get("content").Raw != "null" || got.Get("role").String() != "assistant" {
		t.Errorf("round two replays %s", got.Raw)
	}
}

func TestPC098LargeBodies(t *testing.T) {
	image := `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("A", 30<<20) + `"}}]}`
	r := newRig(t, nil, message(`{"role":"assistant","content":"ok"}`, "stop"))
	a := r.post(chatPath, chat("", image, threeTools))
	if q := r.want(1)[0]; a.text() != "ok" || len(q.body) < 30<<20 || q.names() != "read_file tool_search" {
		t.Errorf("the client got %d %s", a.status, a.body)
	}
	r = newRig(t, []string{"server.max_body_bytes=1MiB"})
	if a := r.post(chatPath, chat("", image, threeTools)); a.status != 413 || !strings.Contains(a.get("error.message").String(), "1048576") {
		t.Errorf("the client got %d %s", a.status, a.body)
	}
}

func TestPC088And100CredentialsPassAndAreNotLogged(t *testing.T) {
	secrets := []string{"Api-Key", "sk-one", "Authorization", "Bearer sk-two", "Openai-Project", "P", "Cookie", "c=sk-three"}
	r := newRig(t, nil, searches("s1", "mail"), says("private words"))
	dropped := []string{"Connection", "X-Hop", "X-Hop", "1", "Te", "trailers", "X-Tool-Search-Silent", "1"}
	r.post(chatPath, chat(`"stream":true,`, `{"role":"user","content":"secret question"}`, threeTools), append(dropped, secrets...)...)
	for _, q := range r.want(2) {
		for i := 0; i < len(dropped); i += 2 {
			if v := q.header.Get(dropped[i]); v != "" {
				t.Errorf("the upstream gets %s: %s", dropped[i], v)
			}
		}
		for i := 0; i < len(secrets); i += 2 {
			if q.header.Get(secrets[i]) != secrets[i+1] {
				t.Errorf("%s is %q", secrets[i], q.header.Get(secrets[i]))
			}
		}
	}
	for _, entry := range r.logs.All() {
		text := entry.Message + fmt.Sprint(entry.ContextMap())
		for _, secret := range []string{"sk-one", "sk-two", "sk-three", "secret question", "private words"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s is logged: %s", secret, text)
			}
		}
	}
}

// event is one event of a Responses stream.
func event(name string, sequence int, members string) string {
	return fmt.Sprintf("event: %s\ndata: {\"type\":%q,\"sequence_number\":%d,%s}\n\n", name, name, sequence, members)
}

// responsesSearch is a streamed round of Responses that searches.
func responsesSearch(id, callID string) answer {
	item := func(arguments, status string) string {
		return fmt.Sprintf(`{"type":"function_call","id":"fc_%s","call_id":%q,"name":"tool_search","arguments":%q,"status":%q}`, callID, callID, arguments, status)
	}
	arguments := `{"query":"weather"}`
	head := `"response":{"id":"` + id + `","object":"response","created_at":1,"status":"in_progress","output":[]}`
	return answer{header: isStream, body: event("response.created", 0, head) + event("response.in_progress", 1, head) +
		event("response.output_item.added", 2, `"output_index":0,"item":`+item("", "in_progress")) +
		event("response.function_call_arguments.delta", 3, fmt.Sprintf(`"item_id":"fc_%s","output_index":0,"delta":%q`, callID, arguments)) +
		event("response.function_call_arguments.done", 4, fmt.Sprintf(`"item_id":"fc_%s","output_index":0,"arguments":%q`, callID, arguments)) +
		event("response.output_item.done", 5, `"output_index":0,"item":`+item(arguments, "completed")) +
		event("response.completed", 6, `"response":{"id":"`+id+`","object":"response","created_at":1,"status":"completed","output":[`+item(arguments, "completed")+`],"usage":{"input_tokens":5,"output_tokens":2,"total_tokens":7}}`)}
}

// responsesText is a streamed round of text.
func responsesText(id, text string) answer {
	return answer{header: isStream, body: responsesMessage(id, text, "")}
}

// responsesMessage is the body of a round with a message, and with further items that are complete at once.
func responsesMessage(id, text, further string) string {
	message := func(content, status string) string {
		return `{"type":"message","id":"msg_` + id + `","role":"assistant","status":"` + status + `","content":[` + content + `]}`
	}
	part := fmt.Sprintf(`{"type":"output_text","text":%q,"annotations":[]}`, text)
	head := `"response":{"id":"` + id + `","object":"response","created_at":1,"status":"in_progress","output":[]}`
	at := `"item_id":"msg_` + id + `","output_index":0,"content_index":0,`
	n := 0
	next := func(name, members string) string {
		n++
		return event(name, n-1, members)
	}
	body := next("response.created", head) + next("response.in_progress", head) +
		next("response.output_item.added", `"output_index":0,"item":`+message("", "in_progress")) +
		next("response.content_part.added", at+`"part":{"type":"output_text","text":"","annotations":[]}`) +
		next("response.output_text.delta", at+fmt.Sprintf(`"delta":%q`, text)) +
		next("response.output_text.done", at+fmt.Sprintf(`"text":%q`, text)) +
		next("response.content_part.done", at+`"part":`+part) +
		next("response.output_item.done", `"output_index":0,"item":`+message(part, "completed"))
	if further != "" {
		item := strings.TrimPrefix(further, ",")
		body += next("response.output_item.added", `"output_index":1,"item":`+item) + next("response.output_item.done", `"output_index":1,"item":`+item)
	}
	return body + next("response.completed", `"response":{"id":"`+id+`","object":"response","created_at":1,"status":"completed","output":[`+message(part, "completed")+further+
		`],"usage":{"input_tokens":5,"output_tokens":2,"total_tokens":7}}`)
}
