package openai

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// role opens a round as the official API does.
const role = `{"role":"assistant","content":"","refusal":null}`

func TestChatStream(t *testing.T) {
	cases := []struct {
		name   string
		rounds [][]byte
		want   chatClient
		// appended are the messages of the next request, one a line; "-" does not look.
		appended string
	}{
		{"an answer without calls", [][]byte{chunks("c1", role, "Hel", "lo", "=stop", "#1", ".")},
			chatClient{id: "c1", model: "m-c1", content: "Hello", finish: "stop", usage: usageOf("1"), roles: 1,
				done: 1}, ""},
		{"PC-001 a hidden round leaves no trace", [][]byte{
			chunks("c1", role, searchDelta("weather"), "=tool_calls", "#1", "."),
			chunks("c2", `{"role":"assistant","content":"Lo"}`, "ading", "=stop", "#2", ".")},
			chatClient{id: "c2", model: "m-c2", content: "Loading", finish: "stop", roles: 1, done: 1,
				usage: `{"prompt_tokens":20,"completion_tokens":3,"total_tokens":23}`},
			`{"role":"assistant","content":"","refusal":null,"tool_calls":[{"id":"s1","type":"function",` +
				`"function":{"name":"tool_search","arguments":"{\"query\":\"weather\"}"}}]}` + "\n" +
				`{"role":"tool","tool_call_id":"s1","content":"R11"}`},
		{"text before the hidden call goes out, and the answer keeps its identity", [][]byte{
			chunks("c1", role, "Let me look. ", searchDelta("w"), "=tool_calls", "#1", "."),
			chunks("c2", role, "Here.", "=stop", "#2", ".")},
			chatClient{id: "c1", model: "m-c1", content: "Let me look. Here.", finish: "stop", roles: 1, done: 1,
				usage: `{"prompt_tokens":20,"completion_tokens":3,"total_tokens":23}`},
			`{"role":"assistant","content":"Let me look. ","refusal":null,"tool_calls":[{"id":"s1","type":"function",` +
				`"function":{"name":"tool_search","arguments":"{\"query\":\"w\"}"}}]}` + "\n" +
				`{"role":"tool","tool_call_id":"s1","content":"R11"}`},
		{"PC-004 a call without an index", [][]byte{
			chunks("c1", callDelta("", "a", "tool_search", `{"query":"mail"}`), "=tool_calls", "."), chunks("c2",
				"ok", "=stop", ".")},
			chatClient{id: "c2", model: "m-c2", content: "ok", finish: "stop", done: 1}, "-"},
		{"PC-004 two calls without an index, in pieces", [][]byte{chunks("c1",
			callDelta("", "a", "read_file", `{"p`), `{"tool_calls":[{"function":{"arguments":"\":1}"}}]}`,
			callDelta("", "b", "read_file", ``), `{"tool_calls":[{"function":{"arguments":"{}"}}]}`, "=tool_calls",
			".")},
			chatClient{id: "c1", model: "m-c1", finish: "tool_calls", done: 1,
				calls: []clientCall{{"a", "read_file", `{"p":1}`}, {"b", "read_file", "{}"}}}, ""},
		{"PC-004 pieces in turns, told apart by their ids", [][]byte{chunks("c1",
			callDelta("", "a", "read_file", ``), callDelta("", "b", "read_file", ``),
			`{"tool_calls":[{"id":"a","function":{"arguments":"{\"a\":1}"}}]}`,
			`{"tool_calls":[{"id":"b","function":{"arguments":"{\"b\":1}"}}]}`,
			"=tool_calls", ".")},
			chatClient{id: "c1", model: "m-c1", finish: "tool_calls", done: 1,
				calls: []clientCall{{"a", "read_file", `{"a":1}`}, {"b", "read_file", `{"b":1}`}}}, ""},
		{"an index only on later pieces", [][]byte{chunks("c1",
			callDelta("", "a", "read_file", ``), `{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}`,
			"=tool_calls", ".")},
			chatClient{id: "c1", model: "m-c1", finish: "tool_calls", done: 1, calls: []clientCall{{"a", "read_file",
				"{}"}}}, ""},
		{"PC-034 parallel calls that are all number 0", [][]byte{chunks("c1",
			callDelta("0", "a", "tool_search", `{"query":"x"}`), callDelta("0", "b", "read_file", `{"path":"p"}`),
			"=tool_calls", ".")},
			chatClient{id: "c1", model: "m-c1", finish: "tool_calls", done: 1, calls: []clientCall{{"b", "read_file",
				`{"path":"p"}`}}}, ""},
		{"PC-034 the same without ids", [][]byte{chunks("c1",
			callDelta("0", "", "tool_search", `{"query":"x"}`), callDelta("0", "", "read_file", `{"path":"p"}`),
			"=tool_calls", ".")},
			chatClient{id: "c1", model: "m-c1", finish: "tool_calls", done: 1, calls: []clientCall{{"", "read_file",
				`{"path":"p"}`}}}, ""},
		{"PC-005 a mixed turn", [][]byte{chunks("c1", role,
			searchDelta("mail"), callDelta("1", "w1", "read_file", `{"path":"a"}`), "=tool_calls", ".")},
			chatClient{id: "c1", model: "m-c1", finish: "tool_calls", roles: 1, done: 1,
				calls: []clientCall{{"w1", "read_file", `{"path":"a"}`}}}, ""},
		{"a mixed turn in one delta, with text", [][]byte{chunks("c1",
			`{"role":"assistant","content":"So: ","tool_calls":[{"index":0,"id":"s1","type":"function",`+
				`"function":{"name":"tool_search",`+
				`"arguments":"{}"}},{"index":1,"id":"w1","type":"function","function":{"name":"read_file",`+
				`"arguments":"{}"}}]}`,
			"=tool_calls", ".")},
			chatClient{id: "c1", model: "m-c1", content: "So: ", finish: "tool_calls", roles: 1, done: 1,
				calls: []clientCall{{"w1", "read_file", `{}`}}}, ""},
		{"PC-011 a deferred tool called straight away", [][]byte{
			chunks("c1", callDelta("0", "g1", "get_weather", `{"city":"Oslo"}`), "=tool_calls", "."), chunks("c2",
				"ok", "=stop", ".")},
			chatClient{id: "c2", model: "m-c2", content: "ok", finish: "stop", done: 1},
			`{"role":"assistant","content":null,"tool_calls":[{"id":"g1","type":"function",` +
				`"function":{"name":"get_weather",` +
				`"arguments":"{\"city\":\"Oslo\"}"}}]}` + "\n" + `{"role":"tool","tool_call_id":"g1","content":"R11"}`},
		{"PC-008 reasoning goes out, and back", [][]byte{
			chunks("c1", `{"role":"assistant","reasoning_content":"need "}`, `{"reasoning_content":"tools"}`,
				searchDelta("mail"), "=tool_calls", "."),
			chunks("c2", "ok", "=stop", ".")},
			chatClient{id: "c1", model: "m-c1", reasoning: "need tools", content: "ok", finish: "stop", roles: 1,
				done: 1},
			`{"role":"assistant","content":null,"reasoning_content":"need tools","tool_calls":[{"id":"s1",` +
				`"type":"function",` +
				`"function":{"name":"tool_search","arguments":"{\"query\":\"mail\"}"}}]}` + "\n" +
				`{"role":"tool","tool_call_id":"s1","content":"R11"}`},
		{"PC-047 a signed block in pieces", [][]byte{
			chunks("c1", `{"reasoning_details":[{"type":"reasoning.text","text":"Let","format":"f","index":0}]}`,
				`{"reasoning_details":[{"type":"reasoning.text","text":" me","format":"f","index":0}]}`,
				`{"reasoning_details":[{"type":"reasoning.text","signature":"SIG","format":"f","index":0},`+
					`{"type":"x"},{"type":"x","index":null}]}`,
				searchDelta("m"), "=tool_calls", "."),
			chunks("c2", "ok", "=stop", ".")},
			chatClient{id: "c1", model: "m-c1", content: "ok", finish: "stop", done: 1},
			`{"role":"assistant","content":null,"reasoning_details":[{"type":"reasoning.text","text":"Let me",` +
				`"format":"f","index":0,` +
				`"signature":"SIG"},{"type":"x"},{"type":"x","index":null}],"tool_calls":[{"id":"s1",` +
				`"type":"function",` +
				`"function":{"name":"tool_search","arguments":"{\"query\":\"m\"}"}}]}` + "\n" +
				`{"role":"tool","tool_call_id":"s1","content":"R11"}`},
		{"PC-095 content that is null stays null, members of a call come back", [][]byte{
			chunks("c1", `{"role":"assistant","content":null}`, `{"tool_calls":[{"index":0,"id":"s1",`+
				`"type":"function","extra_content":{"google":{"thought_signature":"S"}},`+
				`"function":{"name":"tool_search","arguments":"{}","x":[1.0]}}]}`, "=tool_calls", "."),
			chunks("c2", "ok", "=stop", ".")},
			chatClient{id: "c2", model: "m-c2", content: "ok", finish: "stop", done: 1},
			`{"role":"assistant","content":null,"tool_calls":[{"id":"s1","type":"function",` +
				`"function":{"name":"tool_search","arguments":"{}","x":[1.0]},` +
				`"extra_content":{"google":{"thought_signature":"S"}}}]}` + "\n" +
				`{"role":"tool","tool_call_id":"s1","content":"R11"}`},
		{"PC-061 arguments that are an object", [][]byte{
			chunks("c1", `{"tool_calls":[{"index":0,"id":"s1","function":{"name":"tool_search",`+
				`"arguments":{"query":"mail"}}}]}`, "=tool_calls", "."),
			chunks("c2", "ok", "=stop", ".")},
			chatClient{id: "c2", model: "m-c2", content: "ok", finish: "stop", done: 1},
			`{"role":"assistant","content":null,"tool_calls":[{"id":"s1","type":"function",` +
				`"function":{"name":"tool_search",` +
				`"arguments":"{\"query\":\"mail\"}"}}]}` + "\n" + `{"role":"tool","tool_call_id":"s1",` +
				`"content":"R11"}`},
		{"PC-061 no arguments at all", [][]byte{
			chunks("c1", `{"tool_calls":[{"index":0,"id":"s1","function":{"name":"tool_search"}}]}`, "=tool_calls",
				"."), chunks("c2", "ok", "=stop", ".")},
			chatClient{id: "c2", model: "m-c2", content: "ok", finish: "stop", done: 1},
			`{"role":"assistant","content":null,"tool_calls":[{"id":"s1","type":"function",` +
				`"function":{"name":"tool_search",` +
				`"arguments":"{}"}}]}` + "\n" + `{"role":"tool","tool_call_id":"s1","content":"R11"}`},
		{"PC-073 several searches", [][]byte{
			chunks("c1", searchDelta("a"), callDelta("1", "s2", "tool_search", `{"query":"b"}`), "=tool_calls", "."),
			chunks("c2", "ok", "=stop", ".")},
			chatClient{id: "c2", model: "m-c2", content: "ok", finish: "stop", done: 1},
			`{"role":"assistant","content":null,"tool_calls":[{"id":"s1","type":"function",` +
				`"function":{"name":"tool_search",` +
				`"arguments":"{\"query\":\"a\"}"}},{"id":"s2","type":"function","function":{"name":"tool_search",` +
				`"arguments":"{\"query\":\"b\"}"}}]}` +
				"\n" + `{"role":"tool","tool_call_id":"s1","content":"R11"}` + "\n" +
				`{"role":"tool","tool_call_id":"s2","content":"R12"}`},
		{"a name in pieces", [][]byte{
			chunks("c1", `{"tool_calls":[{"index":0,"id":"s1","type":"function","function":{"name":"tool_",`+
				`"arguments":""}}]}`,
				`{"tool_calls":[{"index":0,"function":{"name":"search","arguments":""}}]}`,
				`{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}`, "=tool_calls", "."),
			chunks("c2", "ok", "=stop", ".")},
			chatClient{id: "c2", model: "m-c2", content: "ok", finish: "stop", done: 1}, "-"},
		{"a visible name in pieces that begins like a hidden one", [][]byte{
			chunks("c1", `{"tool_calls":[{"index":0,"id":"s1","type":"function","function":{"name":"tool_se",`+
				`"arguments":""}}]}`,
				`{"tool_calls":[{"index":0,"function":{"name":"t_up","arguments":""}}]}`,
				`{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}`, "=tool_calls", ".")},
			chatClient{id: "c1", model: "m-c1", finish: "tool_calls", done: 1, calls: []clientCall{{"s1",
				"tool_set_up", "{}"}}}, ""},
		{"id and name in every piece", [][]byte{
			chunks("c1", callDelta("0", "s1", "tool_search", ""), callDelta("0", "s1", "tool_search", `{"query":`),
				callDelta("0", "s1", "tool_search", `"m"}`), callDelta("0", "s1", "tool_search", ""), "=tool_calls",
				"."),
			chunks("c2", "ok", "=stop", ".")},
			chatClient{id: "c2", model: "m-c2", content: "ok", finish: "stop", done: 1},
			`{"role":"assistant","content":null,"tool_calls":[{"id":"s1","type":"function",` +
				`"function":{"name":"tool_search",` +
				`"arguments":"{\"query\":\"m\"}"}}]}` + "\n" + `{"role":"tool","tool_call_id":"s1","content":"R11"}`},
		{"name in every piece, without an id", [][]byte{
			chunks("c1", callDelta("0", "", "read_file", ""), callDelta("0", "", "read_file", `{"p":`),
				callDelta("0", "", "read_file", `{}}`),
				callDelta("0", "", "read_file", ""), "=tool_calls", ".")},
			chatClient{id: "c1", model: "m-c1", finish: "tool_calls", done: 1, calls: []clientCall{{"", "read_file",
				`{"p":{}}`}}}, ""},
		{"labels from 1 on, and -1", [][]byte{chunks("c1",
			callDelta("1", "a", "read_file", `{}`), callDelta("2", "b", "read_file", `{}`), callDelta("-1", "c",
				"read_file", `{}`), "=tool_calls", ".")},
			chatClient{id: "c1", model: "m-c1", finish: "tool_calls", done: 1,
				calls: []clientCall{{"a", "read_file", "{}"}, {"b", "read_file", "{}"}, {"c", "read_file", "{}"}}}, ""},
		{"visible pieces in turns with hidden ones", [][]byte{chunks("c1",
			callDelta("0", "s1", "tool_search", ""), callDelta("1", "a", "read_file", ""),
			`{"tool_calls":[{"index":0,"function":{"arguments":"{}"}},`+
				`{"index":1,"function":{"arguments":"{\"x\":1}"}}]}`, "=tool_calls", ".")},
			chatClient{id: "c1", model: "m-c1", finish: "tool_calls", done: 1, calls: []clientCall{{"a", "read_file",
				`{"x":1}`}}}, ""},
		{"a custom tool's call", [][]byte{chunks("c1",
			`{"tool_calls":[{"index":0,"id":"x","type":"custom","custom":{"name":"patch","input":"ab"}}]}`,
			`{"tool_calls":[{"index":0,"custom":{"input":"cd"}}]}`, "=tool_calls", ".")},
			chatClient{id: "c1", model: "m-c1", finish: "tool_calls", done: 1, calls: []clientCall{{"x", "patch",
				"abcd"}}}, ""},
		{"calls that are [] and null", [][]byte{chunks("c1", `{"role":"assistant","content":"a","tool_calls":[]}`,
			`{"content":"b","tool_calls":null}`, "=stop", ".")},
			chatClient{id: "c1", model: "m-c1", content: "ab", finish: "stop", roles: 1, done: 1}, ""},
		{"PC-059 a search cut by the limit", [][]byte{
			chunks("c1", role, "So", `{"tool_calls":[{"index":0,"id":"s1","function":{"name":"tool_search",`+
				`"arguments":"{\"query\":\"ma"}}]}`, "=length", ".")},
			chatClient{id: "c1", model: "m-c1", content: "So", finish: "length", roles: 1, done: 1}, ""},
		{"PC-071 a search at the bound", [][]byte{chunks("c1", role, "So", searchDelta("x"), "=tool_calls", ".")},
			chatClient{id: "c1", model: "m-c1", content: "So", finish: "stop", roles: 1, done: 1}, ""},
		{"PC-092 no [DONE]", [][]byte{chunks("c1", searchDelta("m"), "=tool_calls"), chunks("c2", "ok", "=stop")},
			chatClient{id: "c2", model: "m-c2", content: "ok", finish: "stop", done: 1}, "-"},
		{"PC-092 no blank line at the end", [][]byte{bytes.TrimSpace(chunks("c1", searchDelta("m"), "=tool_calls")),
			bytes.TrimSpace(chunks("c2", "ok", "=stop"))},
			chatClient{id: "c2", model: "m-c2", content: "ok", finish: "stop", done: 1}, "-"},
		{"no blank line behind the last text", [][]byte{bytes.TrimSpace(chunks("c1",
			`!`+identity("c1")+`"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}`))},
			chatClient{id: "c1", model: "m-c1", content: "a", finish: "stop", done: 1}, ""},
		{"PC-094 two ends", [][]byte{chunks("c1", callDelta("0", "a", "read_file", "{}"), "=tool_calls", "=stop",
			".", ".", "more")},
			chatClient{id: "c1", model: "m-c1", finish: "tool_calls", done: 1, calls: []clientCall{{"a", "read_file",
				"{}"}}}, ""},
		{"a call without arguments whose name begins a hidden one, then another", [][]byte{
			chunks("c1", callDelta("0", "a", "send", ""), callDelta("1", "b", "read_file", "{}"), "=tool_calls", ".")},
			chatClient{id: "c1", model: "m-c1", finish: "tool_calls", done: 1, calls: []clientCall{{"a", "send", ""},
				{"b", "read_file", "{}"}}}, ""},
		{"everything in one chunk", [][]byte{
			chunks("c1", `!`+identity("c1")+`"choices":[{"index":0,"delta":{"role":"assistant","content":"Look. ",`+
				`"tool_calls":[{"index":0,"id":"s1",`+
				`"type":"function","function":{"name":"tool_search","arguments":"{}"}}]},`+
				`"finish_reason":"tool_calls"}],"usage":`+usageOf("1")+`}`, "."),
			chunks("c2", `!`+identity("c2")+`"choices":[{"index":0,"delta":{"role":"assistant","content":"Done."},`+
				`"finish_reason":"stop"}],"usage":`+
				usageOf("2")+`}`, ".")},
			chatClient{id: "c1", model: "m-c1", content: "Look. Done.", finish: "stop", roles: 1, done: 1,
				usage: `{"prompt_tokens":20,"completion_tokens":3,"total_tokens":23}`}, "-"},
		{"usage in a chunk with an empty choice behind the end", [][]byte{
			chunks("c1", role, "Look. ", searchDelta("x"), "=tool_calls", `!`+identity("c1")+`"choices":[{"index":0,`+
				`"delta":{"role":"assistant","content":""},`+
				`"finish_reason":null}],"usage":`+usageOf("1")+`}`, "."),
			chunks("c2", role, "Done.", "=stop", `!`+identity("c2")+`"choices":[{"index":0,`+
				`"delta":{"role":"assistant","content":""},`+
				`"finish_reason":"stop"}],"usage":`+usageOf("2")+`}`, ".")},
			chatClient{id: "c1", model: "m-c1", content: "Look. Done.", finish: "stop", roles: 1, done: 1,
				usage: `{"prompt_tokens":20,"completion_tokens":3,"total_tokens":23}`}, "-"},
		{"usage of an earlier round only", [][]byte{
			chunks("c1", searchDelta("x"), "=tool_calls", "#1", "."), chunks("c2", role, "Done.", "=stop", ".")},
			chatClient{id: "c2", model: "m-c2", content: "Done.", finish: "stop", roles: 1, done: 1,
				usage: usageOf("1")}, "-"},
		{"content in parts", [][]byte{
			chunks("c1", `{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}`, "Look",
				" here", searchDelta("x"), "=tool_calls", "."),
			chunks("c2", "ok", "=stop", ".")},
			chatClient{id: "c1", model: "m-c1", content: `[{"type":"thinking","thinking":[{"type":"text",` +
				`"text":"hm"}]}]Look hereok`, finish: "stop", done: 1},
			`{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},` +
				`{"type":"text","text":"Look here"}],` +
				`"tool_calls":[{"id":"s1","type":"function","function":{"name":"tool_search",` +
				`"arguments":"{\"query\":\"x\"}"}}]}` + "\n" +
				`{"role":"tool","tool_call_id":"s1","content":"R11"}`},
		{"finish reason as an empty string until the end", [][]byte{chunks("c1",
			`!`+identity("c1")+`"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":""}]}`,
			`!`+identity("c1")+`"choices":[{"index":0,"delta":{"content":"b"}}]}`, "=stop", ".")},
			chatClient{id: "c1", model: "m-c1", content: "ab", finish: "stop", done: 1}, ""},
		{"PC-068 chunks without choices, delta or identity", [][]byte{chunks("c1",
			`!{"id":"","object":"","created":0,"model":"","prompt_filter_results":[],"choices":[]}`, role, "a",
			`!{"id":"","choices":[{"finish_reason":null,"index":0,"content_filter_offsets":{"check_offset":1}}],`+
				`"created":0,"model":"","object":""}`,
			"=stop", ".")},
			chatClient{id: "c1", model: "m-c1", content: "a", finish: "stop", roles: 1, done: 1}, ""},
		{"an error that is none", [][]byte{chunks("c1", `!`+identity("c1")+`"error":"","choices":[{"index":0,`+
			`"delta":{"content":"a"},"finish_reason":null}]}`, "=stop", ".")},
			chatClient{id: "c1", model: "m-c1", content: "a", finish: "stop", done: 1}, ""},
		{"a role that is null first", [][]byte{chunks("c1", `{"role":null,"content":"a"}`,
			`{"role":"assistant","content":"b"}`, `{"role":"assistant","content":"c"}`, "=stop", ".")},
			chatClient{id: "c1", model: "m-c1", content: "abc", finish: "stop", roles: 1, done: 1}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			v := chatView(t, chatRequest)
			p := playChat(t, v, AnswerOptions{}, weatherAndMail, false, c.rounds...)
			got := readChat(t, p.client)
			if got.callList() != c.want.callList() {
				t.Errorf("got the calls\n%s\nwant\n%s", got.callList(), c.want.callList())
			}
			got.calls, c.want.calls = nil, nil
			if got.id != c.want.id || got.model != c.want.model || got.content != c.want.content ||
				got.reasoning != c.want.reasoning ||
				got.finish != c.want.finish || got.usage != c.want.usage || got.roles != c.want.roles ||
				got.done != c.want.done || got.failure != "" {
				t.Errorf("the client read\n%+v\nwant\n%+v\nin\n%s", got, c.want, p.client)
			}
			if bytes.Contains(p.client, []byte("tool_search")) || bytes.Contains(p.client,
				[]byte(`"tool_calls":[]`)) && !strings.Contains(c.name, "[]") {
				t.Errorf("the client got\n%s", p.client)
			}
			if appended := p.appended(v); c.appended != "-" && appended != c.appended {
				t.Errorf("the next request has\n%s\nwant\n%s", appended, c.appended)
			}
			if slow := playChat(t, v, AnswerOptions{}, weatherAndMail, true, c.rounds...); !bytes.Equal(slow.client,
				p.client) || !bytes.Equal(slow.body, p.body) {
				t.Errorf("byte by byte the client got\n%s\nand not\n%s", slow.client, p.client)
			}
		})
	}
}

// TestChatHoldsBack says what the client has after each round: nothing before there is something to see, so that an error
// can still be told by its status.
func TestChatHoldsBack(t *testing.T) {
	v := chatView(t, chatRequest)
	p := playChat(t, v, AnswerOptions{}, weatherAndMail, false,
		chunks("c1", "!"+identity("c1")+`"choices":[]}`, role, searchDelta("x"), "=tool_calls", "#1", "."),
		chunks("c2", role, "a", "=stop", "#1", "."))
	if p.perRound[0] != "" {
		t.Errorf("a round without a trace gave the client\n%s", p.perRound[0])
	}
	if want := string(chunks("c2", role, "a")); p.perRound[1] != want {
		t.Errorf("the second round gave the client\n%s\nbefore its end, want\n%s", p.perRound[1], want)
	}

	a := Chat.NewAnswer(v, AnswerOptions{})
	a.Begin(weatherAndMail)
	feed := func(stream []byte) string {
		var out []byte
		reader := NewEventReader(bytes.NewReader(stream), 1<<20)
		for {
			ev, err := reader.Next()
			if err != nil {
				return string(out)
			}
			out = a.Event(out, ev)
		}
	}
	if got := feed(append([]byte(": waiting\n\n"), chunks("c1", role)...)); got != "" {
		t.Errorf("the opening was not held back: %s", got)
	}
	if got := string(a.Release(nil)); got != string(chunks("c1", role)) {
		t.Errorf("released was %s", got)
	}
	if got := string(a.Release(nil)); got != "" {
		t.Errorf("released again was %s", got)
	}
	if got := feed([]byte(": PC-035 a comment\n\n")); got != ": PC-035 a comment\n\n" {
		t.Errorf("a comment within the stream came out as %q", got)
	}
	// Text flows at once; a call waits only for its name.
	if got, want := feed(chunks("c1", "Hi")), string(chunks("c1", "Hi")); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := feed(chunks("c1", `{"tool_calls":[{"index":0,"id":"a","function":{"name":"send_",`+
		`"arguments":""}}]}`)); got != "" {
		t.Errorf("a call went out before its name was known: %s", got)
	}
	piece := `{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}`
	if got := feed(chunks("c1", piece)); !strings.Contains(got, `"send_"`) || !strings.HasSuffix(got,
		string(chunks("c1", piece))) {
		t.Errorf("a visible call came out as %s", got)
	}
	if a.Progress() != Running {
		t.Error("the round is not running")
	}
	if got := feed(chunks("c1", "=tool_calls")); got != "" || a.Progress() != Ending {
		t.Errorf("the finish reason did not wait for the end of the round: %s", got)
	}
	if got := feed(chunks("c1", ".")); got != "" || a.Progress() != Over {
		t.Errorf("the end did not wait: %s", got)
	}
}

// TestChatAsItCame feeds streams without hidden calls: they go to the client byte for byte.
func TestChatAsItCame(t *testing.T) {
	streams := map[string]string{
		"text": string(chunks("c1", role, "Hel", "lo", "=stop", "#1", ".")),
		"calls": string(chunks("c1", `{"role":"assistant","content":null}`, callDelta("0", "a", "read_file", ""),
			`{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}`, callDelta("1", "b", "read_file", "{}"),
			"=tool_calls", ".")),
		"unknown members": string(chunks("c1", `{"role":"assistant","content":"a","x":1.0,"audio":{"id":"u",`+
			`"data":"AA"},"annotations":[{"a":1}]}`,
			`!{"id":"c1","created":11,"model":"m-c1","obfuscation":"xyz","big":12345678901234567890,"usage":null,`+
				`"choices":[{"index":0,`+
				`"delta":{"refusal":null,"content":"\u00e9<&>"},"logprobs":{"content":[{"token":"a"}]},`+
				`"finish_reason":null,"y":[1e3]}]}`, "=stop", ".")),
		"PC-013 no space behind the colon, comments and CRLF": "data:{\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":null}]}\r\n\r\n" +
			": PC-035 still here\r\n\r\n" + "retry: 10\r\nid: 7\r\ndata:{\"type\":\"keepalive\"}\r\n\r\n" +
			"data: [DONE]\n\n",
	}
	for name, stream := range streams {
		t.Run(name, func(t *testing.T) {
			p := playChat(t, chatView(t, chatRequest), AnswerOptions{}, weatherAndMail, false, []byte(stream))
			if string(p.client) != stream {
				t.Errorf("got\n%s\nwant\n%s", p.client, stream)
			}
		})
	}
}

// TestChatSplitChunks looks at chunks that have to go out in parts: nothing of them may come twice.
func TestChatSplitChunks(t *testing.T) {
	text := `"delta":{"content":"Look. ","annotations":[{"n":1}]`
	call := `,"tool_calls":[{"index":0,"id":"s1","function":{"name":"tool_search","arguments":"{}"}},` +
		`{"index":1,"id":"r1","function":{"name":"read_file","arguments":"{}"}}]}`
	rest := `,"logprobs":{"content":[{"token":"Look"}]},"finish_reason":`
	head := `!` + identity("c1") + `"obfuscation":"xx","usage":` + usageOf("1") + `,"choices":[{"index":0,`
	for name, parts := range map[string][]string{
		"text and calls":             {head + text + call + rest + `null}]}`, "=tool_calls", "."},
		"text, calls and the finish": {head + text + call + rest + `"tool_calls"}]}`, "."},
		"text and the finish":        {head + text + `}` + rest + `"stop"}]}`, "."},
	} {
		t.Run(name, func(t *testing.T) {
			p := playChat(t, chatView(t, chatRequest), AnswerOptions{}, weatherAndMail, false, chunks("c1", parts...))
			readChat(t, p.client)
			for _, once := range []string{`"token":"Look"`, `"content":"Look. "`, `{"n":1}`, `"finish_reason":"`} {
				if n := bytes.Count(p.client, []byte(once)); n != 1 {
					t.Errorf("%s is there %d times in\n%s", once, n, p.client)
				}
			}
		})
	}
}

// TestChatFailures says what the client gets when a round goes wrong.
func TestChatFailures(t *testing.T) {
	cases := []struct {
		name   string
		rounds [][]byte
		want   string // of the error
	}{
		{"PC-043 an error in the second round", [][]byte{chunks("c1", role, "Let me look. ", searchDelta("m"),
			"=tool_calls", "."),
			chunks("c2", `!{"error":{"message":"overloaded","type":"server_error","code":503}}`, ".")},
			`{"message":"overloaded","type":"server_error","code":503}`},
		{"an error in the first round", [][]byte{chunks("c1", role, "a", `!{"error":{"message":"x"},"choices":[]}`,
			"=stop", ".")}, `{"message":"x"}`},
		{"a cut text", [][]byte{chunks("c1", role, "half")}, `{"message":"cut","type":"server_error","param":null,` +
			`"code":"server_error"}`},
		{"a cut call", [][]byte{chunks("c1", role, "half", `{"tool_calls":[{"index":0,"id":"s1",`+
			`"function":{"name":"tool_search","arguments":"{\"que"}}]}`)},
			`{"message":"cut","type":"server_error","param":null,"code":"server_error"}`},
		{"a cut chunk", [][]byte{[]byte(string(chunks("c1", role, "half")) +
			`data: {"id":"c1","choices":[{"delta":{"con`)},
			`{"message":"cut","type":"server_error","param":null,"code":"server_error"}`},
		{"a cut second round", [][]byte{chunks("c1", role, "a", searchDelta("m"), "=tool_calls", "."), chunks("c2",
			role)},
			`{"message":"cut","type":"server_error","param":null,"code":"server_error"}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := playChat(t, chatView(t, chatRequest), AnswerOptions{}, weatherAndMail, false, c.rounds...)
			got := readChat(t, p.client)
			if got.failure != c.want || got.finish != "" || got.done != 0 || got.content == "" {
				t.Errorf("the client read %+v in\n%s", got, p.client)
			}
		})
	}
	p := playChat(t, chatView(t, chatRequest), AnswerOptions{}, weatherAndMail, false,
		[]byte(`{"error":{"message":"no","type":"t","code":"c"}}`))
	if f := p.last.Failure; f == nil || f.Message != "no" || f.Type != "t" || f.Code != "c" {
		t.Errorf("the failure of a whole answer is %+v", f)
	}
}

// TestChatUsageNotAsked keeps the usage chunk from a client that did not ask for it, PC-016.
func TestChatUsageNotAsked(t *testing.T) {
	for _, options := range []string{``, `"stream_options":{"include_usage":false},`, `"stream_options":null,`} {
		v := chatView(t, strings.Replace(chatRequest, `"stream_options":{"include_usage":true},`, options, 1))
		p := playChat(t, v, AnswerOptions{}, weatherAndMail, false,
			chunks("c1", searchDelta("m"), "=tool_calls", "#1", "."), chunks("c2", "ok", "=stop", "#2", "."))
		for _, bare := range []string{`"choices":null`, `"x":1`, `"choices":[{"index":0,"finish_reason":null}]`} {
			odd := `!` + identity("c2") + bare + `,"usage":` + usageOf("2") + `}`
			q := playChat(t, v, AnswerOptions{}, weatherAndMail, false, chunks("c2", role, "ok", "=stop", odd, "."))
			if got := readChat(t, q.client); got.usage != "" || string(q.last.Usage) != usageOf("2") {
				t.Errorf("of a usage chunk with %s the client read %+v", bare, got)
			}
		}
		if got := readChat(t, p.client); got.usage != "" || got.content != "ok" ||
			string(p.last.Usage) != usageOf("2") {
			t.Errorf("with %q the client read %+v, and the round's usage was %s", options, got, p.last.Usage)
		}
	}
}

// TestChatTextCalls takes calls that the model wrote as text for calls, in streams and in whole answers.
func TestChatTextCalls(t *testing.T) {
	search := `{"name":"tool_search","arguments":{"query":"weather"}}`
	read := `{"tool":"read_file","path":"a"}`
	o := AnswerOptions{TextCalls: true, Known: knownTools("tool_search", "read_file", "get_weather")}
	cases := []struct {
		name   string
		rounds [][]string // of texts, by deltas; "{" at the front of the first makes it a raw delta
		want   chatClient
		hidden string
	}{
		{"prose", [][]string{{"He", "llo"}}, chatClient{content: "Hello", finish: "stop"}, ""},
		{"a search, then an answer", [][]string{{search[:9], search[9:20], search[20:]}, {"ok"}},
			chatClient{content: "ok", finish: "stop"}, "tool_search"},
		{"a search, then a client's call", [][]string{{search}, {read[:5], read[5:]}},
			chatClient{finish: "tool_calls", calls: []clientCall{{"", "read_file", `{"path":"a"}`}}}, "tool_search"},
		{"both in one text", [][]string{{search, "\n", read}},
			chatClient{finish: "tool_calls", calls: []clientCall{{"", "read_file", `{"path":"a"}`}}}, ""},
		{"a tool that is not exposed", [][]string{{`<function=get_weather>`, `</function>`}, {"ok"}},
			chatClient{content: "ok", finish: "stop"}, "get_weather"},
		{"an id of its own", [][]string{{`{"tool_calls":[{"id":"c9","name":"read_file","arguments":{}}]}`}},
			chatClient{finish: "tool_calls", calls: []clientCall{{"c9", "read_file", `{}`}}}, ""},
		{"words behind", [][]string{{search, " as you see"}}, chatClient{content: search + " as you see",
			finish: "stop"}, ""},
		{"words in front", [][]string{{"Now: ", search}}, chatClient{content: "Now: " + search, finish: "stop"}, ""},
		{"a broken call", [][]string{{search[:20]}}, chatClient{content: search[:20], finish: "stop"}, ""},
		{"an unknown tool", [][]string{{`{"tool":"other"}`}}, chatClient{content: `{"tool":"other"}`,
			finish: "stop"}, ""},
	}
	for _, c := range cases {
		for _, way := range []string{"streamed", "whole"} {
			t.Run(c.name+" "+way, func(t *testing.T) {
				v := chatView(t, chatRequest)
				var rounds [][]byte
				for n, texts := range c.rounds {
					id := "c" + string(rune('1'+n))
					if way == "whole" {
						text := AppendString(nil, strings.Join(texts, ""))
						rounds = append(rounds, []byte(`{"id":"`+id+`","choices":[{"index":0,`+
							`"message":{"role":"assistant","content":`+string(text)+
							`,"reasoning_content":"hm"},"finish_reason":"stop"}]}`))
						continue
					}
					parts := []string{`{"role":"assistant","content":"","reasoning_content":"hm"}`}
					for _, text := range texts {
						parts = append(parts, `{"content":`+string(AppendString(nil, text))+`}`)
					}
					rounds = append(rounds, chunks(id, append(parts, "=stop", ".")...))
				}
				p := playChat(t, v, o, weatherAndMail, false, rounds...)
				got := chatClient{}
				if way == "whole" {
					got = wholeChat(t, p.client)
				} else {
					got = readChat(t, p.client)
					if got.roles != 1 || got.done != 1 {
						t.Errorf("%d roles and %d ends in\n%s", got.roles, got.done, p.client)
					}
				}
				for i := range got.calls {
					if strings.HasPrefix(got.calls[i].id, "call_txt_") {
						got.calls[i].id = ""
					} else if got.calls[i].id != "c9" {
						t.Errorf("a call has the id %q", got.calls[i].id)
					}
				}
				if got.content != c.want.content || got.finish != c.want.finish ||
					got.callList() != c.want.callList() ||
					got.reasoning != strings.Repeat("hm", len(rounds)) {
					t.Errorf("the client read\n%+v\nwant\n%+v\nin\n%s", got, c.want, p.client)
				}
				var hidden []string
				for _, r := range p.rounds {
					calls, _ := r.Hidden()
					for _, call := range calls {
						hidden = append(hidden, call.Name)
					}
				}
				if strings.Join(hidden, ",") != c.hidden {
					t.Errorf("hidden were %v, want %s", hidden, c.hidden)
				}
				if appended := p.appended(v); c.hidden != "" && (!strings.HasPrefix(appended,
					`{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"call_txt_`) ||
					strings.Contains(appended, `\"name\"`)) {
					t.Errorf("the next request has\n%s", appended)
				}
			})
		}
	}
}

// TestChatTextCallsHoldBack: only what may be a call waits, and nothing beside it.
func TestChatTextCallsHoldBack(t *testing.T) {
	var unread []int
	o := AnswerOptions{TextCalls: true, Known: knownTools("tool_search"), Unread: func(_ error,
		length int) {
		unread = append(unread, length)
	}}
	v := chatView(t, chatRequest)
	cases := []struct {
		name  string
		parts []string
		early string // content that the client has before the finish reason
		late  string // and at the end
	}{
		{"prose", []string{"Hello"}, "Hello", "Hello"},
		{"white space, then prose", []string{" \n", "Hello"}, " \nHello", " \nHello"},
		{"a tag", []string{"<", "b>x"}, "<b>x", "<b>x"},
		{"JSON", []string{`{"answer`, `":1`}, `{"answer":1`, `{"answer":1`},
		{"a cut call", []string{`{"tool":`}, ``, `{"tool":`},
		{"a call and a structured call", []string{`{"tool":"tool_search"}`, callDelta("0", "a", "read_file", "{}")},
			`{"tool":"tool_search"}`, `{"tool":"tool_search"}`},
		{"content in parts", []string{`{"content":[{"type":"text","text":"{"}]}`}, `[{"type":"text","text":"{"}]`,
			`[{"type":"text","text":"{"}]`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			unread = nil
			parts := []string{`{"role":"assistant"}`}
			for _, part := range c.parts {
				if strings.HasPrefix(part, `{"content"`) || strings.HasPrefix(part, `{"tool_calls"`) {
					parts = append(parts, part)
				} else {
					parts = append(parts, `{"content":`+string(AppendString(nil, part))+`,"reasoning_content":"r"}`)
				}
			}
			a := Chat.NewAnswer(v, o)
			a.Begin(weatherAndMail)
			var out []byte
			reader := NewEventReader(bytes.NewReader(chunks("c1", append(parts, "=stop", ".")...)), 1<<20)
			for a.Progress() == Running {
				ev, err := reader.Next()
				if err != nil {
					t.Fatal(err)
				}
				out = a.Event(out, ev)
			}
			if got := readChat(t, out); got.content != c.early || len(got.reasoning) != strings.Count(strings.Join(parts, ""), `"r"`) {
				t.Errorf("before the end the client read %+v", got)
			}
			a.End()
			if got := readChat(t, a.Finish(out)); got.content != c.late || got.finish != "stop" {
				t.Errorf("the client read %+v", got)
			}
			if c.name == "a cut call" != (len(unread) == 1 && unread[0] == len(c.late)) {
				t.Errorf("told of texts of lengths %v", unread)
			}
		})
	}
	// A call that a limit cut, and one in an answer without a finish reason.
	text := `{"tool":"tool_search"}`
	p := playChat(t, v, o, weatherAndMail, false, chunks("c1", `{"content":`+string(AppendString(nil, text))+`}`,
		"=length", "."))
	if got := readChat(t, p.client); got.content != text || got.finish != "length" {
		t.Errorf("of a cut answer the client read %+v", got)
	}
	o.Known = knownTools("read_file")
	p = playChat(t, v, o, weatherAndMail, false, chunks("c1",
		`{"role":"assistant","content":"<function=read_file></function>"}`, "."))
	if got := readChat(t, p.client); got.content != "" || len(got.calls) != 1 || got.roles != 1 {
		t.Errorf("of an answer without a finish reason the client read %+v", got)
	}
}

// wholeChat reads an answer that is not streamed.
func wholeChat(t testing.TB, body []byte) chatClient {
	t.Helper()
	if !gjson.ValidBytes(body) {
		t.Fatalf("the answer is no JSON: %s", body)
	}
	e := gjson.ParseBytes(body)
	m := e.Get("choices.0.message")
	c := chatClient{id: e.Get("id").String(), content: m.Get("content").String(),
		reasoning: m.Get("reasoning_content").String(),
		finish:    e.Get("choices.0.finish_reason").String(), usage: e.Get("usage").Raw}
	for _, call := range m.Get("tool_calls").Array() {
		c.calls = append(c.calls, clientCall{call.Get("id").String(), call.Get("function.name").String(),
			call.Get("function.arguments").String()})
	}
	return c
}

// chatBody writes a whole answer.
func chatBody(id, message, finish, usage string) []byte {
	return []byte(`{"id":"` + id + `","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,` +
		`"message":` + message +
		`,"logprobs":null,"finish_reason":` + finish + `}],"usage":` + usage + `,"x":{"é":1.0}}`)
}

func TestChatWhole(t *testing.T) {
	call := func(id, name, arguments string) string {
		return `{"id":"` + id + `","type":"function","function":{"name":"` + name + `","arguments":` + arguments + `}}`
	}
	search := call("s1", "tool_search", `"{\"query\":\"m\"}"`)
	read := call("w1", "read_file", `"{}"`)
	cases := []struct {
		name     string
		rounds   [][]byte
		want     string
		appended string
	}{
		{"as it came", [][]byte{chatBody("c1", `{"role":"assistant","content":"a <&>","refusal":null,`+
			`"annotations":[]}`, `"stop"`, usageOf("1"))},
			string(chatBody("c1", `{"role":"assistant","content":"a <&>","refusal":null,"annotations":[]}`, `"stop"`,
				usageOf("1"))), ""},
		{"visible calls as they came", [][]byte{chatBody("c1", `{"role":"assistant","content":null,`+
			`"tool_calls":[`+read+`,{"id":"x","type":"custom","custom":{"name":"patch","input":"a"}}]}`,
			`"stop"`, "null")},
			string(chatBody("c1", `{"role":"assistant","content":null,"tool_calls":[`+read+`,{"id":"x",`+
				`"type":"custom","custom":{"name":"patch","input":"a"}}]}`, `"stop"`, "null")), ""},
		{"PC-095 a hidden round goes back as it came", [][]byte{
			chatBody("c1", `{"role":"assistant","content":null,"refusal":null,"x":[1.0],"tool_calls":[`+search+`]}`,
				`"tool_calls"`, usageOf("1")),
			chatBody("c2", `{"role":"assistant","content":"ok"}`, `"stop"`, usageOf("2"))},
			string(chatBody("c2", `{"role":"assistant","content":"ok","refusal":null,"x":[1.0]}`, `"stop"`,
				`{"prompt_tokens":20,"completion_tokens":3,"total_tokens":23}`)),
			`{"role":"assistant","content":null,"refusal":null,"x":[1.0],"tool_calls":[` + search + "]}\n" +
				`{"role":"tool","tool_call_id":"s1","content":"R11"}`},
		{"texts are joined, and what stands beside them", [][]byte{
			chatBody("c1", `{"role":"assistant","content":"Löok. ","reasoning_content":"a",`+
				`"annotations":[{"url_citation":{"start_index":0,"end_index":4}}],"tool_calls":[`+search+`]}`,
				`"tool_calls"`, "null"),
			chatBody("c2", `{"role":"assistant","content":"Done.","reasoning_content":"b",`+
				`"annotations":[{"url_citation":{"start_index":0,"end_index":4}}],"audio":{"id":"u"}}`, `"stop"`,
				usageOf("2"))},
			string(chatBody("c2", `{"role":"assistant","content":"Löok. Done.","reasoning_content":"ab",`+
				`"annotations":[{"url_citation":{"start_index":0,"end_index":4}},`+
				`{"url_citation":{"start_index":6,"end_index":10}}],"audio":{"id":"u"}}`, `"stop"`, usageOf("2"))),
			"-"},
		{"content in parts behind a string", [][]byte{
			chatBody("c1", `{"role":"assistant","content":"Look. ","tool_calls":[`+search+`]}`, `"tool_calls"`, "null"),
			chatBody("c2", `{"role":"assistant","content":[{"type":"text","text":"Done."}]}`, `"stop"`, "null")},
			string(chatBody("c2", `{"role":"assistant","content":[{"type":"text","text":"Look. "},{"type":"text",`+
				`"text":"Done."}]}`, `"stop"`, "null")), "-"},
		{"PC-005 a mixed turn", [][]byte{chatBody("c1", `{"role":"assistant","content":null,`+
			`"tool_calls":[`+search+`,`+read+`]}`, `"tool_calls"`, "null")},
			string(chatBody("c1", `{"role":"assistant","content":null,"tool_calls":[`+read+`]}`, `"tool_calls"`,
				"null")), ""},
		{"PC-071 a search at the bound", [][]byte{chatBody("c1", `{"role":"assistant","content":"So",`+
			`"tool_calls":[`+search+`]}`, `"tool_calls"`, "null")},
			string(chatBody("c1", `{"role":"assistant","content":"So"}`, `"stop"`, "null")), ""},
		{"PC-059 a search cut by the limit", [][]byte{chatBody("c1", `{"role":"assistant","content":"So",`+
			`"tool_calls":[`+call("s1", "tool_search", `"{\"query\":\"m"`)+`]}`, `"length"`, "null")},
			string(chatBody("c1", `{"role":"assistant","content":"So"}`, `"length"`, "null")), ""},
		{"usage of an earlier round only", [][]byte{
			chatBody("c1", `{"role":"assistant","content":null,"tool_calls":[`+search+`]}`, `"tool_calls"`,
				usageOf("1")),
			chatBody("c2", `{"role":"assistant","content":"ok"}`, `"stop"`, "null")},
			string(chatBody("c2", `{"role":"assistant","content":"ok"}`, `"stop"`, usageOf("1"))), "-"},
		{"PC-061 empty arguments", [][]byte{
			chatBody("c1", `{"role":"assistant","content":null,"tool_calls":[`+call("s1", "tool_search",
				`""`)+`,`+call("s2", "tool_search", `null`)+
				`,`+call("s3", "tool_search", `{"query":"m"}`)+`,{"id":"s4","function":{"name":"tool_search"}},`+call("s5", "tool_search", `"[1]"`)+`]}`, `"tool_calls"`, "null"),
			chatBody("c2", `{"role":"assistant","content":"ok"}`, `"stop"`, "null")},
			string(chatBody("c2", `{"role":"assistant","content":"ok"}`, `"stop"`, "null")),
			`{"role":"assistant","content":null,"tool_calls":[` + call("s1", "tool_search", `"{}"`) + `,` +
				call("s2", "tool_search", `"{}"`) +
				`,` + call("s3", "tool_search", `"{\"query\":\"m\"}"`) + `,{"id":"s4","function":{"arguments":"{}",` +
				`"name":"tool_search"}},` + call("s5", "tool_search", `"{}"`) + `]}` +
				"\n" + `{"role":"tool","tool_call_id":"s1","content":"R11"}` + "\n" +
				`{"role":"tool","tool_call_id":"s2","content":"R12"}` + "\n" +
				`{"role":"tool","tool_call_id":"s3","content":"R13"}` + "\n" + `{"role":"tool","tool_call_id":"s4",` +
				`"content":"R14"}` + "\n" +
				`{"role":"tool","tool_call_id":"s5","content":"R15"}`},
		{"PC-061 a client's call keeps its arguments", [][]byte{chatBody("c1", `{"role":"assistant","content":null,`+
			`"tool_calls":[`+search+`,`+
			call("a", "read_file", `{"p": 1}`)+`,`+call("b", "read_file", `""`)+`]}`, `"tool_calls"`, "null")},
			string(chatBody("c1", `{"role":"assistant","content":null,"tool_calls":[`+call("a", "read_file",
				`{"p": 1}`)+`,`+call("b", "read_file", `""`)+`]}`, `"tool_calls"`, "null")), ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			v := chatView(t, strings.Replace(chatRequest, `"stream":true,"stream_options":{"include_usage":true},`,
				"", 1))
			p := playChat(t, v, AnswerOptions{}, weatherAndMail, false, c.rounds...)
			if string(p.client) != c.want {
				t.Errorf("the client got\n%s\nwant\n%s", p.client, c.want)
			}
			if appended := p.appended(v); c.appended != "-" && appended != c.appended {
				t.Errorf("the next request has\n%s\nwant\n%s", appended, c.appended)
			}
		})
	}
}

// TestChatJSONFormat: a preamble in front of JSON would not be JSON; a later request must not lose it all the same.
func TestChatJSONFormat(t *testing.T) {
	body := strings.Replace(chatRequest, `"stream":true,"stream_options":{"include_usage":true},`,
		`"response_format":{"type":"json_object"},`, 1)
	v := chatView(t, body)
	search := `{"id":"s1","type":"function","function":{"name":"tool_search","arguments":"{}"}}`
	read := `{"id":"w1","type":"function","function":{"name":"read_file","arguments":"{}"}}`
	p := playChat(t, v, AnswerOptions{}, weatherAndMail, false,
		chatBody("c1", `{"role":"assistant","content":"I look.","tool_calls":[`+search+`]}`, `"tool_calls"`, "null"),
		chatBody("c2", `{"role":"assistant","content":"{}","tool_calls":[`+read+`]}`, `"tool_calls"`, "null"))
	if got := wholeChat(t, p.client); got.content != "{}" {
		t.Errorf("the client got %s", p.client)
	}
	splices := Chat.Splices(v, p.rounds, p.results, p.last)
	next := chatView(t, strings.Replace(body, `"weather?"}`, `"weather?"},{"role":"assistant","content":"{}",`+
		`"tool_calls":[`+read+
		`]},{"role":"tool","tool_call_id":"w1","content":"text"}`, 1))
	got := gjson.GetBytes(Chat.Compose(next, Projection{Splices: splices}), "messages")
	if got.Get("2.content").String() != "I look." || got.Get("4.content").String() != "{}" {
		t.Errorf("the next request has the messages %s", got.Raw)
	}
}

// TestChatBundle takes apart the calls of a function that nobody declared and that holds other calls.
func TestChatBundle(t *testing.T) {
	use := func(names ...string) string {
		var uses []string
		for _, name := range names {
			uses = append(uses, `{"recipient_name":"functions.`+name+`","parameters":{"query":"`+name+`"}}`)
		}
		return `{"tool_uses":[` + strings.Join(uses, ",") + `]}`
	}
	pieces := func(arguments string) []string {
		return []string{callDelta("0", "b1", "multi_tool_use", ""),
			`{"tool_calls":[{"index":0,"function":{"name":".parallel","arguments":""}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":` + string(AppendString(nil, arguments[:5])) + `}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":` + string(AppendString(nil, arguments[5:])) + `}}]}`}
	}
	v := chatView(t, chatRequest)
	for name, c := range map[string]struct {
		arguments, hidden, result string
	}{
		"all hidden": {use("tool_search", "get_weather"),
			"functions.tool_search Virtual, functions.get_weather Unexposed", `["R11","R12"]`},
		"one of them": {use("read_file", "tool_search"), "functions.tool_search Virtual", `["` + notBundled +
			`","R11"]`},
		"none":                 {use("read_file", "read_file"), "", ""},
		"arguments of no form": {`{"tool_uses":"tool_search"}`, "", ""},
		"cut arguments":        {use("tool_search")[:30], "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			rounds := [][]byte{chunks("c1", append(pieces(c.arguments), "=tool_calls", ".")...)}
			if c.hidden != "" {
				rounds = append(rounds, chunks("c2", "ok", "=stop", "."))
			}
			p := playChat(t, v, AnswerOptions{}, weatherAndMail, false, rounds...)
			got := readChat(t, p.client)
			if c.hidden == "" {
				if got.callList() != "b1 "+bundleName+" "+c.arguments {
					t.Errorf("the client got %+v", got)
				}
				return
			}
			var hidden []string
			calls, _ := p.rounds[0].Hidden()
			for _, call := range calls {
				hidden = append(hidden, call.Name+map[Class]string{Virtual: " Virtual",
					Unexposed: " Unexposed"}[call.Class])
				if want := `{"query":"` + strings.TrimPrefix(call.Name, "functions.") +
					`"}`; string(call.Arguments) != want {
					t.Errorf("%s has the arguments %s", call.Name, call.Arguments)
				}
			}
			if strings.Join(hidden, ", ") != c.hidden || got.content != "ok" || len(got.calls) > 0 {
				t.Errorf("hidden were %s; the client got %+v", hidden, got)
			}
			want := `{"role":"assistant","content":null,"tool_calls":[{"id":"b1","type":"function",` +
				`"function":{"name":"multi_tool_use.parallel","arguments":` +
				string(AppendString(nil, c.arguments)) + `}}]}` + "\n" + `{"role":"tool","tool_call_id":"b1",` +
				`"content":` + string(AppendString(nil, c.result)) + `}`
			if p.appended(v) != want {
				t.Errorf("the next request has\n%s\nwant\n%s", p.appended(v), want)
			}
		})
	}
	t.Run("beside a client's call", func(t *testing.T) {
		parts := append(pieces(use("tool_search", "get_weather")), callDelta("1", "w1", "read_file", "{}"),
			searchDelta("x"), "=tool_calls", ".")
		p := playChat(t, v, AnswerOptions{}, weatherAndMail, false, chunks("c1", parts...))
		if got := readChat(t, p.client); got.callList() != "w1 read_file {}" {
			t.Errorf("the client got %+v", got)
		}
		next := chatView(t, strings.Replace(chatRequest, `"weather?"}`,
			`"weather?"},{"role":"assistant","content":null,"tool_calls":[`+
				`{"id":"w1","type":"function","function":{"name":"read_file","arguments":"{}"}}]},{"role":"tool",`+
				`"tool_call_id":"w1","content":"text"}`, 1))
		messages := gjson.GetBytes(Chat.Compose(next, Projection{Splices: Chat.Splices(v, nil, p.results, p.last)}),
			"messages")
		if ids := messages.Get("2.tool_calls.#.id").Raw + messages.Get("#.tool_call_id").Raw; ids != `["b1","w1",`+
			`"s1"]["b1","w1","s1"]` {
			t.Errorf("the next request has %s:\n%s", ids, messages.Raw)
		}
	})
	t.Run("declared by the client", func(t *testing.T) {
		v := chatView(t, strings.Replace(chatRequest, `"read_file"`, `"multi_tool_use.parallel"`, 1))
		p := playChat(t, v, AnswerOptions{}, weatherAndMail, false, chunks("c1", append(pieces(use("tool_search")),
			"=tool_calls", ".")...))
		if got := readChat(t, p.client); len(got.calls) != 1 {
			t.Errorf("the client got %+v", got)
		}
	})
	t.Run("whole", func(t *testing.T) {
		body := chatBody("c1", `{"role":"assistant","content":null,"tool_calls":[{"id":"b1","type":"function",`+
			`"function":{"name":"multi_tool_use.parallel","arguments":`+
			string(AppendString(nil, use("tool_search")))+`}}]}`, `"tool_calls"`, "null")
		p := playChat(t, v, AnswerOptions{}, weatherAndMail, false, body, chatBody("c2",
			`{"role":"assistant","content":"ok"}`, `"stop"`, "null"))
		if got := wholeChat(t, p.client); got.content != "ok" || len(got.calls) > 0 {
			t.Errorf("the client got %+v", got)
		}
	})
}

// TestChatDecode turns the upstream's names into those of the client, in whatever pieces they come.
func TestChatDecode(t *testing.T) {
	o := AnswerOptions{Decode: func(name string) string { return strings.ReplaceAll(name, "-_-", ".") }}
	v := chatView(t, strings.ReplaceAll(chatRequest, "_", "."))
	names := deferredNames{"get.weather"}
	parts := []string{`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"read-_",` +
		`"arguments":""}}]}`,
		`{"tool_calls":[{"index":0,"function":{"name":"-file","arguments":""}}]}`,
		`{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}`}
	p := playChat(t, v, o, names, false, chunks("c1", callDelta("0", "g", "get-_-weather", "{}"), "=tool_calls",
		"."), chunks("c2", append(parts, "=tool_calls", ".")...))
	if got := readChat(t, p.client); got.callList() != "a read.file {}" {
		t.Errorf("the client got the calls %s in\n%s", got.callList(), p.client)
	}
	if !strings.Contains(p.appended(v), `"name":"get-_-weather"`) || p.rounds[0].Calls[0].Name != "get.weather" {
		t.Errorf("the next request has %s", p.appended(v))
	}
	p = playChat(t, v, o, names, false, chatBody("c1", `{"role":"assistant","content":null,"tool_calls":[{"id":"a",`+
		`"type":"function","function":{"name":"read-_-file",`+
		`"arguments":"{}"}}]}`, `"tool_calls"`, "null"))
	if got := wholeChat(t, p.client); got.callList() != "a read.file {}" {
		t.Errorf("the client got the calls %s", got.callList())
	}
}

// TestChatDecodeTextCalls: the model writes the names that it was given.
func TestChatDecodeTextCalls(t *testing.T) {
	o := AnswerOptions{TextCalls: true, Known: knownTools("read.file"),
		Decode: func(name string) string { return strings.ReplaceAll(name, "-_-", ".") }}
	v := chatView(t, chatRequest)
	text := string(AppendString(nil, `{"tool":"read-_-file"}`))
	streamed := readChat(t, playChat(t, v, o, deferredNames{}, false, chunks("c1", `{"content":`+text+`}`, "=stop",
		".")).client)
	whole := wholeChat(t, playChat(t, v, o, deferredNames{}, false, chatBody("c1",
		`{"role":"assistant","content":`+text+`}`, `"stop"`, "null")).client)
	for _, got := range []chatClient{streamed, whole} {
		if len(got.calls) != 1 || got.calls[0].name != "read.file" || got.content != "" || got.finish != "tool_calls" {
			t.Errorf("the client read %+v", got)
		}
	}
}

// FuzzChatWhole feeds anything as two whole answers: what is sent on is JSON if what came is, and the virtual tool is never
// called at the client.
func FuzzChatWhole(f *testing.F) {
	answer := func(message string) []byte {
		return []byte(`{"id":"c","choices":[{"message":` + message + `,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1}}`)
	}
	search := `{"role":"assistant","content":"a","tool_calls":[{"id":"s","function":{"name":"tool_search","arguments":"{}"}}]}`
	f.Add(answer(search), answer(`{"content":"b","refusal":null}`), false)
	f.Add(answer(`{"content":"{\"tool\":\"tool_search\"}"}`), answer(`{"content":[{"text":"b"}],"tool_calls":[1]}`), true)
	f.Add([]byte(`{"choices":[{"message":{"content":}}]}`), []byte(`{"choices":[{"message":{"a":1},"finish_reason":}],"usage":`), false)
	f.Add([]byte(` {"choices":[],"error":"x"}`), []byte(`{"choices":[1],"usage":2,"error":null}`), false)
	f.Fuzz(func(t *testing.T, first, second []byte, textCalls bool) {
		v := chatView(t, chatRequest)
		a := Chat.NewAnswer(v, AnswerOptions{TextCalls: textCalls, UsageDetails: true, Known: func(string) bool { return true }})
		for _, raw := range [][]byte{first, second} {
			a.Begin(weatherAndMail)
			a.Whole(raw)
			if r := a.End(); gjson.ValidBytes(raw) && !gjson.Valid("["+string(r.items)+"]") {
				t.Fatalf("%s is replayed as %s", raw, r.items)
			}
		}
		body := a.Body()
		if !gjson.ValidBytes(first) || !gjson.ValidBytes(second) {
			return
		}
		if !gjson.ValidBytes(body) {
			t.Fatalf("%s and %s become %s", first, second, body)
		}
		for _, call := range gjson.GetBytes(body, "choices.0.message.tool_calls").Array() {
			if f := call.Get("function"); f.IsObject() && f.Get("name").String() == "tool_search" && !call.Get("custom").Exists() &&
				call.Get("type").String() != "custom" {
				t.Fatalf("the client got the virtual call: %s", body)
			}
		}
	})
}

// FuzzChatStream feeds anything as two rounds: the virtual tool is never called at the client, and what is sent on is JSON.
func FuzzChatStream(f *testing.F) {
	f.Add(chunks("c1", role, "a", searchDelta("x"), "=tool_calls", "#1", "."), chunks("c2", "b", "=stop", "."), true)
	f.Add(chunks("c1", callDelta("", "a", "read_file", "{}"), callDelta("0", "", "get_weather", "{}")),
		[]byte("data:{}\r\r: x\n\n"), false)
	f.Add(chunks("c1", `{"content":"{\"tool\":","reasoning":"x"}`, `{"content":"\"tool_search\"}"}`, "=stop"),
		chunks("c2", `{"content":[{"text":"a"}]}`, "b"), true)
	f.Add(chunks("c1", callDelta("0", "b", bundleName, `{"tool_uses":[{"recipient_name":"tool_search"}]}`),
		"=tool_calls", "."), []byte("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":}]}}]}\n\n"), true)
	f.Add(chunks("c1", role, "a", "b", `say "c"`, `{"content":"d"}`, "e\\", "f", searchDelta("x"), "g", "h", "=tool_calls", "."),
		chunks("c1", "i", "j", "k", callDelta("0", "a", "read_file", "{}"), "l", "m", "=stop", "n", "o", "#1", "."), false)
	f.Add([]byte(`data: {"choices":[{"delta":{"content":},"finish_reason":}],"usage":}`+"\n\n"),
		[]byte(`data: {"id":1,"choices":[{"delta":{"role":1,"tool_calls":[{"function":}]},`+
			`"finish_reason":"x"}]}`+"\n\n"), false)
	f.Fuzz(func(t *testing.T, first, second []byte, textCalls bool) {
		v, err := Chat.View([]byte(chatRequest), nil)
		if err != nil {
			t.Fatal(err)
		}
		valid := allJSON(first) && allJSON(second)
		play := func(parsesAll bool) (client, replayed []byte) {
			a := Chat.NewAnswer(v, AnswerOptions{TextCalls: textCalls, Known: func(string) bool { return true }})
			var rounds []Round
			var results [][]Result
			for _, stream := range [][]byte{first, second} {
				a.Begin(weatherAndMail)
				reader := NewEventReader(bytes.NewReader(stream), 1<<20)
				for {
					ev, err := reader.Next()
					if err != nil {
						break
					}
					if parsesAll {
						a.(*chatAnswer).passed.known = false
					}
					client = a.Event(client, ev)
				}
				round := a.End()
				hidden, visible := round.Hidden()
				if len(hidden) == 0 || visible > 0 {
					Chat.Splices(v, rounds, append(results, nil), round)
					break
				}
				var answers []Result
				for _, c := range hidden {
					answers = append(answers, Result{c.ID, "R"})
				}
				rounds, results = append(rounds, round), append(results, answers)
				replayed = Chat.Compose(v, Projection{Rounds: rounds, Results: results})
				if valid && !gjson.ValidBytes(replayed) {
					t.Fatalf("the next request is no JSON: %s", replayed)
				}
			}
			return a.Finish(client), replayed
		}
		client, replayed := play(false)
		slow, slowReplayed := play(true)
		textCallIDs := regexp.MustCompile("call_txt_[A-Z0-9]+")
		same := func(a, b []byte) bool {
			return bytes.Equal(textCallIDs.ReplaceAll(a, nil), textCallIDs.ReplaceAll(b, nil))
		}
		if !same(client, slow) || !same(replayed, slowReplayed) {
			t.Fatalf("chunks that look alike become %q and %q, taken apart %q and %q", client, replayed, slow, slowReplayed)
		}
		if !valid {
			return
		}
		reader := NewEventReader(bytes.NewReader(client), 1<<24)
		for {
			ev, err := reader.Next()
			if err != nil {
				break
			}
			if ev.Data == nil || bytes.HasPrefix(ev.Data, []byte("[DONE]")) {
				continue
			}
			if !gjson.ValidBytes(ev.Data) {
				t.Fatalf("the client got an event that is no JSON: %q", ev.Data)
			}
			for _, call := range gjson.GetBytes(ev.Data, "choices.0.delta.tool_calls").Array() {
				if call.Get("function.name").String() == "tool_search" && call.Get("type").String() != "custom" &&
					!call.Get("custom").Exists() {
					t.Fatalf("the client got the virtual call: %q", ev.Data)
				}
			}
		}
	})
}

// BenchmarkChatDeltas feeds a stream of text without hidden calls, and one with a hidden round.
func BenchmarkChatDeltas(b *testing.B) {
	parts := []string{role}
	for range 200 {
		parts = append(parts, " word")
	}
	text := chunks("c1", append(parts, "=stop", "#1", ".")...)
	hidden := chunks("c0", role, callDelta("0", "s1", "tool_search", ""),
		`{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}`, "=tool_calls", ".")
	v, err := Chat.View([]byte(chatRequest), nil)
	if err != nil {
		b.Fatal(err)
	}
	for name, rounds := range map[string][][]byte{"text": {text}, "hidden": {hidden, text}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			var out []byte
			for b.Loop() {
				a := Chat.NewAnswer(v, AnswerOptions{})
				out = out[:0]
				for _, round := range rounds {
					a.Begin(weatherAndMail)
					reader := NewEventReader(bytes.NewReader(round), 1<<20)
					for a.Progress() != Over {
						ev, err := reader.Next()
						if err != nil {
							b.Fatal(err)
						}
						out = a.Event(out, ev)
					}
					a.End()
				}
				out = a.Finish(out)
			}
		})
	}
}
