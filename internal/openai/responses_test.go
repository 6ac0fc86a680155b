package openai

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

const oneTool = `"tools":[{"type":"function","name":"a"}]`

func TestResponsesPassthrough(t *testing.T) {
	cases := []struct {
		body string
		want Reason
	}{
		{`{"input":"x",` + oneTool + `}`, ""},
		{`{"input":[],` + oneTool + `}`, ""},
		{`{"previous_response_id":"r",` + oneTool + `}`, ""},
		{`{"prompt":{"id":"p"},` + oneTool + `}`, ""},
		{`{"background":false,"input":"x",` + oneTool + `}`, ""},
		{`{"input":"x"}`, ReasonNoTools},
		{`{"input":"x","tools":null}`, ReasonNoTools},
		{`{"input":"x","tools":[ ]}`, ReasonNoTools},
		{`{"prompt":{"id":"p"},"input":"x"}`, ReasonPromptTemplate},
		{`{"prompt":null,"input":"x"}`, ReasonNoTools},
		{`{"background":true,"input":"x",` + oneTool + `}`, ReasonBackground},
		{`{"multi_agent":{},"input":"x",` + oneTool + `}`, ReasonMultiAgent},
		{`{"input":"x","tools":[{"type":"tool_search"},{"type":"function","name":"a"}]}`, ReasonNativeSearch},
		{`{"input":"x","tools":[{"type":"mcp","defer_loading":true}]}`, ReasonNativeSearch},
		{`{"input":"x","tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"a","defer_loading":true}]}]}`,
			ReasonNativeSearch},
		{`{"input":"x","input":"y",` + oneTool + `}`, ReasonRepeatedKey},
		{`{"input":{},` + oneTool + `}`, ReasonShape},
		{`{"instructions":[],"input":"x",` + oneTool + `}`, ReasonShape},
		{`{"input":"x","tools":{}}`, ReasonShape},
	}
	for _, c := range cases {
		v, err := Responses.View([]byte(c.body), nil)
		if err != nil {
			t.Errorf("%s: %v", c.body, err)
		} else if v.Passthrough != c.want {
			t.Errorf("%s passes through for %q, want %q", c.body, v.Passthrough, c.want)
		}
	}
	for _, body := range []string{``, `[]`, `{"input":"x"`, `{"input":"x"} x`} {
		if _, err := Responses.View([]byte(body), nil); err != ErrSyntax {
			t.Errorf("%q: %v", body, err)
		}
	}
}

func TestResponsesItems(t *testing.T) {
	cases := []struct {
		item     string
		kind     Kind
		id       string
		resultOf string
		call     string // id and name
	}{
		{`{"role":"user","content":"x"}`, KindUser, "", "", ""},
		{`{"type":"message","role":"developer","content":[]}`, KindSystem, "", "", ""},
		{`{"type":"message","id":"m","role":"assistant","content":[]}`, KindAssistant, "m", "", ""},
		{`{"id":"m"}`, KindAssistant, "m", "", ""},
		{`{"type":"item_reference","id":"m"}`, KindAssistant, "m", "", ""},
		{`{"type":"reasoning","id":"r","summary":[]}`, KindAssistant, "r", "", ""},
		{`{"type":"function_call","id":"f","call_id":"c","name":"a","arguments":"{}"}`, KindCall, "f", "", "c a"},
		{`{"type":"function_call","call_id":"c","namespace":"n","name":"a","arguments":"{}"}`, KindCall, "", "", "c n.a"},
		{`{"type":"custom_tool_call","call_id":"c","name":"a","input":"x"}`, KindCall, "", "", "c a"},
		{`{"type":"local_shell_call","call_id":"c"}`, KindCall, "", "", "c local_shell_call"},
		{`{"type":"mcp_approval_request","id":"p"}`, KindCall, "p", "", "p mcp_approval_request"},
		{`{"type":"function_call_output","call_id":"c","output":"x"}`, KindResult, "", "c", ""},
		{`{"type":"custom_tool_call_output","call_id":"c","output":"x"}`, KindResult, "", "c", ""},
		{`{"type":"mcp_approval_response","approval_request_id":"p","approve":true}`, KindResult, "", "p", ""},
		{`{"type":"web_search_call","id":"w"}`, KindAssistant, "w", "", ""},
		{`{"type":"compaction","encrypted_content":"x"}`, KindAssistant, "", "", ""},
		{`{"type":"additional_tools","role":"developer","tools":[]}`, KindOther, "", "", ""},
		{`{"type":"compaction_trigger"}`, KindOther, "", "", ""},
		{`{"type":"novelty"}`, KindOther, "", "", ""},
		{`"text"`, KindOther, "", "", ""},
	}
	for _, c := range cases {
		v := responsesView(t, `{"input":[`+c.item+`],`+oneTool+`}`)
		if len(v.Items) != 1 {
			t.Fatalf("%s: %d items", c.item, len(v.Items))
		}
		got := v.Items[0]
		call := ""
		for _, k := range got.Calls {
			call = k.ID + " " + k.Name
		}
		if got.Kind != c.kind || got.ID != c.id || got.ResultOf != c.resultOf || call != c.call {
			t.Errorf("%s is %d, id %q, result of %q, call %q", c.item, got.Kind, got.ID, got.ResultOf, call)
		}
		if string(got.Of(v.Body)) != c.item {
			t.Errorf("%s stands at %s", c.item, got.Of(v.Body))
		}
		if v.Compacts != strings.Contains(c.item, "trigger") {
			t.Errorf("%s: compacts is %t", c.item, v.Compacts)
		}
	}
	v := responsesView(t, `{"conversation":{"id":"conv"},"previous_response_id":"resp","store":false,`+
		`"text":{"format":{"type":"json_schema"}},"input":"hi",`+oneTool+`}`)
	if v.Conversation != "conv" || v.PreviousResponse != "resp" || !v.unstored || !v.JSONFormat || len(v.Items) != 1 ||
		v.Items[0].Kind != KindUser {
		t.Errorf("the view is %+v", v)
	}
	if v = responsesView(t, `{"conversation":"conv","input":null,`+oneTool+`}`); v.Conversation != "conv" || len(v.Items) != 0 {
		t.Errorf("the view is %+v", v)
	}
}

func TestResponsesVirtualTool(t *testing.T) {
	for strict, want := range map[string]string{"omit": "", "false": "false", "true": "true"} {
		raw := Responses.VirtualTool("tool_search", strict)
		tools := scanTools([]byte("["+string(raw)+"]"), false)
		if !gjson.ValidBytes(raw) || len(tools.Functions) != 1 || tools.Functions[0].Name != "tool_search" ||
			gjson.GetBytes(raw, "strict").Raw != want || !gjson.GetBytes(raw, "parameters.properties.query").Exists() {
			t.Errorf("strict %s: %s", strict, raw)
		}
	}
}

func hiddenRound(items, callID string) (Round, []Result) {
	return Round{items: []byte(items), Calls: []Call{{ID: callID, Class: Virtual, raw: []byte(items)}}}, []Result{{callID, `"R"`}}
}

func TestResponsesCompose(t *testing.T) {
	first, firstResults := hiddenRound(`{"type":"function_call","call_id":"s1"}`, "s1")
	second, secondResults := hiddenRound(`{"type":"function_call","call_id":"s2","caller":{"type":"program"}}`, "s2")
	const firstItems = `{"type":"function_call","call_id":"s1"},{"type":"function_call_output","call_id":"s1","output":"\"R\""}`
	const openItem = `{"type":"function_call_output","call_id":"s1","output":"\"R\""}`
	const secondItems = `{"type":"function_call","call_id":"s2","caller":{"type":"program"}},` +
		`{"type":"function_call_output","call_id":"s2","caller":{"type":"program"},"output":"\"R\""}`
	rounds := Projection{Rounds: []Round{first, second}, Results: [][]Result{firstResults, secondResults}}
	replayed := rounds
	replayed.Replay = true
	directory := Projection{Directory: []byte(`"D"`)}
	cases := []struct {
		name       string
		body       string
		projection Projection
		want       string
	}{
		{"nothing", `{ "input":"x" , ` + oneTool + `}`, Projection{}, `{ "input":"x" , ` + oneTool + `}`},
		{"instructions", `{"instructions":"A\u00e9","input":"x",` + oneTool + `}`, directory,
			`{"instructions":"A\u00e9\n\nD","input":"x",` + oneTool + `}`},
		{"empty instructions", `{"instructions":"","input":"x",` + oneTool + `}`, directory,
			`{"instructions":"D","input":"x",` + oneTool + `}`},
		{"null instructions", `{"instructions":null,"input":"x",` + oneTool + `}`, directory,
			`{"instructions":"D","input":"x",` + oneTool + `}`},
		{"no instructions", `{"input":"x",` + oneTool + `}`, directory, `{"instructions":"D","input":"x",` + oneTool + `}`},
		{"a leading message", `{"input":[{"role":"developer","content":"S"},{"role":"user","content":"x"}],` + oneTool + `}`, directory,
			`{"input":[{"role":"developer","content":"S\n\nD"},{"role":"user","content":"x"}],` + oneTool + `}`},
		{"a leading message in parts", `{"instructions":null,"input":[{"role":"system","content":[{"type":"input_text","text":"S"}]}],` +
			oneTool + `}`, directory,
			`{"instructions":null,"input":[{"role":"system","content":[{"type":"input_text","text":"S"},` +
				`{"type":"input_text","text":"D"}]}],` + oneTool + `}`},
		{"instructions and a leading message", `{"instructions":"A","input":[{"role":"system","content":"S"}],` + oneTool + `}`, directory,
			`{"instructions":"A\n\nD","input":[{"role":"system","content":"S"}],` + oneTool + `}`},
		{"a message that is not the first of the context",
			`{"previous_response_id":"r","input":[{"role":"system","content":"S"}],` + oneTool + `}`, directory,
			`{"instructions":"D","previous_response_id":"r","input":[{"role":"system","content":"S"}],` + oneTool + `}`},
		{"no tools left", `{"input":"x",` + oneTool + `,"tool_choice":"auto","parallel_tool_calls":true}`, Projection{Tools: []byte{}},
			`{"input":"x"}`},
		{"a mode", `{"input":"x",` + oneTool + `,"tool_choice":{"type":"function","name":"a"}}`,
			Projection{Tools: []byte(`[1]`), Mode: "auto"}, `{"input":"x","tools":[1],"tool_choice":"auto"}`},
		{"rounds behind a list", `{"input":[ {"role":"user","content":"x"} ],` + oneTool + `}`, rounds,
			`{"input":[ {"role":"user","content":"x"} ,` + firstItems + `,` + secondItems + `],` + oneTool + `}`},
		{"rounds behind a string", `{"input": "x\n" ,` + oneTool + `}`, rounds,
			`{"input": [{"role":"user","content":"x\n"},` + firstItems + `,` + secondItems + `] ,` + oneTool + `}`},
		{"rounds behind nothing", `{"previous_response_id":"r",` + oneTool + `}`, rounds,
			`{"input":[` + firstItems + `,` + secondItems + `],"previous_response_id":"r",` + oneTool + `}`},
		{"rounds behind null", `{"input":null,"previous_response_id":"r",` + oneTool + `}`, rounds,
			`{"input":[` + firstItems + `,` + secondItems + `],"previous_response_id":"r",` + oneTool + `}`},
		{"a conversation", `{"conversation":"c","input":[{"role":"user","content":"x"}],` + oneTool + `}`, rounds,
			`{"conversation":"c","input":[{"type":"function_call_output","call_id":"s2","caller":{"type":"program"},"output":"\"R\""}],` +
				oneTool + `}`},
		{"a conversation that gives the input", `{"conversation":"c",` + oneTool + `}`, rounds,
			`{"input":[{"type":"function_call_output","call_id":"s2","caller":{"type":"program"},"output":"\"R\""}],"conversation":"c",` +
				oneTool + `}`},
		{"a conversation that is not kept", `{"conversation":"c","input":"x",` + oneTool + `}`, replayed,
			`{"conversation":"c","input":[{"role":"user","content":"x"},` + firstItems + `,` + secondItems + `],` + oneTool + `}`},
		{"open calls in front of a list", `{"previous_response_id":"r","input":[{"role":"user","content":"x"}],` + oneTool + `}`,
			Projection{Open: firstResults, Rounds: rounds.Rounds[1:], Results: rounds.Results[1:]},
			`{"previous_response_id":"r","input":[` + openItem + `,{"role":"user","content":"x"},` + secondItems + `],` + oneTool + `}`},
		{"open calls in front of a string", `{"previous_response_id":"r","input":"x",` + oneTool + `}`, Projection{Open: firstResults},
			`{"previous_response_id":"r","input":[` + openItem + `,{"role":"user","content":"x"}],` + oneTool + `}`},
		{"open calls and nothing else", `{"previous_response_id":"r","input":[],` + oneTool + `}`, Projection{Open: firstResults},
			`{"previous_response_id":"r","input":[` + openItem + `],` + oneTool + `}`},
		{"open calls of a conversation", `{"conversation":"c","input":"x",` + oneTool + `}`,
			Projection{Open: firstResults, Rounds: rounds.Rounds[1:], Results: rounds.Results[1:]},
			`{"conversation":"c","input":[` + openItem + `,{"type":"function_call_output","call_id":"s2","caller":{"type":"program"},` +
				`"output":"\"R\""}],` + oneTool + `}`},
		{"encoded names", `{"input":[{"type":"function_call","call_id":"1","name":"a.b","arguments":"{}"},` +
			`{"type":"function_call","call_id":"2","name":"b.c","namespace":"a","arguments":"{}"},` +
			`{"type":"custom_tool_call","call_id":"3","name":"a.b","input":""}],` + oneTool + `,"tool_choice":{"type":"function","name":"a.b"}}`,
			Projection{Encode: func(name string) string { return strings.ReplaceAll(name, ".", "-_-") }},
			`{"input":[{"type":"function_call","call_id":"1","name":"a-_-b","arguments":"{}"},` +
				`{"type":"function_call","call_id":"2","name":"b.c","namespace":"a","arguments":"{}"},` +
				`{"type":"custom_tool_call","call_id":"3","name":"a.b","input":""}],` + oneTool +
				`,"tool_choice":{"type":"function","name":"a-_-b"}}`},
		{"a chosen member of a group", `{"input":"x",` + oneTool + `,"tool_choice":{"type":"function","namespace":"n","name":"a"}}`,
			Projection{Encode: func(name string) string { return strings.ReplaceAll(name, ".", "-_-") }},
			`{"input":"x",` + oneTool + `,"tool_choice":{"type":"function","namespace":"n","name":"a"}}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := Responses.Compose(responsesView(t, c.body), c.projection)
			if string(got) != c.want {
				t.Errorf("the request is\n%s\nwant\n%s", got, c.want)
			}
			if !gjson.ValidBytes(got) {
				t.Error("it is not JSON")
			}
		})
	}
}

func TestResponsesRefusals(t *testing.T) {
	cases := []struct {
		refusal string
		open    string
		lacks   bool
	}{
		{`{"error":{"message":"No tool output found for function call call_1.","param":"input"}}`, "call_1", false},
		{`{"error":{"message":"No tool output found for function call call_1. Add it"}}`, "call_1", false},
		{`{"error":{"message":"No tool call found for function call output with call_id call_2."}}`, "", true},
		{`{"error":{"message":"unknown call call_9"}}`, "", true},
		{`{"error":{"message":"the context is too long"}}`, "", false},
		{`no JSON`, "", false},
	}
	r := Round{Calls: []Call{{ID: "call_8"}, {ID: "call_9", Class: Virtual}}}
	for _, c := range cases {
		if got := OpenCall([]byte(c.refusal)); got != c.open {
			t.Errorf("%s: the open call is %q, want %q", c.refusal, got, c.open)
		}
		if got := LacksCall([]byte(c.refusal), r); got != c.lacks {
			t.Errorf("%s: lacks the call is %t", c.refusal, got)
		}
	}
}

// TestResponsesSplice plays an answer and then composes later requests of the client from what it saw.
func TestResponsesSplice(t *testing.T) {
	const user = `{"role":"user","content":"weather?"}`
	const out = `{"type":"function_call_output","call_id":"c1","output":"x"}`
	result := func(id string) string { return `{"type":"function_call_output","call_id":"` + id + `","output":"R"}` }
	withoutIDs := func(items ...string) string {
		var kept []string
		for _, item := range items {
			kept = append(kept, string(withoutMember([]byte(item), "id")))
		}
		return strings.Join(kept, ",")
	}
	spoken := round("resp_1", nil, reasoningEvents(0, "rs_1", "Hm."), messageEvents(1, "msg_1", "Wait."), search(2, "s1"))
	silent := round("resp_1", nil, reasoningEvents(0, "rs_1", ""), search(1, "s1"))
	between := round("resp_1", nil, reasoningEvents(0, "rs_1", ""), search(1, "s1"), messageEvents(2, "msg_1", "Wait."), search(3, "s0"))
	call := round("resp_2", nil, reasoningEvents(0, "rs_2", ""), weather(1, "c1"))
	say := round("resp_2", nil, messageEvents(0, "msg_2", "Cold."))
	mixed := round("resp_2", nil, reasoningEvents(0, "rs_2", ""), search(1, "s2"), weather(2, "c1"), reasoningEvents(3, "rs_3", ""), search(4, "s3"))
	s1 := searchItem("s1") + "," + result("s1")
	rs := func(n string) string { return reasoningItem("rs_"+n, "") }
	rs1Hm, msg1, msg2 := reasoningItem("rs_1", "Hm."), messageItem("msg_1", "Wait."), messageItem("msg_2", "Cold.")
	c1 := weatherItem("c1")
	join := func(items ...string) string { return strings.Join(items, ",") }
	cases := []struct {
		name    string
		rounds  [][]byte
		members string // of the later request
		input   string
		want    string // "" for the input as it is
	}{
		{"full replay", [][]byte{silent, call}, "", join(user, rs("2"), c1, out), join(user, rs("1"), s1, rs("2"), c1, out)},
		{"full replay without ids", [][]byte{silent, call}, "", join(user, withoutIDs(rs("2"), c1), out),
			join(user, rs("1"), s1, withoutIDs(rs("2"), c1), out)},
		{"reasoning dropped", [][]byte{silent, call}, "", join(user, c1, out), join(user, rs("1"), s1, c1, out)},
		{"reasoning without a name", [][]byte{silent, call}, "",
			join(user, `{"type":"reasoning","summary":[]}`, withoutIDs(c1), out),
			join(user, rs("1"), s1, `{"type":"reasoning","summary":[]}`, withoutIDs(c1), out)},
		{"references", [][]byte{silent, call}, "", join(user, `{"type":"item_reference","id":"rs_2"}`, withoutIDs(c1), out),
			join(user, rs("1"), s1, `{"type":"item_reference","id":"rs_2"}`, withoutIDs(c1), out)},
		{"a round that said something", [][]byte{spoken, call}, "", join(user, rs1Hm, msg1, rs("2"), c1, out),
			join(user, rs1Hm, msg1, s1, rs("2"), c1, out)},
		{"the same without ids", [][]byte{spoken, call}, "", join(user, withoutIDs(rs1Hm, msg1, rs("2"), c1), out),
			join(user, withoutIDs(rs1Hm, msg1), s1, withoutIDs(rs("2"), c1), out)},
		{"only what the hidden round said is left", [][]byte{spoken, call}, "", join(user, rs1Hm, msg1, user),
			join(user, rs1Hm, msg1, s1, user)},
		{"something said between searches", [][]byte{between, call}, "", join(user, rs("1"), msg1, rs("2"), c1, out),
			join(user, rs("1"), searchItem("s1"), msg1, searchItem("s0"), result("s1"), result("s0"), rs("2"), c1, out)},
		{"a final text by its id", [][]byte{silent, say}, "", join(user, msg2, user), join(user, rs("1"), s1, msg2, user)},
		{"a final text without id, which others may equal", [][]byte{silent, say}, "", join(user, withoutIDs(msg2), user), ""},
		{"an equal call behind it", [][]byte{silent, call}, "", join(user, withoutIDs(rs("2"), c1), out, withoutIDs(c1), out),
			join(user, rs("1"), s1, withoutIDs(rs("2"), c1), out, withoutIDs(c1), out)},
		{"mixed, ids counted anew", [][]byte{mixed}, "", join(user, rs("2"), withoutIDs(c1), out, callItem("", "c1", "send_mail", "{}"), out),
			join(user, rs("2"), searchItem("s2"), withoutIDs(c1), rs("3"), searchItem("s3"), out, result("s2"), result("s3"),
				callItem("", "c1", "send_mail", "{}"), out)},
		{"another id", [][]byte{silent, say}, "", join(user, messageItem("msg_9", "Cold."), user), ""},
		{"another call", [][]byte{silent, call}, "", join(user, weatherItem("c9"), out), ""},
		{"a call of the same id", [][]byte{silent, call}, "", join(user, callItem("fc_9", "c1", "get_weather", `{"city":"Rome"}`), out), ""},
		{"the answer is left out", [][]byte{silent, call}, "", join(user, user), ""},
		{"chain", [][]byte{silent, call}, `"previous_response_id":"resp_2",`, out, ""},
		{"conversation", [][]byte{silent, call}, `"conversation":"conv",`, out, ""},
		{"mixed", [][]byte{mixed}, "", join(user, rs("2"), c1, out),
			join(user, rs("2"), searchItem("s2"), c1, rs("3"), searchItem("s3"), out, result("s2"), result("s3"))},
		{"mixed behind a hidden round", [][]byte{silent, mixed}, "", join(user, rs("2"), c1, out, user),
			join(user, rs("1"), s1, rs("2"), searchItem("s2"), c1, rs("3"), searchItem("s3"), out, result("s2"), result("s3"), user)},
		{"mixed, chain", [][]byte{mixed}, `"previous_response_id":"resp_2",`, join(out, user), join(out, result("s2"), result("s3"), user)},
		{"mixed, conversation", [][]byte{mixed}, `"conversation":{"id":"conv"},`, out, join(out, result("s2"), result("s3"))},
		{"mixed, another response", [][]byte{mixed}, `"previous_response_id":"resp_3",`, out, ""},
		{"mixed, chain, nothing answered", [][]byte{mixed}, `"previous_response_id":"resp_2",`, user, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			request := responsesRequest
			if strings.Contains(c.members, "conversation") {
				request = strings.Replace(request, `"model"`, `"conversation":"conv","model"`, 1)
			}
			v := responsesView(t, request)
			p := play(t, v, AnswerOptions{}, testNames{}, c.rounds...)
			checkStream(t, v, p.client)
			splices := Responses.Splices(v, p.rounds, p.results, p.last)
			later := func(input string) string { return `{` + c.members + `"input":[` + input + `],` + oneTool + `}` }
			want := later(c.want)
			if c.want == "" {
				want = later(c.input)
			}
			got := Responses.Compose(responsesView(t, later(c.input)), Projection{Splices: splices})
			if string(got) != want {
				t.Errorf("the request is\n%s\nwant\n%s", got, want)
			}
			again := Responses.Compose(responsesView(t, later(c.input)), Projection{Splices: splices})
			if !bytes.Equal(got, again) {
				t.Errorf("the second time it is\n%s", again)
			}
		})
	}
	t.Run("an earlier response of the answer", func(t *testing.T) {
		v := responsesView(t, responsesRequest)
		p := play(t, v, AnswerOptions{}, testNames{}, spoken, call)
		splices := Responses.Splices(v, p.rounds, p.results, p.last)
		for named, want := range map[string]string{"resp_1": "resp_2", "resp_2": "resp_2", "resp_9": "resp_9"} {
			body := `{"previous_response_id":"` + named + `","input":"x",` + oneTool + `}`
			got := Responses.Compose(responsesView(t, body), Projection{Splices: splices})
			if want := strings.Replace(body, named, want, 1); string(got) != want {
				t.Errorf("the request is %s, want %s", got, want)
			}
		}
	})
	t.Run("an answer without hidden calls", func(t *testing.T) {
		v := responsesView(t, responsesRequest)
		p := play(t, v, AnswerOptions{}, testNames{}, call)
		if s := Responses.Splices(v, p.rounds, p.results, p.last); s != nil {
			t.Errorf("%+v", s)
		}
	})
	t.Run("servers that repeat ids", func(t *testing.T) {
		v := responsesView(t, responsesRequest)
		numbered := func(raw []byte, n string) []byte {
			return bytes.ReplaceAll(raw, []byte("ENC-rs_1"), []byte("ENC-"+n))
		}
		var splices []Splice
		for _, n := range []string{"old", "new"} {
			p := play(t, v, AnswerOptions{}, testNames{}, numbered(silent, n), call)
			splices = append(splices, Responses.Splices(v, p.rounds, p.results, p.last)...)
		}
		turn := join(user, withoutIDs(c1), out)
		body := `{"input":[` + join(turn, turn) + `],` + oneTool + `}`
		got := Responses.Compose(responsesView(t, body), Projection{Splices: splices})
		if old, fresh := bytes.Index(got, []byte("ENC-old")), bytes.Index(got, []byte("ENC-new")); old < 0 || fresh < old {
			t.Errorf("the request is\n%s", got)
		}
	})
}

// FuzzResponsesCompose checks that what the proxy does not mean to change stays as it was, byte for byte.
func FuzzResponsesCompose(f *testing.F) {
	f.Add([]byte(responsesRequest), "D")
	f.Add([]byte(`{"input":"x",`+oneTool+`}`), "")
	f.Add([]byte(` { "tools" : [ {"type":"function","name":"a"} ] , "input" : [ ] } `), "\\\"")
	f.Add([]byte(`{"instructions":null,"input":[{"role":"system","content":null}],"x":1e999,`+oneTool+`}`), "D")
	f.Add([]byte(`{"conversation":{"id":"c"},"input":[{"type":"compaction_trigger"}],`+oneTool+`}`), "D")
	view := responsesView(f, responsesRequest)
	p := play(f, view, AnswerOptions{}, testNames{}, round("resp_1", nil, reasoningEvents(0, "rs_1", ""), search(1, "s1")),
		round("resp_2", nil, messageEvents(0, "msg_2", "Cold."), weather(1, "c1"), search(2, "s2")))
	splices := Responses.Splices(view, p.rounds, p.results, p.last)
	f.Add([]byte(`{"input":[{"role":"user","content":"weather?"},{"role":"assistant","content":"Cold."},`+weatherItem("c1")+
		`,{"type":"function_call_output","call_id":"c1","output":"x"}],`+oneTool+`}`), "D")
	f.Add([]byte(`{"previous_response_id":"resp_1","input":[{"type":"function_call_output","call_id":"c1"}],`+oneTool+`}`), "D")
	f.Fuzz(func(t *testing.T, body []byte, directory string) {
		if !gjson.ValidBytes(body) {
			return
		}
		v, err := Responses.View(body, nil)
		if err != nil || v.Passthrough != "" {
			return
		}
		if got := Responses.Compose(v, Projection{}); !bytes.Equal(got, body) {
			t.Fatalf("no edit makes\n%s\nof\n%s", got, body)
		}
		if got := Responses.Compose(v, Projection{Directory: AppendString(nil, directory), Splices: splices}); !gjson.ValidBytes(got) {
			t.Fatalf("with spliced rounds %s becomes %s", body, got)
		}
		r, results := hiddenRound(`{"type":"function_call","call_id":"s1"}`, "s1")
		projection := Projection{
			Directory: AppendString(nil, directory), Tools: []byte(`[{"type":"function","name":"z"}]`), Rounds: []Round{r}, Results: [][]Result{results},
		}
		got := Responses.Compose(v, projection)
		projection.Splices = splices
		checkSlim(t, Responses, v, projection)
		if !gjson.ValidBytes(got) {
			t.Fatalf("%s becomes %s", body, got)
		}
		after := gjson.ParseBytes(got)
		gjson.ParseBytes(body).ForEach(func(key, value gjson.Result) bool {
			switch key.String() {
			case "tools", "input", "instructions":
			default:
				if now := lastMember(after, key.String()); now.Raw != value.Raw {
					t.Errorf("%s was %s and is %s", key, value.Raw, now.Raw)
				}
			}
			return true
		})
		items := after.Get("input").Array()
		last := items[len(items)-1]
		if last.Get("type").String() != "function_call_output" || last.Get("call_id").String() != "s1" {
			t.Errorf("the input ends with %s", last.Raw)
		}
		if _, err := Responses.View(got, nil); err != nil {
			t.Errorf("%s cannot be read again: %v", got, err)
		}
	})
}

// lastMember returns the last member of this name, as parsers have it.
func lastMember(object gjson.Result, name string) (found gjson.Result) {
	object.ForEach(func(key, value gjson.Result) bool {
		if key.String() == name {
			found = value
		}
		return true
	})
	return found
}

// FuzzResponsesStream feeds any stream: the answer must not fail, whatever comes, in whatever pieces, and what goes out are
// whole events.
func FuzzResponsesStream(f *testing.F) {
	for _, raw := range legalOrders("resp_1") {
		f.Add(raw, uint8(3))
	}
	f.Add(round("resp_1", nil, reasoningEvents(0, "rs_1", ""), search(1, "s1"), weather(2, "c1")), uint8(7))
	f.Add([]byte("data: {\"type\":\"response.completed\",\"response\":{\"id\":}}\n\n"), uint8(1))
	f.Add([]byte("data: {\"type\":\"response.output_item.done\",\"item\":{}}\n\n"), uint8(1))
	v, err := Responses.View([]byte(responsesRequest), nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(response("resp_1", "completed", searchItem("s1"))), uint8(0))
	f.Add([]byte(`{"output":[{"type":"function_call","name":"tool_search","arguments":1}],"usage":{},"error":null}`), uint8(0))
	f.Fuzz(func(t *testing.T, raw []byte, size uint8) {
		whole := Responses.NewAnswer(v, AnswerOptions{TextCalls: size%2 == 1, Known: func(string) bool { return true }})
		for range 2 {
			whole.Begin(testNames{})
			whole.Whole(raw)
			if r := whole.End(); gjson.ValidBytes(raw) && !gjson.Valid("["+string(r.items)+"]") {
				t.Errorf("%s is replayed as %s", raw, r.items)
			}
		}
		if body := whole.Body(); gjson.ValidBytes(raw) && !gjson.ValidBytes(body) {
			t.Errorf("%s becomes %s", raw, body)
		}
		var first []byte
		for _, piece := range []int{len(raw) + 1, int(size) + 1} {
			a := Responses.NewAnswer(v, AnswerOptions{TextCalls: size%2 == 1, Known: func(string) bool { return true }})
			a.Begin(testNames{"get_weather": true})
			r := NewEventReader(&pieces{raw, piece}, 1<<20)
			var out []byte
			for {
				ev, err := r.Next()
				if err != nil {
					break
				}
				out = a.Event(out, ev)
			}
			last := a.End()
			Responses.Splices(v, nil, [][]Result{{{"s1", "R"}}}, last)
			if last.Failure != nil || !last.Complete {
				out = a.Fail(out, Failure{Message: "x"})
			} else {
				out = a.Finish(out)
			}
			if len(out) > 0 && !bytes.HasSuffix(out, []byte("\n")) && !bytes.HasSuffix(out, []byte("\r")) {
				t.Errorf("the client's last event is not whole: %q", out)
			}
			if allJSON(raw) && !allJSON(out) {
				t.Errorf("the client's events are not JSON: %q", out)
			}
			if first == nil {
				first = out
			} else if !bytes.Equal(first, out) {
				t.Errorf("in pieces of %d the client got\n%q\nnot\n%q", piece, out, first)
			}
		}
	})
}

// allJSON reports whether the data of every event of a stream is JSON.
func allJSON(stream []byte) bool {
	r := NewEventReader(bytes.NewReader(stream), 1<<20)
	for {
		ev, err := r.Next()
		if err != nil {
			return true
		}
		if ev.Data != nil && !gjson.ValidBytes(ev.Data) {
			return false
		}
	}
}

// pieces reads so many bytes at once.
type pieces struct {
	rest []byte
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.rest[:min(p.size, len(p.rest))])
	p.rest = p.rest[n:]
	return n, nil
}
