package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/tidwall/gjson"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"tool-search-proxy/internal/openai"
	"tool-search-proxy/internal/session"
	"tool-search-proxy/internal/turn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// projected is the report of a request with one hidden round.
func projected() *turn.Report {
	start := time.Now().Add(-time.Second)
	return &turn.Report{
		Dialect: "chat", Model: "m", Stream: true, Start: start, End: start.Add(time.Second), Status: 200, SessionID: "s", NewAsk: true,
		Tools: 100, Deferred: 95, Loaded: []string{"get_weather"}, Called: []string{"get_weather"},
		Searches: []turn.Search{{Round: 0, Loaded: []string{"get_weather"}}},
		Rounds: []turn.RoundReport{
			{Hidden: true, Start: start, Status: 200, Sent: 5000, Tools: 2000, Duration: 300 * time.Millisecond, Tokens: openai.Tokens{Input: 900, Output: 20}},
			{Start: start, Status: 200, Sent: 6000, Tools: 3000, Duration: 500 * time.Millisecond, FirstEvent: 100 * time.Millisecond, Tokens: openai.Tokens{Input: 1200, Output: 30, Cached: 500}},
		},
		ClientTools: []byte("[" + strings.Repeat(`{"type":"function","function":{"name":"x","description":"does something useful"}},`, 1000) + "{}]"),
		Directory:   strings.Repeat("a_tool\n", 95),
	}
}

func newRecorder(t *testing.T, o Options) (*Recorder, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	o.Log = zap.New(core)
	if o.Sessions == nil {
		o.Sessions = func(context.Context) session.Stats {
			return session.Stats{Sessions: 3, Bytes: 400, Evictions: 1, Expired: -1}
		}
	}
	r := New(o)
	t.Cleanup(r.Close)
	return r, logs
}

func get(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

func TestMetricsOfAProjectedRequest(t *testing.T) {
	r, _ := newRecorder(t, Options{Version: "v"})
	r.Turn(projected())
	text := get(t, r.Admin(AdminOptions{}), "/metrics").Body.String()
	for _, want := range []string{
		`tool_search_proxy_requests_total{code="200",dialect="chat",outcome="projected"} 1`,
		`tool_search_proxy_rounds_total{dialect="chat",kind="hidden"} 1`, `tool_search_proxy_rounds_total{dialect="chat",kind="visible"} 1`,
		`tool_search_proxy_searches_total{outcome="loaded"} 1`, `tool_search_proxy_usage_tokens_total{kind="cached_input"} 500`,
		`tool_search_proxy_usage_tokens_total{kind="input"} 2100`, `tool_search_proxy_tools_bytes_total{side="upstream"} 6330`,
		`tool_search_proxy_sessions 3`, `tool_search_proxy_sessions_evicted_total 1`, `tool_search_proxy_added_latency_seconds_count 1`,
		`tool_search_proxy_build_info{go_version=`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing", want)
		}
	}
	if strings.Contains(text, "tool_search_proxy_sessions_expired_total") {
		t.Error("what the store cannot tell is told")
	}
	if problems, err := testutil.GatherAndLint(r.registry); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}
}

func TestMetricsOfOtherOutcomes(t *testing.T) {
	r, _ := newRecorder(t, Options{})
	now := time.Now()
	r.Turn(&turn.Report{Dialect: "responses", Reason: "no_tools", Status: 200, Start: now, End: now})
	r.Turn(&turn.Report{Dialect: "chat", Failed: "upstream", Status: 502, Start: now, End: now, StoreFailed: true})
	r.Turn(&turn.Report{Dialect: "chat", ClientGone: true, Failed: "upstream", Status: 200, Start: now, End: now})
	r.Turn(&turn.Report{Dialect: "chat", Reason: "fail_open", FailOpen: true, Status: 200, Start: now, End: now})
	r.Access(Access{Method: "GET", Path: "/v1/models", Status: 200})
	text := get(t, r.Admin(AdminOptions{}), "/metrics").Body.String()
	for _, want := range []string{
		`tool_search_proxy_passthrough_total{dialect="responses",reason="no_tools"} 1`, `outcome="failed"} 1`, `outcome="client_gone"} 1`,
		`outcome="fail_open"} 1`, `tool_search_proxy_fail_opens_total 1`, `tool_search_proxy_session_store_errors_total 1`,
		`tool_search_proxy_other_requests_total{code="200"} 1`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing", want)
		}
	}
}

func TestSavingsAreNetOfHiddenRounds(t *testing.T) {
	s, ok := savingsOf(projected())
	if !ok {
		t.Fatal("a projected request has no savings")
	}
	if s.After != 2000+3000+2*95*7 || s.HiddenBytes != 2000+95*7 || s.HiddenTokens != 920 {
		t.Errorf("savings %+v", s)
	}
	// At four bytes a token: before less after, less what the hidden round read and wrote beside its tools.
	if got, want := s.net(4), (s.Before-s.After)/4-(920-(2000+95*7)/4); got < want-1 || got > want+1 {
		t.Errorf("net %d, want about %d", got, want)
	}
	if _, ok := savingsOf(&turn.Report{Reason: "no_tools", ClientTools: []byte("[]")}); ok {
		t.Error("a request that passed has savings")
	}
}

func TestTokensAreEstimatedFromSamples(t *testing.T) {
	var y yardstick
	if y.measure() != usualBytesPerToken {
		t.Error("without samples the usual value holds")
	}
	tools := projected().ClientTools
	y.sample(tools)
	if got, want := y.measure(), float64(maxSampleBytes)/float64(CountTokens(tools[:maxSampleBytes])); got != want {
		t.Errorf("%f bytes a token, want %f", got, want)
	}
	if n := CountTokens([]byte("hello world")); n != 2 {
		t.Errorf("hello world has %d tokens", n)
	}
}

func TestOneLogLineARequest(t *testing.T) {
	r, logs := newRecorder(t, Options{})
	r.Turn(projected())
	r.Access(Access{Method: "POST", Path: "/v1/x", Status: 413, Refused: "request_too_large"})
	entries := logs.All()
	if len(entries) != 2 || entries[0].Message != "request" || entries[1].Level != zapcore.WarnLevel {
		t.Fatalf("logged %v", entries)
	}
	fields := entries[0].ContextMap()
	for name, want := range map[string]any{"outcome": "projected", "rounds": int64(2), "input_tokens": int64(2100), "session": "s", "tools_bytes_after": int64(6330)} {
		if fields[name] != want {
			t.Errorf("%s is %v, want %v", name, fields[name], want)
		}
	}
}

func TestAuditIsReported(t *testing.T) {
	r, logs := newRecorder(t, Options{})
	report := projected()
	report.Reason, report.Rounds, report.Searches, report.Called, report.Loaded = "audit", nil, nil, nil, nil
	report.Audit = &turn.Audit{Tools: 2000, Tokens: openai.Tokens{Input: 900, Cached: 100, Output: 7}, Calls: []turn.AuditCall{
		{Name: "end", AlwaysLoaded: true}, {Name: "get_weather", RankByName: 1, RankByWords: 0}, {Name: "x", RankByWords: 9}, {Name: "y"},
	}}
	r.Turn(report)
	admin := r.Admin(AdminOptions{})
	status := get(t, admin, "/status.json").Body.String()
	if calls := gjson.Get(status, "totals.audit_calls"); calls.Raw != `{"always_loaded":1,"first_5":1,"later":1,"not_found":1}` {
		t.Errorf("audit calls %s", calls.Raw)
	}
	if could := gjson.Get(status, "totals.audit_could_save_tokens_estimated").Int(); could < 10000 {
		t.Errorf("could save %d", could)
	}
	if gjson.Get(status, "totals.net_saved_tokens_estimated").Int() != 0 {
		t.Error("an audit has saved something")
	}
	if logs.FilterField(zap.String("outcome", "passed")).FilterField(zap.Int64("input_tokens", 900)).Len() != 1 {
		t.Errorf("logged %v", logs.All())
	}
	if n := gjson.Get(status, "totals.input_tokens_measured").Int(); n != 900 {
		t.Errorf("%d input tokens were measured", n)
	}
	// What is called and would be deferred is what an operator may want always loaded.
	for range 5 {
		r.Turn(report)
	}
	used := gjson.Get(get(t, admin, "/status.json").Body.String(), `used_deferred_tools`)
	if used.Get(`#(name=="get_weather").calls`).Int() != 6 || !used.Get(`#(name=="get_weather").always_loaded_recommended`).Bool() ||
		used.Get(`#(name=="end")`).Exists() {
		t.Errorf("used tools are %s", used)
	}
}

func TestStatusGroupsAsks(t *testing.T) {
	r, _ := newRecorder(t, Options{Version: "v1"})
	first := projected()
	r.Turn(first)
	second := projected()
	second.NewAsk, second.Searches, second.Rounds = false, nil, second.Rounds[1:]
	r.Turn(second)
	for range 5 {
		r.Turn(projected())
	}
	admin := r.Admin(AdminOptions{Config: func(w io.Writer) error {
		_, err := io.WriteString(w, "[server]\n")
		return err
	}})
	w := get(t, admin, "/status.json")
	status := gjson.Parse(w.Body.String())
	if status.Get("asks.#").Int() != 6 || status.Get("asks.0.rounds.#").Int() != 3 || status.Get("asks.0.rounds.0.searches.0.outcome").String() != "loaded" {
		t.Errorf("asks %s", status.Get("asks"))
	}
	if u := status.Get("used_deferred_tools.0"); u.Get("name").String() != "get_weather" || u.Get("calls").Int() != 7 || !u.Get("always_loaded_recommended").Bool() {
		t.Errorf("used %s", u.Raw)
	}
	if status.Get("configuration").String() != "[server]\n" || status.Get("version").String() != "v1" || status.Get("periods.#").Int() == 0 {
		t.Errorf("status %s", status.Raw)
	}
	for range 2 * maxAskStatus {
		r.Turn(projected())
	}
	if n := gjson.Get(get(t, admin, "/status.json").Body.String(), "asks.#").Int(); n != maxAskStatus {
		t.Errorf("%d asks are kept", n)
	}
}

func TestAdminPages(t *testing.T) {
	r, _ := newRecorder(t, Options{})
	ready := map[string]func(context.Context) error{"upstream": func(context.Context) error { return nil }}
	admin := r.Admin(AdminOptions{Ready: ready})
	for path, kind := range map[string]string{"/": "text/html", "/status.js": "text/javascript", "/status.css": "text/css", "/healthz": "text/plain", "/metrics": "text/plain", "/status.json": "application/json"} {
		w := get(t, admin, path)
		if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), kind) || !strings.Contains(w.Header().Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
	}
	if w := get(t, admin, "/readyz"); w.Code != 200 || w.Body.String() != `{"upstream":"ok"}` {
		t.Errorf("ready: %d %s", w.Code, w.Body)
	}
	ready["sessions"] = func(context.Context) error { return errors.New("away") }
	if w := get(t, admin, "/readyz"); w.Code != 503 || gjson.Get(w.Body.String(), "sessions").String() != "away" {
		t.Errorf("not ready: %d %s", w.Code, w.Body)
	}
	if w := get(t, admin, "/nothing"); w.Code != 404 {
		t.Errorf("an unknown page gives %d", w.Code)
	}
	w := httptest.NewRecorder()
	admin.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/status.json", nil))
	if w.Code != 405 {
		t.Errorf("a POST gives %d", w.Code)
	}
}

func TestDashboardNamesMetricsThatExist(t *testing.T) {
	content, err := os.ReadFile("../../deploy/grafana-dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(content) {
		t.Fatal("the dashboard is no JSON")
	}
	text := everyMetric(t)
	names := regexp.MustCompile(namespace+`_[a-z0-9_]+`).FindAllString(string(content), -1)
	if len(names) < 10 {
		t.Errorf("the dashboard shows only %d metrics", len(names))
	}
	for _, name := range names {
		if !strings.Contains(text, "\n"+name) {
			t.Errorf("the dashboard shows %s, which does not exist", name)
		}
	}
}

// everyMetric returns the metrics when each of them has a value.
func everyMetric(t *testing.T) string {
	t.Helper()
	r, _ := newRecorder(t, Options{Sessions: func(context.Context) session.Stats { return session.Stats{} }})
	r.Turn(projected())
	now := time.Now()
	r.Turn(&turn.Report{Dialect: "chat", Reason: "audit", Failed: "upstream", Status: 502, Start: now, End: now,
		Audit: &turn.Audit{Calls: []turn.AuditCall{{Name: "a"}}}})
	r.Access(Access{Status: 200})
	return get(t, r.Admin(AdminOptions{}), "/metrics").Body.String()
}

func TestTheDocumentationNamesEveryMetric(t *testing.T) {
	content, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(content), "\n## Metrics")
	documented := map[string]bool{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 2 {
			continue
		}
		for _, name := range regexp.MustCompile("`[a-z_0-9]+`").FindAllString(cells[1], -1) {
			documented[strings.Trim(name, "`")] = true
		}
	}
	found := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^# TYPE `+namespace+`_(\S+) `).FindAllStringSubmatch(everyMetric(t), -1) {
		found[match[1]] = true
		if !documented[match[1]] {
			t.Errorf("%s is not documented", match[1])
		}
	}
	for name := range documented {
		if !found[name] {
			t.Errorf("%s is documented and does not exist", name)
		}
	}
}

func TestNotices(t *testing.T) {
	const text = "tool_search，我调用你了，我要调用你了！"
	search := turn.Notice{Kind: turn.NoticeSearch, Tool: "tool_search", Count: 1}
	target := turn.Notice{Kind: turn.NoticeTarget, Tool: "get_weather", Count: 3}
	silent := turn.Notice{Kind: turn.NoticeTarget, Tool: "get_weather", Count: 1, Silent: true}
	end := turn.Notice{Kind: turn.NoticeTarget, Tool: "end", Count: 1}
	want := map[string][]string{
		"none": {"", "", "", ""}, "agent": {"", "", "", ""},
		"tools": {text, "get_weather，我调用你了，我要调用你了！ x3", "get_weather，我调用你了，我要调用你了！", "end，我调用你了，我要调用你了！"},
		"clean": {text, "get_weather，我调用你了，我要调用你了！ x3", "", ""},
		"all":   {text, "get_weather，我调用你了，我要调用你了！ x3", "get_weather，我调用你了，我要调用你了！", "end，我调用你了，我要调用你了！"},
	}
	for mode, list := range want {
		r, _ := newRecorder(t, Options{Notices: NoticeOptions{Mode: mode, Text: text, Delivery: "sse"}})
		logging, logs := newRecorder(t, Options{Notices: NoticeOptions{Mode: mode, Text: text, Delivery: "log"}})
		for i, n := range []turn.Notice{search, target, silent, end} {
			if got := r.Notice(n); got != list[i] {
				t.Errorf("%s: notice %d is %q, want %q", mode, i, got, list[i])
			}
			before := logs.Len()
			if comment := logging.Notice(n); comment != "" || (logs.Len() > before) != (list[i] != "") {
				t.Errorf("%s: notice %d: comment %q, logged %v", mode, i, comment, logs.Len() > before)
			}
		}
	}
	r, _ := newRecorder(t, Options{Notices: NoticeOptions{Mode: "all", Text: "one\ntwo", Delivery: "sse"}})
	if got := r.Notice(target); got != "get_weather: one two x3" {
		t.Errorf("got %q", got)
	}
}

func TestWebhookGetsNoticesAndNeverDelays(t *testing.T) {
	var mu sync.Mutex
	var bodies []string
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		mu.Lock()
		defer mu.Unlock()
		bodies = append(bodies, string(body))
	}))
	r, _ := newRecorder(t, Options{Notices: NoticeOptions{Mode: "all", Text: "tool_search!", Delivery: "webhook", WebhookURL: hook.URL}})
	r.Notice(turn.Notice{Kind: turn.NoticeSearch, Tool: "tool_search", Count: 1})
	for range 500 {
		mu.Lock()
		n := len(bodies)
		mu.Unlock()
		if n > 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	mu.Lock()
	if len(bodies) != 1 || bodies[0] != `{"text":"tool_search!"}` {
		t.Errorf("the webhook got %q", bodies)
	}
	mu.Unlock()
	hook.Close()

	stall := make(chan struct{})
	dead := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		select {
		case <-stall:
		case <-q.Context().Done():
		}
	}))
	defer dead.Close()
	defer close(stall)
	r, logs := newRecorder(t, Options{Notices: NoticeOptions{Mode: "all", Text: "x", Delivery: "webhook", WebhookURL: dead.URL}})
	start := time.Now()
	for range maxNotices + 50 {
		r.Notice(turn.Notice{Kind: turn.NoticeSearch, Tool: "tool_search", Count: 1})
	}
	if waited := time.Since(start); waited > time.Second {
		t.Errorf("the notices took %v", waited)
	}
	if logs.FilterMessageSnippet("dropped").Len() == 0 {
		t.Error("notices were lost silently")
	}
}

func TestTracesGoToTheCollector(t *testing.T) {
	received := make(chan string, 8)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		received <- q.URL.Path + " " + string(body)
	}))
	defer collector.Close()
	r := New(Options{OTLPEndpoint: collector.URL, Version: "v"})
	report := projected()
	report.TraceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	r.Turn(report)
	r.Close()
	path, body, _ := strings.Cut(<-received, " ")
	spans := gjson.Get(body, "resourceSpans.0.scopeSpans.0.spans")
	if path != "/v1/traces" || spans.Get("#").Int() != 3 {
		t.Fatalf("the collector got %s %s", path, body)
	}
	root := spans.Get(`#(name=="POST chat")`)
	if root.Get("traceId").String() != "0af7651916cd43dd8448eb211c80319c" || root.Get("parentSpanId").String() != "b7ad6b7169203331" {
		t.Errorf("the root span is %s", root.Raw)
	}
	if rounds := spans.Get(`#(name=="round")#.parentSpanId`).Array(); len(rounds) != 2 || rounds[0].String() != root.Get("spanId").String() {
		t.Errorf("the rounds are %v", rounds)
	}
	if gjson.Get(body, `resourceSpans.0.resource.attributes.#(key=="service.name").value.stringValue`).String() != "tool-search-proxy" {
		t.Errorf("resource of %s", body)
	}
}

// TestLostTracesAreLogged: a collector that refuses is the log's business, and nobody else's.
func TestLostTracesAreLogged(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	r := New(Options{OTLPEndpoint: "http://127.0.0.1:1", Version: "v", Log: zap.New(core)})
	r.Turn(projected())
	r.Close()
	if logs.FilterMessage("traces are lost").Len() != 1 {
		t.Errorf("logged is %v", logs.All())
	}
}
