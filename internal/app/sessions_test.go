package app

import (
	"fmt"
	"strings"
	"testing"
)

// response is a whole answer of Responses with these output items.
func response(id string, items ...string) answer {
	return whole(`{"id":"` + id + `","object":"response","created_at":1,"status":"completed","output":[` + strings.Join(items, ",") +
		`],"usage":{"input_tokens":5,"output_tokens":2,"total_tokens":7}}`)
}

func thought(id string) string {
	return `{"type":"reasoning","id":"` + id + `","summary":[{"type":"summary_text","text":"Hm."}],"encrypted_content":"enc-` + id + `"}`
}

func said(id, text string) string {
	return `{"type":"message","id":"` + id + `","role":"assistant","status":"completed","content":[{"type":"output_text","text":"` + text + `","annotations":[]}]}`
}

func called(id, name, arguments string) string {
	return fmt.Sprintf(`{"type":"function_call","id":"fc_%s","call_id":%q,"name":%q,"arguments":%q,"status":"completed"}`, id, id, name, arguments)
}

func output(id string) string {
	return `{"type":"function_call_output","call_id":"` + id + `","output":"1"}`
}

func asks(text string) string { return `{"role":"user","content":"` + text + `"}` }

// unstored is a request that replays its whole history.
func unstored(items ...string) string {
	return `{"model":"m","store":false,"input":[` + strings.Join(items, ",") + `],"tools":` + threeFlat + `}`
}

// TestEqualCallsOfTwoAsks: some servers count their calls anew in every answer, so that two asks hand out the same call.
func TestEqualCallsOfTwoAsks(t *testing.T) {
	mixed := func(search string) answer {
		return message(turnOf(call("s"+search, "tool_search", `{"query":"select:`+search+`"}`), call("call_0", "read_file", "{}")), "tool_calls")
	}
	for name, test := range map[string]struct {
		first, second string // user messages
		ids           bool   // each ask has a request ID of its own
	}{
		"behind other questions":           {"mail?", "weather?", false},
		"under other IDs":                  {"go", "go", true},
		"behind other ones, and other IDs": {"mail?", "weather?", true},
	} {
		t.Run(name, func(t *testing.T) {
			header := func(id string) []string {
				if !test.ids {
					return nil
				}
				return []string{"X-Request-ID", id}
			}
			r := newRig(t, nil, mixed("send_mail"), mixed("get_weather"), okAnswer, okAnswer)
			r.post(chatPath, chat("", asks(test.first), threeTools), header("a")...)
			r.post(chatPath, chat("", asks(test.second), threeTools), header("b")...)
			r.post(chatPath, chat("", asks(test.first)+","+results("call_0", "read_file"), threeTools), header("a")...)
			r.post(chatPath, chat("", asks(test.second)+","+results("call_0", "read_file"), threeTools), header("b")...)
			got := r.want(4)
			for i, want := range []string{"send_mail", "get_weather"} {
				if q := got[2+i]; !strings.Contains(q.body, `"ssend_mail"`) == (i == 0) || q.names() != "read_file tool_search "+want {
					t.Errorf("ask %d goes on with %s: %s", i+1, q.names(), q.body)
				}
			}
		})
	}
}

// TestEqualCallsOfOneAsk: the same call comes twice, behind two different searches, and once more behind none.
func TestEqualCallsOfOneAsk(t *testing.T) {
	again := message(turnOf(call("call_0", "read_file", "{}")), "tool_calls")
	r := newRig(t, nil, loads("s1", "send_mail"), again, loads("s2", "get_weather"), again, again, okAnswer)
	history := asks("go")
	r.post(chatPath, chat("", history, threeTools))
	for range 3 {
		history += "," + results("call_0", "read_file")
		r.post(chatPath, chat("", history, threeTools))
	}
	last := r.want(6)[5]
	var ids []string
	for _, id := range last.get("messages.#.tool_calls.0.id").Array() {
		ids = append(ids, id.String())
	}
	if got := strings.Join(ids, " "); got != "s1 call_0 s2 call_0 call_0" {
		t.Errorf("the history holds %s: %s", got, last.body)
	}
}

// TestSearchesAreFoundAgain: an ask that only searched hands out no call; what the client sends back of it and of the asks behind
// it leads to it all the same, for as long as the conversation goes on.
func TestSearchesAreFoundAgain(t *testing.T) {
	search := func() answer {
		return response("r1", thought("rs_1"), called("s1", "tool_search", `{"query":"select:send_mail"}`))
	}
	reference := func(id string) string { return `{"type":"item_reference","id":"` + id + `"}` }
	for name, test := range map[string]struct {
		script []answer
		items  [][]string // what the client adds for each ask
	}{
		"text": {
			[]answer{search(), response("r2", said("m1", "a")), response("r3", said("m2", "b")), response("r4", said("m3", "c")), response("r5", said("m4", "d"))},
			[][]string{{asks("1")}, {thought("rs_1"), said("m1", "a"), asks("2")}, {said("m2", "b"), asks("3")}, {said("m3", "c"), asks("4")}},
		},
		"references": {
			[]answer{search(), response("r2", called("c1", "read_file", "{}")), response("r3", said("m1", "a")), response("r4", said("m2", "b")), response("r5", said("m3", "c"))},
			[][]string{{asks("1")}, {reference("rs_1"), reference("fc_c1"), output("c1")}, {reference("m1"), asks("2")}, {reference("m2"), asks("3")}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil, test.script...)
			var history []string
			for _, items := range test.items {
				history = append(history, items...)
				r.post(responsesPath, unstored(history...))
			}
			for i, q := range r.want(len(test.script))[2:] {
				if !strings.Contains(q.get("input").Raw, `"s1"`) {
					t.Errorf("request %d behind the search lacks it: %s", i+1, q.get("input").Raw)
				}
			}
		})
	}
}

// TestLoadedToolsStayInTheConversation loads tools in several asks of one conversation.
func TestLoadedToolsStayInTheConversation(t *testing.T) {
	scope := []string{"skills.tool_search_scope=conversation"}
	const want = "read_file tool_search send_mail get_weather"
	t.Run("chat", func(t *testing.T) {
		text := func(s string) string { return `{"role":"assistant","content":"` + s + `"}` }
		r := newRig(t, scope, loads("s1", "send_mail"), message(text("a"), "stop"), message(text("b"), "stop"),
			loads("s2", "get_weather"), message(text("c"), "stop"), message(text("d"), "stop"), okAnswer)
		history := asks("1")
		for i, answered := range []string{"a", "b", "c", "d", ""} {
			r.post(chatPath, chat("", history, threeTools))
			history += "," + text(answered) + "," + asks(fmt.Sprint(i+2))
		}
		got := r.want(7)
		if got[2].names() != "read_file tool_search send_mail" || got[5].names() != want || got[6].names() != want {
			t.Errorf("exposed: %s; %s; %s", got[2].names(), got[5].names(), got[6].names())
		}
	})
	t.Run("responses", func(t *testing.T) {
		search := func(id, name string) answer {
			return response("r"+id, called(id, "tool_search", `{"query":"select:`+name+`"}`))
		}
		r := newRig(t, scope, search("s1", "send_mail"), response("r2", called("c1", "send_mail", "{}")), response("r3", said("m1", "a")),
			response("r4", said("m2", "b")), search("s2", "get_weather"), response("r6", said("m3", "c")), response("r7", said("m4", "d")))
		history := []string{asks("1")}
		for _, more := range [][]string{
			{called("c1", "send_mail", "{}"), output("c1")}, {said("m1", "a"), asks("2")}, {said("m2", "b"), asks("3")}, {said("m3", "c"), asks("4")}, nil,
		} {
			r.post(responsesPath, unstored(history...))
			history = append(history, more...)
		}
		got := r.want(7)
		if got[3].names() != "read_file tool_search send_mail" || got[6].names() != want {
			t.Errorf("exposed: %s; %s", got[3].names(), got[6].names())
		}
	})
}

// TestEqualConversationsKeepTheirOwnHistory: a text is no name, so a conversation that never searched gets no search of a twin's.
func TestEqualConversationsKeepTheirOwnHistory(t *testing.T) {
	r := newRig(t, []string{"skills.tool_search_scope=conversation"}, loads("s1", "send_mail"), message(`{"role":"assistant","content":"Hi!"}`, "stop"), okAnswer)
	r.post(chatPath, chat("", asks("hello"), threeTools))
	r.post(chatPath, chat("", asks("hello")+`,{"role":"assistant","content":"Hi!"},`+asks("and?"), threeTools))
	if q := r.want(3)[2]; strings.Contains(q.body, `"s1"`) {
		t.Errorf("another conversation's search: %s", q.body)
	}
}

// TestUnprojectedRequestsKeepTheirHistory goes on with a conversation that was projected by requests that are not: what the
// upstream would refuse without its hidden rounds gets them back.
func TestUnprojectedRequestsKeepTheirHistory(t *testing.T) {
	search := called("s1", "tool_search", `{"query":"select:send_mail"}`)
	mixed := response("r1", thought("rs_1"), called("c1", "read_file", "{}"), search)
	hidden := []answer{response("r1", thought("rs_1"), search), response("r2", said("m1", "a"))}
	chained := func(members string) string {
		return `{"model":"m",` + members + `"previous_response_id":"r1","input":[` + output("c1") + `]}`
	}
	replayed := func(members string) string {
		return `{"model":"m",` + members + `"input":[` + strings.Join([]string{asks("1"), thought("rs_1"), said("m1", "a"), asks("2")}, ",") + `]}`
	}
	tools := `"tools":` + threeFlat + `,`
	for name, test := range map[string]struct {
		members string
		headers []string
	}{
		"no tools":           {members: `"store":true,`},
		"in the background":  {members: tools + `"background":true,`},
		"off for once":       {members: tools, headers: []string{"X-Tool-Search", "off"}},
		"a bypassed model":   {members: `"x":1,` + tools},
		"native tool search": {members: `"tools":[{"type":"tool_search"},{"type":"function","name":"read_file"}],`},
	} {
		t.Run(name, func(t *testing.T) {
			var settings []string
			next := func(body string) string { return body }
			if name == "a bypassed model" {
				settings = []string{"skills.tool_search_bypass_models=other"}
				next = func(body string) string { return strings.Replace(body, `"model":"m"`, `"model":"other"`, 1) }
			}
			r := newRig(t, settings, mixed, response("r3", said("m9", "z")))
			r.post(responsesPath, `{"model":"m","input":[`+asks("1")+`],"tools":`+threeFlat+`}`)
			if a := r.post(responsesPath, next(chained(test.members)), test.headers...); a.get("id").String() != "r3" {
				t.Errorf("the client gets %s", a.body)
			}
			if name != "a bypassed model" { // which tells of another policy: the ask keeps its own
				q := r.want(2)[1]
				if got := q.get("input.#.call_id").Raw; got != `["c1","s1"]` || strings.Contains(q.body, "<available_deferred") {
					t.Errorf("chained: the upstream gets %s", q.body)
				}
			}
			r = newRig(t, settings, append(hidden, response("r3", said("m9", "z")))...)
			r.post(responsesPath, unstored(asks("1")))
			r.post(responsesPath, next(replayed(test.members)), test.headers...)
			q := r.want(3)[2]
			if got := q.get("input.#.type").Raw; got != `["reasoning","function_call","function_call_output","message"]` || strings.Contains(q.body, "<available_deferred") {
				t.Errorf("replayed: the upstream gets %s", q.body)
			}
		})
	}
}

// TestARefusalIsTheRequestsOwn: a request that is refused for its own sake is told why, although it answers a mixed turn.
func TestARefusalIsTheRequestsOwn(t *testing.T) {
	refused := answer{status: 400, header: isJSON, body: `{"error":{"message":"temperature is too high","code":"invalid_value"}}`}
	r := newRig(t, nil, response("r1", called("c1", "read_file", "{}"), called("s1", "tool_search", `{"query":"mail"}`)), refused, refused)
	r.post(responsesPath, `{"model":"m","input":[`+asks("1")+`],"tools":`+threeFlat+`}`)
	a := r.post(responsesPath, `{"model":"m","temperature":9,"previous_response_id":"r1","input":[`+output("c1")+`],"tools":`+threeFlat+`}`)
	if a.status != 400 || a.get("error.code").String() != "invalid_value" {
		t.Errorf("the client gets %d %s", a.status, a.body)
	}
	if q := r.want(3)[2]; q.get("input.#.call_id").Raw != `["c1","s1"]` || q.get("tools.#").Int() != 3 {
		t.Errorf("the second try is %s", q.body)
	}
	// Another request that holds the conversation is nothing that the projection has done.
	locked := answer{status: 400, header: isJSON, body: `{"error":{"message":"busy","code":"conversation_locked"}}`}
	r = newRig(t, nil, locked)
	a = r.post(responsesPath, `{"model":"m","conversation":"conv","input":"hi","tools":`+threeFlat+`}`)
	if r.want(1); a.status != 400 || a.body != locked.body {
		t.Errorf("the client gets %d %s", a.status, a.body)
	}
}

// TestForgottenMixedTurn: the proxy has forgotten that a search stood beside the calls that the client answers now.
func TestForgottenMixedTurn(t *testing.T) {
	open := answer{status: 400, header: isJSON, body: `{"error":{"message":"No tool output found for function call s1.","type":"invalid_request_error"}}`}
	r := newRig(t, nil, open, response("r2", said("m1", "a")))
	a := r.post(responsesPath, `{"model":"m","previous_response_id":"r1","input":[`+output("c1")+`],"tools":`+threeFlat+`}`)
	if a.status != 200 || r.want(2)[1].get("input.#.call_id").Raw != `["s1","c1"]` {
		t.Errorf("the client gets %d, the upstream %s", a.status, r.upstream()[1].body)
	}
	// A user's message answers no call: what is open is the client's.
	r = newRig(t, nil, open, open)
	if a := r.post(responsesPath, `{"model":"m","previous_response_id":"r1","input":"hi","tools":`+threeFlat+`}`); a.status != 400 {
		t.Errorf("the client gets %d %s", a.status, a.body)
	}
}

// TestOmittedReasoningBesideHiddenItems leaves reasoning out right where hidden items are put back.
func TestOmittedReasoningBesideHiddenItems(t *testing.T) {
	refused := answer{status: 400, header: isJSON, body: `{"error":{"message":"Item 'rs_2' of type 'reasoning' was provided without its required following item."}}`}
	r := newRig(t, nil, response("r1", thought("rs_1"), called("s1", "tool_search", `{"query":"mail"}`)),
		response("r2", thought("rs_2"), called("c1", "read_file", "{}")), refused, response("r3", said("m1", "a")))
	r.post(responsesPath, unstored(asks("1")))
	a := r.post(responsesPath, unstored(asks("1"), thought("rs_1"), thought("rs_2"), asks("2"))) // the call is trimmed away
	if a.status != 200 {
		t.Errorf("the client gets %d %s", a.status, a.body)
	}
	if got := r.want(4)[3].get("input.#.type").Raw; got != `["reasoning","function_call","function_call_output"]` {
		t.Errorf("the input is %s", got)
	}
}

// TestTextCallsOfAChain: the upstream's state holds a text where the client has seen a call.
func TestTextCallsOfAChain(t *testing.T) {
	for _, named := range []string{`"previous_response_id":"r1"`, `"conversation":"conv"`} {
		r := newRig(t, []string{"skills.tool_search_text_calls=true"}, response("r1", said("m1", `{\"name\":\"read_file\",\"arguments\":{}}`)), response("r2", said("m2", "a")))
		first := `"conversation":"conv",`
		if strings.Contains(named, "previous") {
			first = ""
		}
		a := r.post(responsesPath, `{"model":"m",`+first+`"input":[`+asks("1")+`],"tools":`+threeFlat+`}`)
		id := a.get(`output.#(type=="function_call").call_id`).String()
		r.post(responsesPath, `{"model":"m",`+named+`,"input":[`+output(id)+`],"tools":`+threeFlat+`}`)
		q := r.want(2)[1]
		if id == "" || q.get("input.#.type").Raw != `["function_call","function_call_output"]` || q.get("input.0.call_id").String() != id {
			t.Errorf("%s: the upstream gets %s behind %s", named, q.body, a.body)
		}
	}
}

// TestPassedCallsAreLoaded: a call of a tool that was not exposed goes to the client, and the tool is loaded from then on.
func TestPassedCallsAreLoaded(t *testing.T) {
	r := newRig(t, []string{"skills.tool_search_unloaded_calls=pass"}, response("r1", called("c1", "send_mail", "{}")), response("r2", said("m1", "a")))
	r.post(responsesPath, `{"model":"m","input":"hi","tools":`+threeFlat+`}`)
	r.post(responsesPath, `{"model":"m","previous_response_id":"r1","input":[`+output("c1")+`],"tools":`+threeFlat+`}`)
	if got := r.want(2)[1].names(); got != "read_file tool_search send_mail" {
		t.Errorf("exposed: %s", got)
	}
}

// TestLoadedToolsOutliveAShorterList: a tool that one request leaves out, or rules out, is loaded still when it is back.
func TestLoadedToolsOutliveAShorterList(t *testing.T) {
	reads := message(turnOf(call("w1", "read_file", "{}")), "tool_calls")
	for name, short := range map[string]string{
		"a shorter list": chat("", user+","+results("w1", "read_file"), "["+function("read_file")+","+function("get_weather")+"]"),
		"allowed_tools": chat(`"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"read_file"}}]}},`,
			user+","+results("w1", "read_file"), threeTools),
	} {
		r := newRig(t, nil, loads("s1", "send_mail,get_weather"), reads, message(turnOf(call("w2", "read_file", "{}")), "tool_calls"), okAnswer)
		r.post(chatPath, chat("", user, threeTools))
		r.post(chatPath, short)
		r.post(chatPath, chat("", user+","+results("w1", "read_file")+","+results("w2", "read_file"), threeTools))
		if got := r.want(4)[3].names(); got != "read_file tool_search send_mail get_weather" {
			t.Errorf("%s: exposed are %s", name, got)
		}
	}
}

// TestResultsTellWhatIsExposed: the bound on exposed tools is known before the search is answered.
func TestResultsTellWhatIsExposed(t *testing.T) {
	r := newRig(t, []string{"skills.tool_search_max_exposed=3"}, loads("s1", "send_mail,get_weather"), loads("s2", "get_weather"), okAnswer)
	r.post(chatPath, chat("", user, threeTools))
	got := r.want(3)
	if got[1].names() != "read_file tool_search send_mail" || !strings.Contains(got[1].body, `\"loaded\":[\"send_mail\"]`) || !strings.Contains(got[1].body, `\"truncated\":true`) {
		t.Errorf("the first search: %s", got[1].body)
	}
	if got[2].names() != "read_file tool_search get_weather" || !strings.Contains(got[2].body, `\"loaded\":[\"get_weather\"]`) {
		t.Errorf("the second search: %s", got[2].body)
	}
}

// TestForcedTools forces tools that are not there to be called.
func TestForcedTools(t *testing.T) {
	force := func(name string) string {
		return chat(`"tool_choice":{"type":"function","function":{"name":"`+name+`"}},`, user, threeTools)
	}
	r := newRig(t, []string{"skills.tool_search_hidden_tools=send_*"})
	a := r.post(chatPath, force("send_mail"))
	if r.want(0); a.status != 400 || !strings.Contains(a.get("error.message").String(), "send_mail") {
		t.Errorf("a hidden tool: the client gets %d %s", a.status, a.body)
	}
	r = newRig(t, []string{"skills.prefetch_tools=get_weather"}, okAnswer)
	r.post(chatPath, force("get_weather"), "X-Tool-Search-Prefetched", "get_weather")
	if got := r.want(1)[0].names(); got != "read_file get_weather tool_search" {
		t.Errorf("a prefetched tool: exposed are %s", got)
	}
	r = newRig(t, nil, response("r1", said("m1", "a")))
	r.post(responsesPath, `{"model":"m","input":"hi","tool_choice":{"type":"function","name":"list"},"tools":[`+flat("read_file")+
		`,{"type":"namespace","name":"crm","tools":[`+flat("list")+`,`+flat("get")+`]}]}`)
	if q := r.want(1)[0]; q.get("tools.1.tools.#.name").Raw != `["list"]` {
		t.Errorf("a member of a group: %s", q.body)
	}
}

// TestCustomToolOfTheVirtualName: two tools of one name would be refused.
func TestCustomToolOfTheVirtualName(t *testing.T) {
	body := `{"model":"m","input":"hi","tools":[` + flat("get_weather") + `,{"type":"custom","name":"tool_search"}]}`
	r := newRig(t, nil, response("r1", said("m1", "a")))
	r.post(responsesPath, body)
	if got := r.want(1)[0].body; got != body {
		t.Errorf("the upstream gets %s", got)
	}
}

// TestTheVirtualToolStaysHidden calls it in ways that nobody asked for.
func TestTheVirtualToolStaysHidden(t *testing.T) {
	custom := `{"id":"s1","type":"custom","custom":{"name":"tool_search","input":"mail"}}`
	for name, first := range map[string]answer{
		"whole":    message(turnOf(custom), "tool_calls"),
		"streamed": sse(delta(`{"tool_calls":[{"index":0,`+custom[1:]+`]}`), finish("tool_calls"), done),
	} {
		r := newRig(t, nil, first, okAnswer)
		extra := ""
		if name == "streamed" {
			extra = `"stream":true,`
		}
		a := r.post(chatPath, chat(extra, user, threeTools))
		if r.want(2); strings.Contains(a.body, `"s1"`) || !strings.Contains(a.body, `"ok"`) {
			t.Errorf("%s: the client gets %s", name, a.body)
		}
	}
	// A text is no call where the client wants none.
	for _, text := range []string{`{\"name\":\"read_file\",\"arguments\":{}}`, `{\"name\":\"tool_search\",\"arguments\":{\"query\":\"mail\"}}`} {
		a := answer{header: isJSON, body: message(`{"role":"assistant","content":"`+text+`"}`, "stop").body}
		r := newRig(t, []string{"skills.tool_search_text_calls=true"}, a)
		if got := r.post(chatPath, chat(`"tool_choice":"none",`, user, threeTools)); got.body != a.body {
			t.Errorf("the client gets %s", got.body)
		}
	}
}

// TestEncodedNamesStayApart encodes names where something bears the encoded one already.
func TestEncodedNamesStayApart(t *testing.T) {
	for separator, tools := range map[string]string{
		"_":   "[" + function("tool.search") + "," + function("get_weather") + "]",
		"-_-": "[" + function("a.b") + `,{"type":"custom","custom":{"name":"a-_-b"}},` + function("get_weather") + "]",
	} {
		r := newRig(t, []string{"skills.tool_name_dot_separator=" + separator, "skills.tool_search_always_loaded=*.*"}, okAnswer)
		r.post(chatPath, chat("", user, tools))
		q := r.want(1)[0]
		seen := map[string]bool{}
		for _, tool := range q.get("tools").Array() {
			name := tool.Get("function.name").String() + tool.Get("custom.name").String()
			if seen[name] {
				t.Errorf("two tools are named %s: %s", name, q.body)
			}
			seen[name] = true
		}
	}
	// The history's results name their tool as its calls do.
	r := newRig(t, []string{"skills.tool_name_dot_separator=-_-"}, okAnswer)
	r.post(chatPath, chat("", user+","+turnOf(call("c1", "a.b", "{}"))+`,{"role":"tool","tool_call_id":"c1","name":"a.b","content":"1"}`, "["+function("a.b")+","+function("get_weather")+"]"))
	if q := r.want(1)[0]; strings.Contains(q.get("messages").Raw, `"a.b"`) {
		t.Errorf("the upstream gets %s", q.get("messages").Raw)
	}
}

// TestLogprobsAreJoined keeps the logprobs of all the text that a whole answer joins.
func TestLogprobsAreJoined(t *testing.T) {
	with := func(m, logprobs string) answer {
		a := message(m, "stop")
		a.body = strings.Replace(a.body, `"finish_reason"`, `"logprobs":`+logprobs+`,"finish_reason"`, 1)
		return a
	}
	speaks := `{"role":"assistant","content":"Let ","tool_calls":[` + call("s1", "tool_search", `{"query":"mail"}`) + `]}`
	r := newRig(t, nil, with(speaks, `{"content":[{"token":"Let "}],"refusal":null}`), with(`{"role":"assistant","content":"me"}`, `{"content":[{"token":"me"}],"refusal":null}`))
	a := r.post(chatPath, chat(`"logprobs":true,`, user, threeTools))
	if got := a.get("choices.0.logprobs").Raw; got != `{"content":[{"token":"Let "},{"token":"me"}],"refusal":null}` {
		t.Errorf("the logprobs are %s of %s", got, a.body)
	}
}

// TestNoticesOfSilentSearchesComeWithTheStream: nothing is out when the search is told of.
func TestNoticesOfSilentSearchesComeWithTheStream(t *testing.T) {
	r := newRig(t, []string{"easter_egg.agent_call_message_enabled=all", "easter_egg.agent_call_message_delivery=sse"}, searches("s1", "mail"), says("hi"))
	a := r.post(chatPath, chat(`"stream":true,`, user, threeTools))
	if !strings.HasPrefix(a.body, ": tool_search") || !strings.Contains(a.body, `"hi"`) {
		t.Errorf("the client gets %s", a.body)
	}
}
