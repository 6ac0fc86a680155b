package turn_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
	"go.uber.org/zap"

	"tool-search-proxy/internal/openai"
	"tool-search-proxy/internal/projection"
	"tool-search-proxy/internal/session"
	"tool-search-proxy/internal/turn"
	"tool-search-proxy/internal/upstreamtest"
)

// wire posts to an engine in front of a strict upstream.
type wire struct {
	*upstreamtest.Server
	engine *turn.Engine
}

type toServer struct{ url string }

func (u toServer) Send(ctx context.Context, in *http.Request, body []byte, edit func(http.Header)) (*http.Response, error) {
	out, err := http.NewRequestWithContext(ctx, in.Method, u.url+in.URL.Path, strings.NewReader(string(body)))
	if err != nil {
		return nil, err
	}
	out.Header = in.Header.Clone()
	if edit != nil {
		edit(out.Header)
	}
	return http.DefaultTransport.RoundTrip(out)
}

func newWire(t *testing.T, options ...upstreamtest.Option) *wire {
	t.Helper()
	server := upstreamtest.New(t, options...)
	policy := turn.NewPolicy(projection.Policy{
		Enabled: true, AlwaysLoaded: []string{"read_file"}, VirtualName: "tool_search", Strict: "omit", MaxResults: 5,
		MaxRounds: 3, MaxExposed: 128, MinDeferred: 1, TimeLimit: time.Minute, UsageDetails: true,
		RequestIDHeader: []string{"X-Request-Id"},
	})
	store := session.NewMemory(session.MemoryOptions{TTL: time.Hour, MaxSessions: 100, MaxBytes: 1 << 20})
	t.Cleanup(func() { _ = store.Close() })
	return &wire{server, turn.New(turn.Options{
		Upstream: toServer{server.URL}, Sessions: store, Secret: []byte("secret"),
		Passthrough: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			t.Error("the request was passed through")
			w.WriteHeader(http.StatusTeapot)
		}),
		Policy: func() *turn.Policy { return policy }, Log: zap.NewNop(),
		MaxAnswerBytes: 1 << 20, MaxEventBytes: 1 << 20,
		LatchRefusals: 3, LatchTime: time.Minute,
	})}
}

// send posts a body and returns the status and the bytes of the answer.
func (w *wire) send(body string) (int, string) {
	request := httptest.NewRequest(http.MethodPost, "/v1/responses", strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	w.engine.Serve(recorder, request, openai.Responses, turn.Body{Raw: []byte(body), JSON: []byte(body)})
	all, _ := io.ReadAll(recorder.Body)
	return recorder.Code, string(all)
}

// input returns the kinds of the input items of upstream request n, messages told by their roles.
func (w *wire) input(n int) string {
	var kinds []string
	gjson.GetBytes(w.Requests()[n-1].Body, "input").ForEach(func(_, item gjson.Result) bool {
		kind := item.Get("type").String()
		if item.Get("role").Exists() {
			kind = item.Get("role").String()
		}
		if id := item.Get("call_id").String(); id != "" {
			kind += " " + id
		}
		kinds = append(kinds, kind)
		return true
	})
	return strings.Join(kinds, ", ")
}

const flatTools = `[{"type":"function","name":"read_file","parameters":{"type":"object"}},` +
	`{"type":"function","name":"get_weather","description":"weather","parameters":{"type":"object"}},` +
	`{"type":"function","name":"send_mail","description":"mail","parameters":{"type":"object"}}]`

func user(text string) string { return `{"role":"user","content":"` + text + `"}` }

func output(id string) string {
	return `{"type":"function_call_output","call_id":"` + id + `","output":"done"}`
}

// finalID returns the id of the response that the client would chain on.
func finalID(answer string) string {
	if strings.HasPrefix(answer, "{") {
		return gjson.Get(answer, "id").String()
	}
	last := answer[strings.LastIndex(answer, "data: {")+len("data: "):]
	return gjson.Get(last, "response.id").String()
}

func firstID(answer string) string {
	first := answer[strings.Index(answer, "data: {")+len("data: "):]
	return gjson.Get(first, "response.id").String()
}

func items(answer string) string {
	raw := strings.TrimSpace(string(upstreamtest.AccumulateResponses([]byte(answer))))
	return strings.TrimSuffix(strings.TrimPrefix(raw, "["), "]")
}

// TestResponsesLaterRequests takes one ask through two client requests in every way in which a client can keep state.
func TestResponsesLaterRequests(t *testing.T) {
	hiddenRound := upstreamtest.Reply(upstreamtest.Reasoning(""), upstreamtest.Call("s1", "tool_search", `{"query":"select:get_weather"}`))
	shownRound := upstreamtest.Reply(upstreamtest.Reasoning("I look for it."), upstreamtest.Text("Let me look."),
		upstreamtest.Call("s1", "tool_search", `{"query":"select:get_weather"}`))
	call := upstreamtest.Reply(upstreamtest.Reasoning(""), upstreamtest.Call("c1", "get_weather", `{"city":"Oslo"}`))
	mixed := upstreamtest.Reply(upstreamtest.Reasoning(""), upstreamtest.Call("c1", "read_file", `{}`),
		upstreamtest.Call("s1", "tool_search", `{"query":"select:get_weather"}`))
	mixedFirst := upstreamtest.Reply(upstreamtest.Reasoning(""),
		upstreamtest.Call("s1", "tool_search", `{"query":"select:get_weather"}`), upstreamtest.Call("c1", "read_file", `{}`))
	text := upstreamtest.Reply(upstreamtest.Text("Cold."))
	const (
		hiddenItems = "reasoning, function_call s1, function_call_output s1"
		shownItems  = "reasoning, assistant, function_call s1, function_call_output s1"
		callItems   = "reasoning, function_call c1, function_call_output c1"
	)
	cases := []struct {
		name    string
		answers []upstreamtest.Option
		members string // of both requests
		state   string // replay, previous, created or conversation
		second  string // input of the second round of the first request, if it has one
		later   string // input of the second request
	}{
		{"replay", []upstreamtest.Option{hiddenRound, call, text}, ``, "replay",
			"user, " + hiddenItems, "user, " + hiddenItems + ", " + callItems},
		{"replay unstored with encrypted reasoning", []upstreamtest.Option{hiddenRound, call, text},
			`"store":false,"include":["reasoning.encrypted_content"],`, "replay",
			"user, " + hiddenItems, "user, " + hiddenItems + ", " + callItems},
		{"replay of a shown round", []upstreamtest.Option{shownRound, call, text}, ``, "replay",
			"user, " + shownItems, "user, " + shownItems + ", " + callItems},
		{"chain", []upstreamtest.Option{hiddenRound, call, text}, ``, "previous",
			"user, " + hiddenItems, "function_call_output c1"},
		{"chain on the id of response.created", []upstreamtest.Option{shownRound, call, text}, ``, "created",
			"user, " + shownItems, "function_call_output c1"},
		{"conversation", []upstreamtest.Option{hiddenRound, call, text}, `"conversation":{"id":"conv_1"},`, "conversation",
			"function_call_output s1", "function_call_output c1"},
		{"mixed, replay", []upstreamtest.Option{mixed, text}, ``, "replay",
			"", "user, reasoning, function_call c1, function_call s1, function_call_output c1, function_call_output s1"},
		{"mixed with the search first, replay", []upstreamtest.Option{mixedFirst, text}, ``, "replay",
			"", "user, reasoning, function_call s1, function_call c1, function_call_output c1, function_call_output s1"},
		{"mixed, chain", []upstreamtest.Option{mixed, text}, ``, "previous",
			"", "function_call_output c1, function_call_output s1"},
		{"mixed, conversation", []upstreamtest.Option{mixed, text}, `"conversation":"conv_1",`, "conversation",
			"", "function_call_output c1, function_call_output s1"},
		{"mixed after a hidden round, replay", []upstreamtest.Option{
			upstreamtest.Reply(upstreamtest.Call("s0", "tool_search", `{"query":"select:read_file"}`)), mixedFirst, text}, ``, "replay",
			"user, function_call s0, function_call_output s0", "user, function_call s0, function_call_output s0, " +
				"reasoning, function_call s1, function_call c1, function_call_output c1, function_call_output s1"},
	}
	for _, c := range cases {
		for _, stream := range []string{"false", "true"} {
			t.Run(c.name+", stream "+stream, func(t *testing.T) {
				w := newWire(t, c.answers...)
				request := func(members, input string) string {
					return `{"model":"m","stream":` + stream + `,` + members + c.members + `"input":[` + input + `],"tools":` +
						flatTools + `}`
				}
				status, first := w.send(request("", user("weather?")))
				if status != http.StatusOK {
					t.Fatalf("status %d: %s", status, first)
				}
				if strings.Contains(items(first), "tool_search") {
					t.Errorf("the client sees the virtual tool: %s", first)
				}
				if c.second != "" && w.input(2) != c.second {
					t.Errorf("the second round's input is %s, want %s", w.input(2), c.second)
				}
				members, input := "", output("c1")
				switch c.state {
				case "replay":
					input = user("weather?") + "," + items(first) + "," + output("c1")
				case "previous":
					members = `"previous_response_id":"` + finalID(first) + `",`
				case "created":
					members = `"previous_response_id":"` + finalID(first) + `",`
					if stream == "true" {
						if firstID(first) == finalID(first) {
							t.Fatal("the first round's id was not streamed")
						}
						members = `"previous_response_id":"` + firstID(first) + `",`
					}
				}
				status, last := w.send(request(members, input))
				if status != http.StatusOK || !strings.Contains(last, "Cold.") {
					t.Fatalf("status %d: %s", status, last)
				}
				if got := w.input(len(w.Requests())); got != c.later {
					t.Errorf("the second request's input is %s, want %s", got, c.later)
				}
				newest := w.Requests()[len(w.Requests())-1].Body
				if before := gjson.GetBytes(w.Requests()[1].Body, "input").Raw; c.second != "" && c.state == "replay" &&
					!strings.HasPrefix(gjson.GetBytes(newest, "input").Raw, strings.TrimSuffix(before, "]")) {
					t.Errorf("the second request's input is\n%s\nthe round before had\n%s", newest, before)
				}
				got := gjson.GetBytes(newest, "tools.#.name").Raw
				if got != `["read_file","tool_search","get_weather"]` {
					t.Errorf("the second request exposes %s", got)
				}
				if w.Remaining() != 0 {
					t.Errorf("%d answers were not asked for", w.Remaining())
				}
			})
		}
	}
}

// TestResponsesConversationFallback replays the whole round where the upstream keeps no conversation.
func TestResponsesConversationFallback(t *testing.T) {
	refusal := upstreamtest.JSON(http.StatusBadRequest,
		`{"error":{"message":"No tool call found for function call output with call_id s1.","type":"invalid_request_error"}}`)
	w := newWire(t, upstreamtest.WithRules(upstreamtest.Rules{Except: []string{"item-twice", "call-without-output"}}),
		upstreamtest.Reply(upstreamtest.Call("s1", "tool_search", `{"query":"weather"}`)), refusal,
		upstreamtest.Reply(upstreamtest.Text("Cold.")))
	body := `{"model":"m","input":"weather?","tools":` + flatTools + `}`
	body, _ = sjson.Set(body, "conversation", "conv_1")
	status, answer := w.send(body)
	if status != http.StatusOK || !strings.Contains(answer, "Cold.") {
		t.Errorf("status %d: %s", status, answer)
	}
	if got := w.input(3); got != "user, function_call s1, function_call_output s1" {
		t.Errorf("the replayed input is %s", got)
	}
}

// TestResponsesBrokenRound answers the calls that a broken round left open in a conversation, and those only.
func TestResponsesBrokenRound(t *testing.T) {
	search := upstreamtest.Reply(upstreamtest.Call("s1", "tool_search", `{"query":"weather"}`))
	overloaded := upstreamtest.JSON(http.StatusServiceUnavailable, `{"error":{"message":"overloaded"}}`)
	text := upstreamtest.Reply(upstreamtest.Text("Cold."))
	request := func(input string) string {
		return `{"model":"m","conversation":"conv_1","input":[` + input + `],"tools":` + flatTools + `}`
	}
	t.Run("the proxy's call", func(t *testing.T) {
		w := newWire(t, search, overloaded, upstreamtest.Refusal("call-without-output"), text)
		if status, _ := w.send(request(user("weather?"))); status != http.StatusServiceUnavailable {
			t.Errorf("status %d", status)
		}
		status, answer := w.send(request(user("again, please")))
		if status != http.StatusOK || !strings.Contains(answer, "Cold.") {
			t.Errorf("status %d: %s", status, answer)
		}
		if got := w.input(4); got != "function_call_output s1, user" {
			t.Errorf("the input is %s", got)
		}
	})
	t.Run("the client's call", func(t *testing.T) {
		w := newWire(t, upstreamtest.Reply(upstreamtest.Call("c1", "read_file", `{}`)), upstreamtest.Refusal("call-without-output"))
		if status, answer := w.send(request(user("read"))); status != http.StatusOK {
			t.Errorf("status %d: %s", status, answer)
		}
		if status, answer := w.send(request(user("never mind"))); status != http.StatusBadRequest {
			t.Errorf("status %d: %s", status, answer)
		}
	})
	t.Run("a conversation that is locked for a moment", func(t *testing.T) {
		locked := upstreamtest.JSON(http.StatusBadRequest, `{"error":{"message":"busy","code":"conversation_locked"}}`)
		w := newWire(t, search, locked, text)
		status, answer := w.send(request(user("weather?")))
		if status != http.StatusOK || !strings.Contains(answer, "Cold.") {
			t.Errorf("status %d: %s", status, answer)
		}
	})
}
