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
		search := func(id, name string) answer { return response("r"+id, called(id, "tool_search", `{"query":"select:`+name+`"}`)) }
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
