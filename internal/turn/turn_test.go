package turn_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"tool-search-proxy/internal/openai"
	"tool-search-proxy/internal/projection"
	"tool-search-proxy/internal/session"
	"tool-search-proxy/internal/turn"
)

// scripted plays answers in order and keeps the requests.
type scripted struct {
	mu      sync.Mutex
	answers []answer
	bodies  []string
	headers []http.Header
}

type answer struct {
	status int
	kind   string // content type
	header http.Header
	body   string
}

func sse(events ...string) answer {
	var s strings.Builder
	for _, e := range events {
		s.WriteString("data: " + e + "\n\n")
	}
	return answer{status: 200, kind: "text/event-stream", body: s.String()}
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	n := len(s.bodies)
	s.bodies = append(s.bodies, string(body))
	s.headers = append(s.headers, r.Header.Clone())
	s.mu.Unlock()
	if n >= len(s.answers) {
		w.WriteHeader(500)
		fmt.Fprintf(w, "no answer %d in the script", n)
		return
	}
	a := s.answers[n]
	for k, v := range a.header {
		w.Header()[k] = v
	}
	w.Header().Set("Content-Type", a.kind)
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.body)
}

// direct is the simplest Upstream.
type direct struct{ url string }

func (d direct) Send(ctx context.Context, in *http.Request, body []byte, edit func(http.Header)) (*http.Response, error) {
	out, err := http.NewRequestWithContext(ctx, in.Method, d.url+in.URL.Path, strings.NewReader(string(body)))
	if err != nil {
		return nil, err
	}
	out.Header = in.Header.Clone()
	if edit != nil {
		edit(out.Header)
	}
	return http.DefaultTransport.RoundTrip(out)
}

type rig struct {
	*scripted
	engine  *turn.Engine
	reports []*turn.Report
}

func newRig(t *testing.T, change func(*projection.Policy), answers ...answer) *rig {
	t.Helper()
	s := &scripted{answers: answers}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	policy := projection.Policy{
		Enabled: true, AlwaysLoaded: []string{"read_file"}, VirtualName: "tool_search", Strict: "omit", MaxResults: 5,
		MaxRounds: 3, MaxExposed: 128, MinDeferred: 1, TimeLimit: time.Minute, FailOpen: true, UsageDetails: true,
		RequestIDHeader: []string{"X-Request-Id"},
	}
	if change != nil {
		change(&policy)
	}
	frozen := turn.NewPolicy(policy)
	r := &rig{scripted: s}
	r.engine = turn.New(turn.Options{
		Upstream: direct{server.URL},
		Passthrough: http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) {
			body, _ := io.ReadAll(in.Body)
			resp, err := direct{server.URL}.Send(in.Context(), in, body, nil)
			if err != nil {
				w.WriteHeader(502)
				return
			}
			defer resp.Body.Close()
			w.WriteHeader(resp.StatusCode)
			_, _ = io.Copy(w, resp.Body)
		}),
		Sessions: session.NewMemory(session.MemoryOptions{TTL: time.Hour, MaxSessions: 100, MaxBytes: 1 << 20}),
		Secret:   []byte("secret"), Policy: func() *turn.Policy { return frozen },
		Observe: func(rep *turn.Report) { r.reports = append(r.reports, rep) },
		Log:     zap.NewNop(), MaxAnswerBytes: 1 << 20, MaxEventBytes: 1 << 20,
		LatchRefusals: 3, LatchTime: time.Minute,
	})
	return r
}

func (r *rig) post(t *testing.T, d openai.Dialect, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	path := "/v1/chat/completions"
	if d.Name() == "responses" {
		path = "/v1/responses"
	}
	request := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	r.engine.Serve(w, request, d, turn.Body{Raw: []byte(body), JSON: []byte(body)})
	return w
}

const tools = `[{"type":"function","function":{"name":"read_file","parameters":{"type":"object"}}},` +
	`{"type":"function","function":{"name":"get_weather","description":"weather","parameters":{"type":"object"}}},` +
	`{"type":"function","function":{"name":"send_mail","description":"mail","parameters":{"type":"object"}}}]`

func chunk(delta, finish string) string {
	if finish == "" {
		finish = "null"
	} else {
		finish = `"` + finish + `"`
	}
	return `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` + delta +
		`,"finish_reason":` + finish + `}]}`
}

func call(index int, id, name, args string) string {
	return fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":%q}}]}`,
		index, id, name, args)
}

func TestHiddenRoundStaysOneStream(t *testing.T) {
	r := newRig(t, nil,
		sse(chunk(`{"role":"assistant","content":""}`, ""), chunk(call(0, "s1", "tool_search", `{"query":"weather"}`), ""),
			chunk(`{}`, "tool_calls"), "[DONE]"),
		sse(chunk(`{"role":"assistant","content":"Lo"}`, ""), chunk(`{"content":"ading"}`, ""), chunk(`{}`, "stop"), "[DONE]"),
	)
	w := r.post(t, openai.Chat, `{"model":"m","stream":true,"messages":[{"role":"user","content":"weather in Oslo?"}],"tools":`+
		tools+`}`)
	got := w.Body.String()
	want := "data: " + chunk(`{"role":"assistant","content":"Lo"}`, "") + "\n\ndata: " + chunk(`{"content":"ading"}`, "") +
		"\n\ndata: " + chunk(`{}`, "stop") + "\n\ndata: [DONE]\n\n"
	if got != want {
		t.Errorf("the client got\n%s\nwant\n%s", got, want)
	}
	if len(r.bodies) != 2 {
		t.Fatalf("%d upstream requests, want 2", len(r.bodies))
	}
	names := func(body string) string { return gjson.Get(body, "tools.#.function.name").Raw }
	if got := names(r.bodies[0]); got != `["read_file","tool_search"]` {
		t.Errorf("round one exposes %s", got)
	}
	if got := names(r.bodies[1]); got != `["read_file","tool_search","get_weather"]` {
		t.Errorf("round two exposes %s", got)
	}
	if !strings.Contains(gjson.Get(r.bodies[0], "messages.0.content").String(), "\nget_weather\nsend_mail\n</available") {
		t.Errorf("no directory in %s", r.bodies[0])
	}
}

// leaving is a client that hangs up as soon as it has read some text.
type leaving struct {
	*httptest.ResponseRecorder
	after string
	leave func()
	left  bool
}

func (l *leaving) Write(b []byte) (int, error) {
	if l.left {
		return 0, io.ErrClosedPipe
	}
	n, err := l.ResponseRecorder.Write(b)
	if strings.Contains(l.Body.String(), l.after) {
		l.left = true
		l.leave()
	}
	return n, err
}

func TestClientThatLeaves(t *testing.T) {
	const whole = `{"id":"c1","choices":[{"index":0,"message":{"role":"assistant","content":"the end"},"finish_reason":"stop"}]}`
	stream := sse(chunk(`{"role":"assistant","content":""}`, ""), chunk(`{"content":"first"}`, ""), chunk(`{}`, "stop"), "[DONE]")
	off := func(p *projection.Policy) { p.BypassModels = []string{"m"} }
	for _, test := range []struct {
		name   string
		stream string
		answer answer
		change func(*projection.Policy)
		after  string
		gone   bool
	}{
		{"with all of a whole answer", "false", answer{status: 200, kind: "application/json", body: whole}, nil, "the end", false},
		{"with all of a stream", "true", stream, nil, "[DONE]", false},
		{"in the middle of a stream", "true", stream, nil, "first", true},
		{"with all of an answer that passed through", "false", answer{status: 200, kind: "application/json", body: whole}, off, "the end", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, test.change, test.answer)
			body := []byte(`{"model":"m","stream":` + test.stream + `,"messages":[{"role":"user","content":"hi"}],"tools":` + tools + `}`)
			ctx, leave := context.WithCancel(t.Context())
			request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/chat/completions", nil)
			r.engine.Serve(&leaving{ResponseRecorder: httptest.NewRecorder(), after: test.after, leave: leave}, request, openai.Chat, turn.Body{Raw: body, JSON: body})
			if len(r.reports) != 1 || r.reports[0].ClientGone != test.gone || ctx.Err() == nil {
				t.Errorf("the context says %v, the report %+v", ctx.Err(), r.reports[0])
			}
		})
	}
}
