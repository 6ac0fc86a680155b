package openai

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// TestResponsesTextCalls takes calls that the model wrote as text for calls.
func TestResponsesTextCalls(t *testing.T) {
	quoted := func(s string) string { q := AppendString(nil, s); return string(q[1 : len(q)-1]) }
	find := quoted(`{"name":"tool_search","arguments":{"query":"weather"}}`)
	load := quoted(`{"name":"get_weather","arguments":{"city":"Oslo"}}`)
	mail := quoted(`{"name":"mail.send","arguments":{}}`)
	split := func(s string) []string { return []string{s[:9], s[9:20], s[20:]} }
	message := func(place int, id, s string) []string { return messageEvents(place, id, split(s)...) }
	o := AnswerOptions{TextCalls: true, Known: func(name string) bool {
		return slices.Contains([]string{"tool_search", "get_weather", "mail.send"}, name)
	}}
	cases := []struct {
		name   string
		rounds [][]byte
		names  testNames
		hidden []string // names of the calls of the hidden rounds
		want   string   // names of the output items, or their types
	}{
		{"a search, then a call",
			[][]byte{round("resp_1", nil, message(0, "msg_1", find)), round("resp_2", nil, message(0, "msg_2", load))},
			nil, []string{"tool_search"}, `get_weather`},
		{"reasoning in front of both",
			[][]byte{round("resp_1", nil, reasoningEvents(0, "rs_1", ""), message(1, "msg_1", find)),
				round("resp_2", nil, reasoningEvents(0, "rs_2", ""), message(1, "msg_2", load))},
			nil, []string{"tool_search"}, `reasoning,get_weather`},
		{"a tool that is not exposed",
			[][]byte{round("resp_1", nil, message(0, "msg_1", load)), round("resp_2", nil, messageEvents(0, "msg_2", "Sorry", "."))},
			testNames{"get_weather": true}, []string{"get_weather"}, `message`},
		{"a member of a group", [][]byte{round("resp_1", nil, message(0, "msg_1", mail))}, nil, nil, `send`},
		{"a search and a call", [][]byte{round("resp_1", nil, message(0, "msg_1", find+load))}, nil, nil, `get_weather`},
		{"words before a call", [][]byte{round("resp_1", nil, messageEvents(0, "msg_1", "Now: ", load))}, nil, nil, `message`},
		{"a text that stops short of a call", [][]byte{round("resp_1", nil, messageEvents(0, "msg_1", load[:20]))}, nil, nil, `message`},
		{"a structured call wins", [][]byte{round("resp_1", nil, message(0, "msg_1", find), weather(1, "c1"))}, nil, nil, `message,get_weather`},
		{"a structured search wins",
			[][]byte{round("resp_1", nil, message(0, "msg_1", load), search(1, "s1")), round("resp_2", nil, messageEvents(0, "msg_2", "x"))},
			nil, []string{"tool_search"}, `message,message`},
		{"a text in front of another item",
			[][]byte{round("resp_1", nil, message(0, "msg_1", find), hosted(1, "ws_1"))}, nil, nil, `message,web_search_call`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			v := responsesView(t, responsesRequest)
			p := play(t, v, o, c.names, c.rounds...)
			checkStream(t, v, p.client)
			label := func(list []gjson.Result) string {
				var out []string
				for _, item := range list {
					if name := item.Get("name").String(); name != "" {
						out = append(out, name)
					} else {
						out = append(out, item.Get("type").String())
					}
				}
				return strings.Join(out, ",")
			}
			events := eventsOf(t, p.client)
			output := events[len(events)-1].Get("response.output").Array()
			if got := label(output); got != c.want {
				t.Errorf("the client got %s, want %s:\n%s", got, c.want, p.client)
			}
			for _, item := range output {
				if item.Get("type").String() == "function_call" && (item.Get("call_id").String() == "" ||
					!gjson.Valid(item.Get("arguments").String()) || item.Get("name").String() == "send" &&
					item.Get("namespace").String() != "mail") {
					t.Errorf("the client got the call %s", item.Raw)
				}
			}
			var calls []string
			for i, r := range p.rounds {
				for _, call := range r.Calls {
					calls = append(calls, call.Name)
					if !strings.Contains(string(p.body), `"function_call_output","call_id":"`+call.ID+`"`) {
						t.Errorf("no result of %s in %s", call.ID, p.body)
					}
				}
				if gjson.ValidBytes(append(append([]byte{'['}, r.items...), ']')) == false {
					t.Errorf("round %d is replayed as %s", i+1, r.items)
				}
			}
			if !slices.Equal(calls, c.hidden) {
				t.Errorf("the hidden calls are %v, want %v", calls, c.hidden)
			}
			if bytes.Contains(p.body, []byte(`"text":"{\"name\":\"tool_search`)) {
				t.Errorf("the text of the call stays in the history: %s", p.body)
			}
			// Whole, it is the same.
			var whole [][]byte
			for _, raw := range c.rounds {
				all := eventsOf(t, raw)
				var items []string
				for _, e := range all {
					if item := e.Get("item"); e.Get("type").String() == "response.output_item.done" {
						items = append(items, item.Raw)
					}
				}
				whole = append(whole, []byte(response(all[0].Get("response.id").String(), "completed", strings.Join(items, ","))))
			}
			w := play(t, v, o, c.names, whole...)
			if got := label(gjson.GetBytes(w.client, "output").Array()); got != c.want {
				t.Errorf("whole the client got %s, want %s:\n%s", got, c.want, w.client)
			}
		})
	}
}

// TestResponsesTextCallsHoldBack says when the text of an answer is released.
func TestResponsesTextCallsHoldBack(t *testing.T) {
	v := responsesView(t, responsesRequest)
	o := AnswerOptions{TextCalls: true, Known: func(string) bool { return true }}
	for piece, opens := range map[string]bool{"Hello": true, " ": false, `{\"name`: false, "```": false, "<too": false, "<b": true} {
		a := Responses.NewAnswer(v, o)
		a.Begin(testNames{})
		r := NewEventReader(bytes.NewReader(script(append([]string{created("resp_1")}, messageEvents(0, "msg_1", piece)[:3]...)...)), 1<<20)
		var got []byte
		for {
			ev, err := r.Next()
			if err != nil {
				break
			}
			got = a.Event(got, ev)
		}
		if (len(got) > 0) != opens {
			t.Errorf("behind %q the client has got %q", piece, got)
		}
	}
}
