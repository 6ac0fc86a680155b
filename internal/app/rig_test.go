package app

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/tidwall/gjson"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"tool-search-proxy/internal/config"
)

// answer is one scripted answer of the upstream.
type answer struct {
	status int
	header http.Header
	body   string
	// cut breaks the connection behind the body.
	cut bool
	// delay is waited for before anything is sent.
	delay time.Duration
	// stall, if not nil, is waited for behind the body; the request's end ends it too.
	stall chan struct{}
}

// received is one request as the upstream got it.
type received struct {
	method, uri string
	header      http.Header
	body        string
}

func (r received) get(path string) gjson.Result { return gjson.Get(r.body, path) }

// names lists the function tools of the request, of both dialects.
func (r received) names() string {
	var names []string
	r.get("tools").ForEach(func(_, tool gjson.Result) bool {
		name := tool.Get("function.name").String()
		if name == "" {
			name = tool.Get("name").String()
		}
		if name == "" {
			name = tool.Get("type").String()
		}
		names = append(names, name)
		return true
	})
	return strings.Join(names, " ")
}

// rig is the whole proxy in front of a scripted upstream.
type rig struct {
	*testing.T
	url  string
	app  *App
	logs *observer.ObservedLogs

	mu       sync.Mutex
	answers  []answer
	requests []received
	gone     chan int // numbers of requests that the proxy has given up
}

// newRig starts the proxy with tool search on and the given settings, as section.key=value.
func newRig(t *testing.T, settings []string, answers ...answer) *rig {
	t.Helper()
	r := &rig{T: t, answers: answers, gone: make(chan int, 64)}
	upstream := httptest.NewServer(r)
	t.Cleanup(upstream.Close)
	r.app, r.url, r.logs = startProxy(t, upstream.URL+"/v1", append([]string{"skills.tool_search_always_loaded=read_file"}, settings...))
	return r
}

// startProxy starts the proxy in front of an upstream, with tool search on and the given settings, as section.key=value.
func startProxy(t *testing.T, upstream string, settings []string) (app *App, url string, logs *observer.ObservedLogs) {
	t.Helper()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	config.AddFlags(flags)
	arguments := []string{"--config", os.DevNull, "--upstream", upstream, "--tool-search", "--set", "upstream.idle_timeout=10s"}
	for _, setting := range settings {
		arguments = append(arguments, "--set", setting)
	}
	if err := flags.Parse(arguments); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(flags)
	if err != nil {
		t.Fatal(err)
	}
	core, logs := observer.New(zapcore.DebugLevel)
	log := zap.New(core)
	if app, err = New(t.Context(), Options{Config: config.NewLive(c, flags, log, nil), Log: log, Version: "test"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = app.Close() })
	proxy := httptest.NewServer(app.Clients)
	t.Cleanup(proxy.Close)
	return app, proxy.URL, logs
}

// ServeHTTP is the upstream.
func (r *rig) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, _ := io.ReadAll(q.Body)
	r.mu.Lock()
	n := len(r.requests)
	r.requests = append(r.requests, received{q.Method, q.RequestURI, q.Header.Clone(), string(body)})
	var a answer
	if n < len(r.answers) {
		a = r.answers[n]
	} else {
		a = answer{status: http.StatusTeapot, body: fmt.Sprintf("there is no answer %d in the script", n)}
	}
	r.mu.Unlock()
	time.Sleep(a.delay)
	for name, values := range a.header {
		w.Header()[name] = values
	}
	if a.status == 0 {
		a.status = http.StatusOK
	}
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.body)
	if a.cut || a.stall != nil {
		_ = http.NewResponseController(w).Flush()
	}
	if a.stall != nil {
		select {
		case <-a.stall:
		case <-q.Context().Done():
			r.gone <- n
		}
	}
	if a.cut {
		panic(http.ErrAbortHandler)
	}
}

// upstream returns the requests that the upstream has got so far.
func (r *rig) upstream() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]received(nil), r.requests...)
}

// want fails unless the upstream has got exactly n requests, and returns them.
func (r *rig) want(n int) []received {
	r.Helper()
	got := r.upstream()
	if len(got) != n {
		r.Fatalf("the upstream got %d requests, want %d: %v", len(got), n, got)
	}
	return got
}

// logged waits for the log entry of a message, and returns its fields.
func (r *rig) logged(message string) map[string]any {
	r.Helper()
	for range 300 { // a request is logged when its client has its answer already
		if found := r.logs.FilterMessage(message).All(); len(found) > 0 {
			return found[0].ContextMap()
		}
		time.Sleep(10 * time.Millisecond)
	}
	r.Fatalf("nothing is logged as %q", message)
	return nil
}

// reply is what the client got.
type reply struct {
	status int
	header http.Header
	body   string
	err    error // of reading the body
}

func (a reply) get(path string) gjson.Result { return gjson.Get(a.body, path) }

// text joins the text of a streamed or whole answer of either dialect.
func (a reply) text() string {
	if !strings.Contains(a.header.Get("Content-Type"), "event-stream") {
		if s := a.get("choices.0.message.content"); s.Exists() {
			return s.String()
		}
		return a.get(`output.#(type=="message").content.0.text`).String()
	}
	var text strings.Builder
	for _, data := range a.data() {
		text.WriteString(gjson.Get(data, "choices.0.delta.content").String())
		if gjson.Get(data, "type").String() == "response.output_text.delta" {
			text.WriteString(gjson.Get(data, "delta").String())
		}
	}
	return text.String()
}

// data lists the data of the events of a stream.
func (a reply) data() []string {
	var list []string
	for line := range strings.Lines(a.body) {
		if data, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "data:"); ok {
			list = append(list, strings.TrimSpace(data))
		}
	}
	return list
}

// all lists the values at a path over all events, leaving out those that are absent or null.
func (a reply) all(path string) (list []string) {
	for _, data := range a.data() {
		if v := gjson.Get(data, path); v.Exists() && v.Type != gjson.Null {
			list = append(list, v.String())
		}
	}
	return list
}

const (
	chatPath      = "/v1/chat/completions"
	responsesPath = "/v1/responses"
)

// post sends a body; headers are names and values in turn.
func (r *rig) post(path, body string, headers ...string) reply {
	r.Helper()
	return r.postTo(r.url+path, body, headers...)
}

// postTo is post to another proxy.
func (r *rig) postTo(url, body string, headers ...string) reply {
	r.Helper()
	request, err := http.NewRequestWithContext(r.Context(), http.MethodPost, url, bytes.NewReader([]byte(body)))
	if err != nil {
		r.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	return r.do(request)
}

func (r *rig) do(request *http.Request) reply {
	r.Helper()
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		r.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return reply{response.StatusCode, response.Header, string(content), err}
}

var (
	isJSON   = http.Header{"Content-Type": {"application/json"}}
	isStream = http.Header{"Content-Type": {"text/event-stream"}}
)

func whole(body string) answer { return answer{header: isJSON, body: body} }

// sse makes a stream out of the data of its events; an element that begins with "event:", ":" or "raw:" is taken as it is.
func sse(events ...string) answer {
	var s strings.Builder
	for _, e := range events {
		if raw, ok := strings.CutPrefix(e, "raw:"); ok {
			s.WriteString(raw)
			continue
		}
		s.WriteString("data: " + e + "\n\n")
	}
	return answer{header: isStream, body: s.String()}
}

// delta is a chunk of Chat Completions with this delta.
func delta(d string) string {
	return `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` + d + `,"finish_reason":null}]}`
}

// finish is a chunk with a finish reason.
func finish(reason string) string {
	return `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}

const done = "[DONE]"

// calls is a delta with one whole call.
func calls(index int, id, name, arguments string) string {
	return delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":%q}}]}`,
		index, id, name, arguments))
}

// searches is a streamed round that searches.
func searches(id, query string) answer {
	return sse(delta(`{"role":"assistant","content":null}`), calls(0, id, "tool_search", `{"query":"`+query+`"}`), finish("tool_calls"), done)
}

// says is a streamed round of text.
func says(text string) answer {
	return sse(delta(`{"role":"assistant","content":""}`), delta(`{"content":"`+text+`"}`), finish("stop"), done)
}

// message is a whole answer with this message.
func message(m, reason string) answer {
	return whole(`{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":` + m +
		`,"finish_reason":"` + reason + `"}],"usage":{"prompt_tokens":10,"completion_tokens":3,"total_tokens":13}}`)
}

// call is a tool call as it stands in a message.
func call(id, name, arguments string) string {
	return fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":%q,"arguments":%q}}`, id, name, arguments)
}

// turn is an assistant message with calls.
func turnOf(list ...string) string {
	return `{"role":"assistant","content":null,"tool_calls":[` + strings.Join(list, ",") + `]}`
}

func function(name string) string {
	return `{"type":"function","function":{"name":"` + name + `","description":"` + strings.ReplaceAll(name, "_", " ") +
		`","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}`
}

func flat(name string) string {
	return `{"type":"function","name":"` + name + `","description":"` + strings.ReplaceAll(name, "_", " ") +
		`","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}`
}

var (
	threeTools = "[" + function("read_file") + "," + function("get_weather") + "," + function("send_mail") + "]"
	threeFlat  = "[" + flat("read_file") + "," + flat("get_weather") + "," + flat("send_mail") + "]"
	user       = `{"role":"user","content":"weather in Oslo?"}`
)

// chat is a request of Chat Completions; extra members come first.
func chat(extra, messages, tools string) string {
	return `{"model":"m",` + extra + `"messages":[` + messages + `],"tools":` + tools + `}`
}
