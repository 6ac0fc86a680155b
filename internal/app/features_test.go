package app

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/spf13/pflag"
	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"tool-search-proxy/internal/config"
)

var okAnswer = message(`{"role":"assistant","content":"ok"}`, "stop")

// loads is a whole round that loads tools by name.
func loads(id, names string) answer {
	return message(turnOf(call(id, "tool_search", `{"query":"select:`+names+`"}`)), "tool_calls")
}

func results(id, name string) string {
	return turnOf(call(id, name, "{}")) + `,{"role":"tool","tool_call_id":"` + id + `","content":"1"}`
}

func TestOffIsByteForByte(t *testing.T) {
	bodies := map[string]string{
		chatPath:      "{ \"model\" : \"m\",\r\n\"messages\":[" + user + "], \"tools\":" + threeTools + ",\"x\":1.0}  ",
		responsesPath: `{"input":"x","tools":` + threeFlat + `}`,
	}
	for path, body := range bodies {
		r := newRig(t, []string{"skills.tool_search_enabled=false"}, whole(`{"a":1.0}`))
		r.app.live = liveOf(t, r, "--tool-search=false")
		a := r.post(path, body)
		if q := r.want(1)[0]; q.body != body || a.body != `{"a":1.0}` || a.header.Get("X-Tool-Search-Request-Id") != "" {
			t.Errorf("the upstream got %q, the client %v %s", q.body, a.header, a.body)
		}
	}
}

// liveOf loads a configuration for an app that is there already.
func liveOf(t *testing.T, r *rig, arguments ...string) *config.Live {
	t.Helper()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	config.AddFlags(flags)
	if err := flags.Parse(append([]string{"--config", os.DevNull, "--upstream", r.app.live.Current().Upstream.BaseURL}, arguments...)); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(flags)
	if err != nil {
		t.Fatal(err)
	}
	return config.NewLive(c, flags, zap.NewNop(), nil)
}

func TestFiltersComeFirst(t *testing.T) {
	allowed := `"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"read_file"}},{"type":"function","function":{"name":"send_mail"}}]}},`
	r := newRig(t, nil, loads("s1", "get_weather,send_mail"), okAnswer)
	r.post(chatPath, chat(allowed, user, threeTools))
	got := r.want(2)
	if s := got[0].get("messages.0.content").String(); strings.Contains(s, "get_weather") || !strings.Contains(s, "\nsend_mail\n") {
		t.Errorf("the directory is %s", s)
	}
	if got[1].names() != "read_file tool_search send_mail" || !strings.Contains(got[1].body, `\"not_found\":[\"get_weather\"]`) {
		t.Errorf("round two is %s", got[1].body)
	}
	r = newRig(t, []string{"skills.tool_search_hidden_tools=get_*"}, message(turnOf(call("g", "get_weather", "{}")), "tool_calls"), okAnswer)
	r.post(chatPath, chat("", user, threeTools))
	got = r.want(2)
	if strings.Contains(got[0].body, "get_weather") || strings.Contains(got[1].names(), "get_weather") {
		t.Errorf("a hidden tool reaches the model: %s\n%s", got[0].body, got[1].body)
	}
}

func TestPrefetch(t *testing.T) {
	for _, test := range []struct {
		hide, header string
		names        string
		directory    bool // holds the prefetched tool
	}{
		{"true", "get_weather", "read_file tool_search", false},
		{"true", "get_weather=failed", "read_file get_weather tool_search", false},
		{"true", "", "read_file get_weather tool_search", false},
		{"true", "other, get_weather=ok", "read_file tool_search", false},
		{"false", "get_weather", "read_file get_weather tool_search", false},
	} {
		r := newRig(t, []string{"skills.prefetch_tools=get_weather", "skills.prefetch_tools_hide=" + test.hide},
			message(turnOf(call("w1", "read_file", "{}")), "tool_calls"), okAnswer)
		r.post(chatPath, chat("", user, threeTools), "X-Tool-Search-Prefetched", test.header)
		// Whatever the next request of the ask says, the ask goes on as it began.
		r.post(chatPath, chat("", user+","+results("w1", "read_file"), threeTools), "X-Tool-Search-Prefetched", "send_mail")
		for i, q := range r.want(2) {
			if q.names() != test.names || strings.Contains(q.get("messages.0.content").String(), "\nget_weather\n") || q.header.Get("X-Tool-Search-Prefetched") != "" {
				t.Errorf("%+v: request %d is %s", test, i+1, q.body)
			}
		}
	}
}

func TestMainAgentOnly(t *testing.T) {
	body := chat("", user, threeTools)
	r := newRig(t, []string{"skills.tool_search_bypass_models=m*"}, okAnswer)
	r.post(chatPath, body)
	if q := r.want(1)[0]; q.body != body {
		t.Errorf("a bypassed model gets %s", q.body)
	}
	r = newRig(t, nil, okAnswer)
	r.post(chatPath, body, "X-Tool-Search", "off")
	if q := r.want(1)[0]; q.body != body || q.header.Get("X-Tool-Search") != "" {
		t.Errorf("switched off the upstream gets %v %s", q.header, q.body)
	}
	for allowed, projected := range map[string]bool{"true": true, "false": false} {
		r = newRig(t, nil, okAnswer)
		r.app.live = liveOf(t, r, "--set", "skills.tool_search_allow_header="+allowed)
		r.post(chatPath, body, "X-Tool-Search", "on")
		if q := r.want(1)[0]; (q.body != body) != projected {
			t.Errorf("allowed %s: the upstream gets %s", allowed, q.body)
		}
	}
}

func TestDotsInNames(t *testing.T) {
	tools := "[" + function("music.play") + "," + function("a-_-b") + "," + function("read_file") + "]"
	r := newRig(t, []string{"skills.tool_name_dot_separator=-_-"},
		loads("s1", "music.play"), message(turnOf(call("p1", "music-_-play", "{}")), "tool_calls"), okAnswer)
	a := r.post(chatPath, chat("", user, tools))
	got := r.want(2)
	if s := got[0].get("messages.0.content").String(); !strings.Contains(s, "\nmusic.play\n") || !strings.Contains(s, "\na-_-b\n") {
		t.Errorf("the directory is %s", s)
	}
	if got[1].names() != "read_file tool_search music-_-play" {
		t.Errorf("round two exposes %s", got[1].names())
	}
	if a.get("choices.0.message.tool_calls.0.function.name").String() != "music.play" {
		t.Errorf("the client gets %s", a.body)
	}
	r.post(chatPath, chat("", user+","+results("p1", "music.play"), tools))
	q := r.want(3)[2]
	if q.names() != "read_file tool_search music-_-play" || q.get("messages.@reverse.1.tool_calls.0.function.name").String() != "music-_-play" {
		t.Errorf("the next request is %s", q.body)
	}
}

func TestVirtualNameAndStrict(t *testing.T) {
	r := newRig(t, []string{"skills.tool_search_name=find_tools", "skills.tool_search_strict=true"},
		message(turnOf(call("s", "find_tools", `{"query":"mail","max_results":null}`)), "tool_calls"), okAnswer)
	a := r.post(chatPath, chat("", user, threeTools))
	got := r.want(2)
	tool := got[0].get(`tools.#(function.name=="find_tools").function`)
	if !tool.Get("strict").Bool() || tool.Get("parameters.additionalProperties").Raw != "false" || tool.Get("parameters.required.#").Int() != 2 {
		t.Errorf("the virtual tool is %s", tool.Raw)
	}
	if a.text() != "ok" || got[1].names() != "read_file find_tools send_mail" || !strings.Contains(got[0].body, "find_tools") {
		t.Errorf("round two is %s", got[1].body)
	}
}

func TestTextCalls(t *testing.T) {
	text := `{\"name\":\"tool_search\",\"arguments\":{\"query\":\"select:send_mail\"}}`
	hidden := `<function=get_weather></function>`
	for _, stream := range []bool{false, true} {
		script := func(text string) answer {
			if stream {
				var deltas []string
				for i := 0; i < len(text); i += 9 {
					part := text[i:min(i+9, len(text))]
					if strings.HasSuffix(part, `\`) { // an escape is never cut
						part, i = text[i:min(i+10, len(text))], i+1
					}
					deltas = append(deltas, delta(`{"content":"`+part+`"}`))
				}
				return sse(append(deltas, finish("stop"), done)...)
			}
			return message(`{"role":"assistant","content":"`+text+`"}`, "stop")
		}
		body := chat(fmt.Sprintf(`"stream":%v,`, stream), user, threeTools)
		r := newRig(t, []string{"skills.tool_search_text_calls=true"}, script(text), script(hidden), script("plain <b>prose</b>"))
		a := r.post(chatPath, body)
		noSearch(t, a)
		if got := r.want(3); got[1].names() != "read_file tool_search send_mail" || !strings.Contains(got[2].body, "not loaded") || a.text() != "plain <b>prose</b>" {
			t.Errorf("stream %v: the client got %s; round three is %s", stream, a.body, got[2].body)
		}
		r = newRig(t, nil, script(text))
		if a := r.post(chatPath, body); !strings.Contains(a.text(), "select:send_mail") {
			t.Errorf("stream %v: switched off the client got %s", stream, a.body)
		}
		r.want(1)
	}
}

func TestNoticesInTheStream(t *testing.T) {
	r := newRig(t, []string{"easter_egg.agent_call_message_enabled=tools", "easter_egg.agent_call_message_delivery=sse"},
		sse(delta(`{"role":"assistant","content":"hm "}`), calls(0, "s1", "tool_search", `{"query":"a"}`), calls(1, "s2", "tool_search", `{"query":"mail"}`), finish("tool_calls"), done),
		sse(calls(0, "w", "send_mail", "{}"), finish("tool_calls"), done))
	a := r.post(chatPath, chat(`"stream":true,`, user, threeTools))
	for _, want := range []string{": tool_search，我调用你了，我要调用你了！ x2\n", ": send_mail，我调用你了，我要调用你了！\n"} {
		if !strings.Contains(a.body, want) {
			t.Errorf("%q is missing in %s", want, a.body)
		}
	}
	if strings.Contains(a.text(), "我") {
		t.Errorf("a notice is in the text: %s", a.text())
	}
}

func TestDebugHeaders(t *testing.T) {
	r := newRig(t, []string{"skills.tool_search_debug_headers=true"}, loads("s1", "send_mail"), okAnswer)
	a := r.post(chatPath, chat("", user, threeTools))
	for name, want := range map[string]string{"Deferred": "2", "Loaded": "1", "Hidden-Rounds": "1", "Bytes-Before": fmt.Sprint(len(chat("", user, threeTools)))} {
		if got := a.header.Get("X-Tool-Search-" + name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got, want := a.header.Get("X-Tool-Search-Bytes-After"), fmt.Sprint(len(r.want(2)[1].body)); got != want {
		t.Errorf("Bytes-After is %s, want %s", got, want)
	}
	r = newRig(t, nil, okAnswer)
	if a := r.post(chatPath, chat("", user, threeTools)); a.header.Get("X-Tool-Search-Deferred") != "" {
		t.Errorf("without leave the headers are %v", a.header)
	}
}

// TestHeartbeat: while a hidden round keeps a stream waiting, comments keep it alive; they change nothing of what comes.
func TestHeartbeat(t *testing.T) {
	const heartbeat = 4 * time.Millisecond
	settings := []string{"server.heartbeat=" + heartbeat.String(), "skills.tool_search_debug_headers=true"}
	late := func(a answer, delay time.Duration) answer {
		a.delay = delay
		return a
	}
	identified := searches("s1", "mail")
	identified.body = strings.Replace(identified.body, "data:", "id: 1\ndata:", 1)
	for name, test := range map[string]struct {
		script []answer
		want   []string
		never  string
	}{
		"text":     {[]answer{searches("s1", "mail"), late(says("hi"), 10*heartbeat)}, []string{": waiting\n\n", `"content":"hi"`, done}, "error"},
		"an error": {[]answer{searches("s1", "mail"), late(answer{status: 500, header: isJSON, body: `{"error":{"message":"boom"}}`}, 10*heartbeat)}, []string{": waiting\n\n", "boom"}, done},
		"a limit": {[]answer{searches("s1", "mail"), late(answer{status: 429, header: http.Header{"Retry-After": {"7"}}, body: `{"error":{"message":"slow down"}}`}, 10*heartbeat)},
			[]string{": waiting\n\n", "slow down Please try again in 7s."}, done},
		"ids": {[]answer{identified, late(says("hi"), 10*heartbeat)}, []string{": waiting\n", `"content":"hi"`, done}, ": waiting\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newRig(t, settings, test.script...).post(chatPath, chat(`"stream":true,`, user, threeTools))
			rest := a.body
			for _, want := range test.want {
				_, after, found := strings.Cut(rest, want)
				if !found {
					t.Errorf("%q is not in its place in %q", want, a.body)
				}
				rest = after
			}
			if strings.Contains(a.body, test.never) {
				t.Errorf("%q is in %q", test.never, a.body)
			}
		})
	}
	// Answers of all kinds arrive in the very moment of a beat, for the race detector to see.
	for i := range 30 {
		second := []answer{says("hi"), okAnswer, {status: 500, header: isJSON, body: "{}"}, {header: http.Header{"Content-Type": {"text/html"}}, body: "<p>"}}[i%4]
		a := newRig(t, settings, searches("s1", "mail"), late(second, heartbeat+time.Duration(i-15)*20*time.Microsecond)).post(chatPath, chat(`"stream":true,`, user, threeTools))
		if strings.Contains(a.body, ": waiting") && !strings.Contains(a.body, "data: ") {
			t.Errorf("a stream became something else: %q", a.body)
		}
	}
}

// TestBrokenAnswersOfPassedRequestsFail: that an answer broke off is told of requests that pass through, too.
func TestBrokenAnswersOfPassedRequestsFail(t *testing.T) {
	cut := says("hi")
	cut.cut = true
	for name, settings := range map[string][]string{"audit": {"skills.tool_search_audit=true"}, "off": {"skills.tool_search_bypass_models=m"}} {
		r := newRig(t, settings, cut)
		if a := r.post(chatPath, chat(`"stream":true,`, user, threeTools)); a.err == nil {
			t.Errorf("%s: half an answer passes for a whole one", name)
		}
		entry := r.logged("request")
		if entry["outcome"] != "failed" || name == "audit" && entry["answer_unread"] != true {
			t.Errorf("%s: logged is %v", name, entry)
		}
	}
}

// TestFailedSendsAreRounds: what the upstream took to fail is not the proxy's own time.
func TestFailedSendsAreRounds(t *testing.T) {
	stalled := okAnswer
	stalled.delay = 400 * time.Millisecond
	r := newRig(t, []string{"upstream.header_timeout=200ms"}, stalled)
	if a := r.post(chatPath, chat("", user, threeTools)); a.status != http.StatusGatewayTimeout {
		t.Errorf("the client gets %d %s", a.status, a.body)
	}
	if entry := r.logged("request"); entry["rounds"] != int64(1) {
		t.Errorf("logged is %v", entry)
	}
	w := httptest.NewRecorder()
	r.app.Operators.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	_, rest, _ := strings.Cut(w.Body.String(), "tool_search_proxy_added_latency_seconds_sum ")
	sum, _, _ := strings.Cut(rest, "\n")
	if seconds, err := strconv.ParseFloat(sum, 64); err != nil || seconds > 0.15 {
		t.Errorf("the proxy's own time is %s s", sum)
	}
}

func TestStatusPageShowsTheConfigurationInForce(t *testing.T) {
	r := newRig(t, nil)
	shown := func() string {
		w := httptest.NewRecorder()
		r.app.Operators.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/status.json", nil))
		return w.Body.String()
	}
	if strings.Contains(shown(), "tool_search_max_results = 7") {
		t.Fatal("the value is there from the start")
	}
	r.app.live = liveOf(t, r, "--set", "skills.tool_search_max_results=7")
	if got := shown(); !strings.Contains(got, "tool_search_max_results = 7") {
		t.Errorf("the page shows %s", got)
	}
}

func TestAnAlwaysLoadedNameThatNoRequestHasIsWarnedOfOnce(t *testing.T) {
	r := newRig(t, []string{"skills.tool_search_always_loaded=read_fil,get_*,nothing_*"}, okAnswer, okAnswer, okAnswer)
	for range 3 {
		r.post(chatPath, chat("", user, threeTools))
	}
	if n := r.logs.FilterMessageSnippet("always_loaded").FilterField(zap.String("name", "read_fil")).Len(); n != 1 || r.logs.FilterMessageSnippet("always_loaded").Len() != 1 {
		t.Errorf("%d warnings: %v", n, r.logs.All())
	}
}

func TestScopeAndKeepUsed(t *testing.T) {
	second := user + "," + results("w1", "send_mail") + `,{"role":"assistant","content":"sent"},{"role":"user","content":"and now?"}`
	for setting, want := range map[string]string{
		"skills.tool_search_scope=ask":          "read_file tool_search",
		"skills.tool_search_scope=conversation": "read_file tool_search get_weather send_mail",
		"skills.tool_search_keep_used=true":     "read_file tool_search send_mail",
	} {
		r := newRig(t, []string{setting}, loads("s1", "get_weather,send_mail"), message(turnOf(call("w1", "send_mail", "{}")), "tool_calls"),
			message(`{"role":"assistant","content":"sent"}`, "stop"), okAnswer)
		r.post(chatPath, chat("", user, threeTools))
		r.post(chatPath, chat("", user+","+results("w1", "send_mail"), threeTools))
		r.post(chatPath, chat("", second, threeTools))
		got := r.want(4)
		if got[2].names() != "read_file tool_search get_weather send_mail" || got[3].names() != want {
			t.Errorf("%s: the ask goes on with %s, the next begins with %s", setting, got[2].names(), got[3].names())
		}
		if !strings.Contains(got[2].body, `"s1"`) || !strings.Contains(got[3].body, `"s1"`) {
			t.Errorf("%s: the hidden round is lost", setting)
		}
	}
}

func TestMinDeferred(t *testing.T) {
	body := chat("", user, threeTools)
	r := newRig(t, []string{"skills.tool_search_min_deferred=3"}, okAnswer)
	r.post(chatPath, body)
	if q := r.want(1)[0]; q.body != body {
		t.Errorf("the upstream gets %s", q.body)
	}
}

func TestFailOpenAndLatch(t *testing.T) {
	refusal := answer{status: 400, header: isJSON, body: `{"error":{"message":"no such tool"}}`}
	body := chat("", user, threeTools)
	r := newRig(t, []string{"upstream.latch_refusals=2"}, refusal, okAnswer, refusal, okAnswer, okAnswer)
	for range 3 {
		if a := r.post(chatPath, body); a.text() != "ok" {
			t.Errorf("the client got %d %s", a.status, a.body)
		}
	}
	got := r.want(5)
	if got[0].body == body || got[1].body != body || got[2].body == body || got[3].body != body || got[4].body != body {
		t.Errorf("the upstream got %v", got)
	}
	r = newRig(t, nil, refusal, refusal, refusal, refusal, okAnswer)
	for range 2 {
		if a := r.post(chatPath, body); a.status != 400 || a.body != refusal.body {
			t.Errorf("a refusal of the request itself gives %d %s", a.status, a.body)
		}
	}
	r.post(chatPath, body)
	if got := r.want(5); got[4].body == body {
		t.Error("a refusal that the request itself meets has latched")
	}
	r = newRig(t, []string{"skills.tool_search_fail_open=false"}, refusal)
	if a := r.post(chatPath, body); a.status != 400 {
		t.Errorf("the client got %d", a.status)
	}
	r.want(1)
}

func TestUsage(t *testing.T) {
	for setting, want := range map[string]string{
		"skills.tool_search_usage=context":       `{"prompt_tokens":10,"completion_tokens":6,"total_tokens":16,"tool_search":{"rounds":2,"input_tokens":20,"output_tokens":6,"cached_tokens":0}}`,
		"skills.tool_search_usage=billed":        `{"prompt_tokens":20,"completion_tokens":6,"total_tokens":26,"tool_search":{"rounds":2,"input_tokens":20,"output_tokens":6,"cached_tokens":0}}`,
		"skills.tool_search_usage_details=false": `{"prompt_tokens":10,"completion_tokens":6,"total_tokens":16}`,
	} {
		r := newRig(t, []string{setting}, loads("s1", "send_mail"), okAnswer)
		if a := r.post(chatPath, chat("", user, threeTools)); a.get("usage").Raw != want {
			t.Errorf("%s: usage %s", setting, a.get("usage").Raw)
		}
	}
}

func TestResponseID(t *testing.T) {
	for setting, want := range map[string][]string{"last": {"resp_1", "resp_2"}, "first": {"resp_1", "resp_1"}} {
		first := answer{header: isStream, body: responsesMessage("resp_1", "Let me look. ",
			`,{"type":"function_call","id":"fc_1","call_id":"c1","name":"tool_search","arguments":"{\"query\":\"mail\"}","status":"completed"}`)}
		r := newRig(t, []string{"skills.tool_search_response_id=" + setting}, first, responsesText("resp_2", "ok"), responsesText("resp_3", "bye"))
		a := r.post(responsesPath, `{"model":"m","stream":true,"input":"x","tools":`+threeFlat+`}`)
		ids := a.all("response.id")
		if got := []string{ids[0], ids[len(ids)-1]}; !slices.Equal(got, want) {
			t.Errorf("%s: ids %q", setting, ids)
		}
		r.post(responsesPath, `{"model":"m","stream":true,"previous_response_id":"`+ids[len(ids)-1]+`","input":"y","tools":`+threeFlat+`}`)
		if q := r.want(3)[2]; q.get("previous_response_id").String() != "resp_2" {
			t.Errorf("%s: the upstream gets %s", setting, q.get("previous_response_id"))
		}
	}
}

func TestSessionIDs(t *testing.T) {
	r := newRig(t, nil, message(turnOf(call("w1", "read_file", "{}")), "tool_calls"), okAnswer, okAnswer)
	a := r.post(chatPath, chat("", user, threeTools), "X-Request-ID", "mine")
	if a.header.Get("X-Tool-Search-Request-Id") != "mine" {
		t.Errorf("the session is %q", a.header.Get("X-Tool-Search-Request-Id"))
	}
	// A fresh ID on the next request of the ask changes nothing.
	a = r.post(chatPath, chat("", user+","+results("w1", "read_file"), threeTools), "X-Request-ID", "fresh")
	if a.header.Get("X-Tool-Search-Request-Id") != "mine" {
		t.Errorf("the session is %q", a.header.Get("X-Tool-Search-Request-Id"))
	}
	if a = r.post(chatPath, chat("", user, threeTools)); !strings.HasPrefix(a.header.Get("X-Tool-Search-Request-Id"), "tsp-") {
		t.Errorf("a new session is %q", a.header.Get("X-Tool-Search-Request-Id"))
	}
}

func TestRandomRequestIDsDoNotFillTheStore(t *testing.T) {
	var answers []answer
	for range 200 {
		answers = append(answers, okAnswer)
	}
	r := newRig(t, nil, answers...)
	for i := range 200 {
		r.post(chatPath, chat("", user, threeTools), "X-Request-ID", fmt.Sprint("random-", i))
	}
	if n := r.app.sessions.Stats(t.Context()).Sessions; n != 0 {
		t.Errorf("%d sessions are kept for asks that have ended", n)
	}
}

func TestAnAskKeepsItsPolicyUnderHotReload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	write := func(content string) {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("[skills]\ntool_search_enabled = true\ntool_search_always_loaded = ['read_file']\n")
	r := newRig(t, nil, message(turnOf(call("w1", "read_file", "{}")), "tool_calls"), message(turnOf(call("w2", "read_file", "{}")), "tool_calls"), okAnswer, okAnswer)
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	config.AddFlags(flags)
	if err := flags.Parse([]string{"--config", path, "--upstream", r.app.live.Current().Upstream.BaseURL}); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(flags)
	if err != nil {
		t.Fatal(err)
	}
	r.app.live = config.NewLive(c, flags, zap.NewNop(), nil)
	r.post(chatPath, chat("", user, threeTools))
	write("[skills]\ntool_search_enabled = true\ntool_search_always_loaded = ['send_mail']\n")
	if err := r.app.live.Reload(); err != nil {
		t.Fatal(err)
	}
	r.post(chatPath, chat("", user+","+results("w1", "read_file"), threeTools))
	write("[skills]\ntool_search_enabled = false\n")
	if err := r.app.live.Reload(); err != nil {
		t.Fatal(err)
	}
	r.post(chatPath, chat("", user+","+results("w1", "read_file")+","+results("w2", "read_file"), threeTools))
	r.post(chatPath, chat("", `{"role":"user","content":"something new"}`, threeTools))
	got := r.want(4)
	if got[0].names() != "read_file tool_search" || got[1].names() != got[0].names() || got[2].names() != got[0].names() {
		t.Errorf("the ask goes on with %s, then %s", got[1].names(), got[2].names())
	}
	if got[3].names() != "read_file get_weather send_mail" {
		t.Errorf("the next ask begins with %s", got[3].names())
	}
}

func TestAudit(t *testing.T) {
	r := newRig(t, nil, message(turnOf(call("g", "get_weather", "{}"), call("f", "read_file", "{}")), "tool_calls"), sse(calls(0, "g", "send_mail", "{}"), finish("tool_calls"), done))
	r.app.live = liveOf(t, r, "--set", "skills.tool_search_audit=true", "--set", "skills.tool_search_always_loaded=read_file")
	for i, extra := range []string{"", `"stream":true,`} {
		body := chat(extra, user, threeTools)
		a := r.post(chatPath, body)
		if q := r.want(i + 1)[i]; q.body != body || a.body != r.answers[i].body {
			t.Errorf("audit changes the request to %s, the answer to %s", q.body, a.body)
		}
	}
	const want = `{"always_loaded":1,"first_5":2,"later":0,"not_found":0}`
	var got string
	for range 200 { // a request is reported when its client has its answer already
		w := httptest.NewRecorder()
		r.app.Operators.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/status.json", nil))
		if got = gjson.Get(w.Body.String(), "totals.audit_calls").Raw; got == want {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("audited calls %s", got)
}

func TestTwoReplicasShareAnAsk(t *testing.T) {
	redis := miniredis.RunT(t)
	settings := []string{"session.store=redis", "session.redis_url=redis://" + redis.Addr()}
	first := newRig(t, settings, loads("s1", "send_mail"), message(turnOf(call("w1", "send_mail", "{}")), "tool_calls"), okAnswer)
	second := newRig(t, settings, message(turnOf(call("w2", "send_mail", "{}")), "tool_calls"), okAnswer)
	history := user
	first.post(chatPath, chat("", history, threeTools))
	history += "," + results("w1", "send_mail")
	second.post(chatPath, chat("", history, threeTools))
	history += "," + results("w2", "send_mail")
	first.post(chatPath, chat("", history, threeTools))
	a, b := first.want(3), second.want(1)
	if b[0].names() != "read_file tool_search send_mail" || !strings.Contains(b[0].body, `"s1"`) || !strings.Contains(a[2].body, `"s1"`) {
		t.Errorf("the other replica sends %s, then the first %s", b[0].body, a[2].body)
	}
	before, after := b[0].get("messages").Raw, a[2].get("messages").Raw
	if !strings.HasPrefix(after, before[:len(before)-1]) {
		t.Errorf("the history changed between replicas:\n%s\n%s", before, after)
	}
	redis.Close()
	if reply := second.post(chatPath, chat("", history, threeTools)); reply.text() != "ok" || second.want(2)[1].names() != "read_file tool_search send_mail" {
		t.Errorf("without Redis the client gets %d %s", reply.status, reply.body)
	}
	if second.logs.FilterMessageSnippet("session store").Len() == 0 {
		t.Error("nothing is said of the store that is away")
	}
}

func TestManyStreamsAtOnceLoseNothing(t *testing.T) {
	var events []string
	for i := range 50 {
		events = append(events, delta(fmt.Sprintf(`{"content":"%d "}`, i)))
	}
	stream := sse(append(events, finish("stop"), done)...)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for event := range strings.SplitAfterSeq(stream.body, "\n\n") {
			_, _ = w.Write([]byte(event))
			_ = http.NewResponseController(w).Flush()
		}
	}))
	defer upstream.Close()
	r := newRig(t, nil)
	r.app.upstream.Close()
	proxy := newAppAt(t, upstream.URL)
	var group sync.WaitGroup
	failures := make(chan string, 500)
	for range 500 {
		group.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			request, _ := http.NewRequestWithContext(ctx, http.MethodPost, proxy+chatPath, strings.NewReader(chat(`"stream":true,`, user, threeTools)))
			response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
			if err != nil {
				failures <- err.Error()
				return
			}
			defer response.Body.Close()
			var got strings.Builder
			buffer := make([]byte, 4096)
			for {
				n, err := response.Body.Read(buffer)
				got.Write(buffer[:n])
				if err != nil {
					break
				}
			}
			if got.String() != stream.body {
				failures <- got.String()
			}
		})
	}
	group.Wait()
	close(failures)
	n := 0
	for failure := range failures {
		if n++; n < 3 {
			t.Errorf("a client got %q", failure)
		}
	}
	if n > 0 {
		t.Errorf("%d of 500 streams were not whole", n)
	}
}

// newAppAt starts the proxy in front of an upstream and returns its URL.
func newAppAt(t *testing.T, upstream string, arguments ...string) string {
	t.Helper()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	config.AddFlags(flags)
	if err := flags.Parse(append([]string{"--config", os.DevNull, "--upstream", upstream + "/v1", "--tool-search"}, arguments...)); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(flags)
	if err != nil {
		t.Fatal(err)
	}
	app, err := New(t.Context(), Options{Config: config.NewLive(c, flags, zap.NewNop(), nil), Log: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = app.Close() })
	proxy := httptest.NewServer(app.Clients)
	t.Cleanup(proxy.Close)
	return proxy.URL
}

func TestFaultsGiveTheClientATruth(t *testing.T) {
	page := http.Header{"Content-Type": {"text/html"}}
	tests := map[string]struct {
		answers []answer
		stream  bool
		want    func(a reply) bool
	}{
		"another protocol":        {[]answer{{status: http.StatusSwitchingProtocols}}, true, func(a reply) bool { return a.status == 502 }},
		"HTML with 200":           {[]answer{{header: page, body: "<html>login</html>"}}, true, func(a reply) bool { return a.body == "<html>login</html>" }},
		"HTML in round two":       {[]answer{searches("s1", "mail"), {header: page, body: "<html>"}}, true, func(a reply) bool { return strings.Contains(a.body, "<html>") || a.status >= 500 }},
		"error as first event":    {[]answer{sse(`{"error":{"message":"boom","type":"server_error"}}`)}, true, func(a reply) bool { return strings.Contains(a.body, "boom") && !strings.Contains(a.body, done) }},
		"nothing at all":          {[]answer{{header: isStream}}, true, func(a reply) bool { return a.status == 502 && a.get("error.message").String() != "" }},
		"cut whole answer":        {[]answer{{header: http.Header{"Content-Type": {"application/json"}, "Content-Length": {"100"}}, body: `{"id":`, cut: true}}, false, func(a reply) bool { return a.status == 502 && a.get("error.type").String() == "server_error" }},
		"whole answer no JSON":    {[]answer{whole("plain words")}, false, func(a reply) bool { return a.body == "plain words" }},
		"500 in round two, whole": {[]answer{loads("s1", "send_mail"), {status: 500, header: isJSON, body: `{"error":{"message":"x"}}`}}, false, func(a reply) bool { return a.status == 500 && a.body == `{"error":{"message":"x"}}` }},
		"JSON for a stream":       {[]answer{okAnswer}, true, func(a reply) bool { return strings.Contains(a.body, `"content":"ok"`) }},
		"stream for whole":        {[]answer{says("hi")}, false, func(a reply) bool { return strings.Contains(a.body, "hi") }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil, test.answers...)
			a := r.post(chatPath, chat(fmt.Sprintf(`"stream":%v,`, test.stream), user, threeTools))
			r.want(len(test.answers))
			if !test.want(a) {
				t.Errorf("the client got %d %v %s", a.status, a.header, a.body)
			}
		})
	}
}

// An answer that is relayed as it is may not be silent for longer than others.
func TestStalledAnswersThatAreRelayedEnd(t *testing.T) {
	for name, a := range map[string]answer{
		"an error": {status: 500, header: isJSON, body: `{"error":`},
		"a page":   {header: http.Header{"Content-Type": {"text/html"}}, body: "<html>"},
	} {
		t.Run(name, func(t *testing.T) {
			a.stall = make(chan struct{})
			r := newRig(t, []string{"upstream.idle_timeout=100ms"}, a)
			got := r.post("/v1/chat/completions", chat("", user, threeTools))
			if got.err == nil {
				t.Errorf("half an answer passes for a whole one: %d %s", got.status, got.body)
			}
			<-r.gone
		})
	}
}

func TestCutsAtEveryByteAreNeverSuccess(t *testing.T) {
	for dialect, test := range map[string]struct {
		path, body, stream string
		complete           func(a reply) bool
	}{
		"chat": {chatPath, chat(`"stream":true,`, user, threeTools), says("hello").body, func(a reply) bool { return len(a.all("choices.0.finish_reason")) > 0 }},
		"responses": {responsesPath, `{"model":"m","stream":true,"input":"x","tools":` + threeFlat + `}`, responsesMessage("r1", "hello", ""),
			func(a reply) bool { return slices.Contains(a.all("type"), "response.completed") }},
	} {
		t.Run(dialect, func(t *testing.T) {
			whole := test.stream
			for cut := 0; cut < len(whole); cut += 7 {
				r := newRig(t, nil, answer{header: isStream, body: whole[:cut], cut: true})
				a := r.post(test.path, test.body)
				said := a.err != nil || a.status >= 500 || len(a.all("error")) > 0 || slices.Contains(a.all("type"), "response.failed")
				if !said && !test.complete(a) {
					t.Fatalf("cut at %d the client got %d %q", cut, a.status, a.body)
				}
			}
		})
	}
}

// TestLargeToolsComeBack sends the same large tools turn after turn, as agents do. The proxy then lets go of the body while it
// waits: what the client and the upstream get must not tell.
func TestLargeToolsComeBack(t *testing.T) {
	tools := func(one func(string) string) string {
		list := []string{one("read_file")}
		for i := range 200 {
			list = append(list, one(fmt.Sprintf("deferred_tool_number_%d", i)))
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	refused := answer{status: http.StatusBadRequest, header: isJSON, body: `{"error":{"message":"no"}}`}
	streamed := sse(`{"type":"response.created","sequence_number":0,"response":{"id":"r1","tools":[{"x":1}],"instructions":"I"}}`,
		`{"type":"response.completed","sequence_number":1,"response":{"id":"r1","status":"completed","tools":[{"x":1}],"output":[]}}`)
	for name, test := range map[string]struct {
		path, body string
		ok         answer
	}{
		"chat, whole":         {chatPath, chat(`"seed":1.0,`, user, tools(function)), okAnswer},
		"chat, streamed":      {chatPath, chat(`"stream":true,`, user, tools(function)), says("ok")},
		"responses, whole":    {responsesPath, `{ "tools":` + tools(flat) + `,"input":"hi","tool_choice":"auto"}`, whole(`{"id":"r1","status":"completed","tools":[{"x":1}],"output":[]}`)},
		"responses, streamed": {responsesPath, `{"stream":true,"input":"hi","tools":` + tools(flat) + `,"instructions":"I"} `, streamed},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil, test.ok, test.ok, test.ok, refused, test.ok)
			var first reply
			for turn := range 3 {
				a := r.post(test.path, test.body)
				if turn == 0 {
					first = a
				}
				if a.status != http.StatusOK || a.body != first.body {
					t.Errorf("turn %d answers %d %.300s, the first one %.300s", turn+1, a.status, a.body, first.body)
				}
			}
			if test.path == responsesPath && !strings.Contains(first.body, tools(flat)) {
				t.Errorf("the echo is not the client's: %.300s", first.body)
			}
			r.post(test.path, test.body)
			got := r.want(5)
			if got[1].body != got[0].body || got[2].body != got[0].body || got[3].body != got[0].body {
				t.Error("the same request does not become the same bytes")
			}
			if got[4].body != test.body {
				t.Errorf("what was refused is sent again as %.300s", got[4].body)
			}
		})
	}
}

// TestRedisAwayAtTheStart starts without the store; once it is there, the replica shares its sessions.
func TestRedisAwayAtTheStart(t *testing.T) {
	t.Parallel()
	redis := miniredis.RunT(t)
	settings := []string{"session.store=redis", "session.redis_url=redis://" + redis.Addr()}
	redis.Close()
	first := newRig(t, settings, loads("s0", "send_mail"), okAnswer, loads("s1", "send_mail"), message(turnOf(call("w1", "send_mail", "{}")), "tool_calls"))
	if a := first.post(chatPath, chat("", user, threeTools)); a.status != http.StatusOK || a.get("choices.0.message.content").String() != "ok" {
		t.Errorf("without the store the client gets %d %s", a.status, a.body)
	}
	if n := first.logs.FilterMessageSnippet("until it is back").Len(); n != 1 {
		t.Errorf("%d entries say that the store is away", n)
	}
	if err := redis.Restart(); err != nil {
		t.Fatal(err)
	}
	first.app.checkSecret(t.Context())
	second := newRig(t, settings, okAnswer)
	first.post(chatPath, chat("", user, threeTools))
	second.post(chatPath, chat("", user+","+results("w1", "send_mail"), threeTools))
	if q := second.want(1)[0]; !strings.Contains(q.body, `"s1"`) {
		t.Errorf("the other replica knows nothing of the hidden round: %s", q.body)
	}
}

// TestALostSecretIsGivenAgain: a store that forgets everything, the replicas' secret included, is told it by those that run.
func TestALostSecretIsGivenAgain(t *testing.T) {
	redis := miniredis.RunT(t)
	settings := []string{"session.store=redis", "session.redis_url=redis://" + redis.Addr()}
	first := newRig(t, settings, loads("s1", "send_mail"), message(turnOf(call("w1", "send_mail", "{}")), "tool_calls"))
	redis.FlushAll()
	first.app.checkSecret(t.Context())
	second := newRig(t, settings, okAnswer)
	first.post(chatPath, chat("", user, threeTools))
	second.post(chatPath, chat("", user+","+results("w1", "send_mail"), threeTools))
	if q := second.want(1)[0]; !strings.Contains(q.body, `"s1"`) {
		t.Errorf("the other replica knows nothing of the hidden round: %s", q.body)
	}
}

func TestLongModelNamesAreCutInTheLog(t *testing.T) {
	r := newRig(t, nil, okAnswer)
	r.post(chatPath, strings.Replace(chat("", user, threeTools), `"model":"m"`, `"model":"`+strings.Repeat("m", 5000)+`"`, 1))
	if got := r.logged("request")["model"].(string); len(got) != 200 {
		t.Errorf("%d bytes are logged", len(got))
	}
}

// TestOrphanedReasoning continues a conversation whose session is lost: a search that followed reasoning is forgotten, and the
// upstream does not take the reasoning alone.
func TestOrphanedReasoning(t *testing.T) {
	refused := answer{status: http.StatusBadRequest, header: isJSON, body: `{"error":{"message":"Item 'rs_1' of type 'reasoning' was provided ` +
		`without its required following item.","type":"invalid_request_error","param":"input","code":null}}`}
	ok := whole(`{"id":"r2","object":"response","status":"completed","output":[]}`)
	request := func(items string) string {
		return `{"model":"m","store":false,"input":[` + items + `],"tools":` + threeFlat + `}`
	}
	const (
		question = `{"role":"user","content":"mail?"}`
		orphan   = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"}`
		said     = `{"type":"message","id":"msg_1","role":"assistant","content":"Yes."}`
	)
	for name, test := range map[string]struct{ items, want string }{
		"in the middle": {question + ", " + orphan + " , " + said, question + ", " + said},
		"at the end":    {question + "," + said + "," + orphan, question + "," + said},
		"alone":         {orphan, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil, refused, ok)
			if a := r.post(responsesPath, request(test.items)); a.status != http.StatusOK {
				t.Errorf("the client gets %d %s", a.status, a.body)
			}
			if got := r.want(2)[1].get("input").Raw; got != "["+test.want+"]" {
				t.Errorf("the second try sends %s", got)
			}
		})
	}
	// What came with the reasoning is paired with it by its id.
	unpaired := func(id, kind string) answer {
		return answer{status: http.StatusBadRequest, header: isJSON, body: `{"error":{"message":"Item '` + id + `' of type '` + kind +
			`' was provided without its required 'reasoning' item: 'rs_1'."}}`}
	}
	mixed := newRig(t, nil, refused, unpaired("fc_1", "function_call"), unpaired("msg_1", "message"), ok)
	const (
		callOne = `{"type":"function_call", "id":"fc_1" ,"call_id":"c1","name":"read_file","arguments":"{}"}`
		result  = `{"type":"function_call_output","call_id":"c1","output":"1"}`
		first   = `{"id": "msg_1","type":"message","role":"assistant","content":"Yes."}`
	)
	if a := mixed.post(responsesPath, request(question+","+orphan+","+callOne+","+result+","+first)); a.status != http.StatusOK {
		t.Errorf("the client gets %d %s", a.status, a.body)
	}
	want := `[` + question + `,{"type":"function_call" ,"call_id":"c1","name":"read_file","arguments":"{}"},` + result +
		`,{"type":"message","role":"assistant","content":"Yes."}]`
	if got := mixed.want(4)[3].get("input").Raw; got != want {
		t.Errorf("the last try sends %s", got)
	}
	// What was left out once does not help twice, and a refusal of an item that the request does not hold is the client's to see.
	r := newRig(t, nil, refused, refused, refused)
	if a := r.post(responsesPath, request(question+","+orphan)); a.status != http.StatusBadRequest || !strings.Contains(a.body, "rs_1") {
		t.Errorf("the client gets %d %s", a.status, a.body)
	}
	r.want(3) // at last the client's own
	r = newRig(t, nil, refused, refused)
	if a := r.post(responsesPath, request(question)); a.status != http.StatusBadRequest {
		t.Errorf("the client gets %d %s", a.status, a.body)
	}
	r.want(2)
}
