package openai

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

func TestChatView(t *testing.T) {
	const tools = `"tools":[{"type":"function","function":{"name":"a"}}]`
	const messages = `"messages":[{"role":"user","content":"hi"}]`
	cases := []struct {
		name, body string
		want       Reason
		err        error
	}{
		{"plain", `{"model":"m",` + messages + `,` + tools + `}`, "", nil},
		{"white space", " \n{ \"model\" : \"m\" ,\t" + messages + ` , ` + tools + " }\r\n", "", nil},
		{"n is 1", `{"n":1,` + messages + `,` + tools + `}`, "", nil},
		{"n is null", `{"n":null,` + messages + `,` + tools + `}`, "", nil},
		{"functions are null", `{"functions":null,` + messages + `,` + tools + `}`, "", nil},
		{"PC-046 no tools", `{` + messages + `}`, ReasonNoTools, nil},
		{"PC-046 empty tools", `{` + messages + `,"tools":[ ]}`, ReasonNoTools, nil},
		{"PC-046 null tools", `{` + messages + `,"tools":null}`, ReasonNoTools, nil},
		{"tools that are no array", `{` + messages + `,"tools":{}}`, ReasonShape, nil},
		{"no messages", `{` + tools + `}`, ReasonShape, nil},
		{"messages that are a string", `{"messages":"hi",` + tools + `}`, ReasonShape, nil},
		{"PC-070 several choices", `{"n":2,` + messages + `,` + tools + `}`, ReasonChoices, nil},
		{"PC-085 functions", `{"functions":[{"name":"f"}],` + messages + `}`, ReasonFunctions, nil},
		{"PC-023 the provider's own search", `{` + messages + `,"tools":[{"type":"tool_search"},{"type":"function",` +
			`"function":{"name":"a"}}]}`, ReasonNativeSearch, nil},
		{"PC-023 tools deferred already", `{` + messages + `,"tools":[{"type":"function","defer_loading":true,` +
			`"function":{"name":"a"}}]}`, ReasonNativeSearch, nil},
		{"PC-097 a repeated key", `{"model":"m","model":"m2",` + messages + `,` + tools + `}`, ReasonRepeatedKey, nil},
		{"PC-097 a repeated key, escaped", `{` + messages + `,` + tools + `,"t\u006fols":[]}`, ReasonRepeatedKey, nil},
		{"PC-097 200 levels", `{` + messages + `,"x":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `,` +
			tools + `}`, "", nil},
		{"PC-097 too deep", `{` + messages + `,"x":` + strings.Repeat("[", 10000) + strings.Repeat("]", 10000) + `,` +
			tools + `}`, "", ErrTooDeep},
		{"no object", `[]`, "", ErrSyntax},
		{"nothing", ``, "", ErrSyntax},
		{"cut", `{` + messages + `,"tools":[`, "", ErrSyntax},
		{"more behind it", `{` + messages + `,` + tools + `}{}`, "", ErrSyntax},
		{"no value", `{` + messages + `,"x":}`, "", ErrSyntax},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			v, err := Chat.View([]byte(c.body), nil)
			if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
				t.Fatalf("got the error %v, want %v", err, c.err)
			}
			if err == nil && v.Passthrough != c.want {
				t.Errorf("got the reason %q, want %q", v.Passthrough, c.want)
			}
		})
	}
}

func TestChatViewItems(t *testing.T) {
	v := chatView(t, `{"model":"m\u0031","stream":true,"stream_options":{"include_usage":true},`+
		`"response_format":{"type":"json_schema"},`+
		`"tool_choice":"required","tools":[{"type":"function","function":{"name":"a"}}],"messages":[`+
		`{"role":"developer","content":"x"},{"role":"user","content":[{"type":"text","text":"y"}]},`+
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"a",`+
		`"arguments":"{\"p\":1}"}},`+
		`{"id":"c2","type":"custom","custom":{"name":"b","input":"z"}},3]},`+
		`{"role":"tool","tool_call_id":"c1","content":"r"},{"role":"function","name":"a","content":"r"},`+
		`{"content":"?"},"odd"]}`)
	if v.Model != "m1" || !v.Stream || !v.UsageAsked || !v.JSONFormat || v.Choice.Form != ChoiceRequired {
		t.Errorf("got %+v", v)
	}
	kinds := []Kind{KindSystem, KindUser, KindAssistant, KindResult, KindOther, KindOther, KindOther}
	if len(v.Items) != len(kinds) {
		t.Fatalf("got %d messages", len(v.Items))
	}
	for i, item := range v.Items {
		if item.Kind != kinds[i] {
			t.Errorf("message %d is of kind %d, want %d", i, item.Kind, kinds[i])
		}
		if want := gjson.GetBytes(v.Body, "messages").Array()[i].Raw; string(item.Of(v.Body)) != want {
			t.Errorf("message %d is %s, want %s", i, item.Of(v.Body), want)
		}
	}
	calls := v.Items[2].Calls
	if len(calls) != 3 || calls[0].ID != "c1" || calls[0].Name != "a" ||
		string(calls[0].ArgumentsAt.Of(v.Body)) != `"{\"p\":1}"` ||
		calls[1].ID != "c2" || calls[1].Name != "b" || calls[1].function || v.Items[3].ResultOf != "c1" {
		t.Errorf("got the calls %+v", calls)
	}
}

func TestChatVirtualTool(t *testing.T) {
	for _, strict := range []string{"omit", "false", "true"} {
		tool := gjson.ParseBytes(Chat.VirtualTool("find_\"it", strict))
		f := tool.Get("function")
		if tool.Get("type").String() != "function" || f.Get("name").String() != `find_"it` ||
			f.Get("parameters.properties.query.type").String() != "string" ||
			f.Get("parameters.additionalProperties").Raw != "false" || f.Get("strict").Exists() != (strict != "omit") {
			t.Errorf("with strict %s: %s", strict, tool.Raw)
		}
		required := f.Get("parameters.required").Raw
		if strict == "true" && required != `["query","max_results"]` || strict != "true" && required != `["query"]` {
			t.Errorf("with strict %s the required members are %s", strict, required)
		}
	}
}

func TestChatCompose(t *testing.T) {
	const directory = "<available_deferred_tools>\na & b\n</available_deferred_tools>"
	const written = `<available_deferred_tools>\na & b\n</available_deferred_tools>`
	body := func(messages string) string {
		return `{"seed":9007199254740993,"x":1.0,"messages":[` + messages +
			`],"tool_choice":"auto","parallel_tool_calls":false,` +
			`"tools":[ {"type":"function","function":{"name":"a"}} ],"é":"<&>\u00e9"}`
	}
	cases := []struct {
		name, messages string
		p              Projection
		want           string // the messages
	}{
		{"PC-050 a system string", `{"role":"system","content":"You <are> X."},{"role":"user","content":"hi"}`,
			Projection{Directory: AppendString(nil, directory)},
			`{"role":"system","content":"You <are> X.\n\n` + written + `"},{"role":"user","content":"hi"}`},
		{"an empty system string", `{"role":"developer","content":""}`, Projection{Directory: AppendString(nil, directory)},
			`{"role":"developer","content":"` + written + `"}`},
		{"system parts", `{"role":"system","content":[{"type":"text","text":"X",` +
			`"cache_control":{"type":"ephemeral"}}]},{"role":"user","content":"hi"}`, Projection{Directory: AppendString(nil, directory)},
			`{"role":"system","content":[{"type":"text","text":"X","cache_control":{"type":"ephemeral"}},` +
				`{"type":"text","text":"` + written + `"}]},{"role":"user","content":"hi"}`},
		{"empty system parts", `{"role":"system","content":[ ]}`, Projection{Directory: AppendString(nil, directory)},
			`{"role":"system","content":[ {"type":"text","text":"` + written + `"}]}`},
		{"a system message that is null", `{"role":"system","content":null}`, Projection{Directory: AppendString(nil, directory)},
			`{"role":"system","content":"` + written + `"}`},
		{"a system message without content", `{"role":"system"}`, Projection{Directory: AppendString(nil, directory)}, `{"content":"` +
			written + `","role":"system"}`},
		{"no system message", `{"role":"user","content":"hi"}`, Projection{Directory: AppendString(nil, directory)},
			`{"role":"system","content":"` + written + `"},{"role":"user","content":"hi"}`},
		{"no message", ``, Projection{Directory: AppendString(nil, directory)}, `{"role":"system","content":"` + written + `"}`},
		{"a late system message", `{"role":"user","content":"hi"},{"role":"system","content":"X"}`,
			Projection{Directory: AppendString(nil, directory)},
			`{"role":"system","content":"` + written + `"},{"role":"user","content":"hi"},{"role":"system",` +
				`"content":"X"}`},
		{"nothing", `{"role":"user","content":"hi"}`, Projection{}, `{"role":"user","content":"hi"}`},
		{"encoded names", `{"role":"assistant","tool_calls":[{"id":"1","type":"function",` +
			`"function":{"arguments":"{}","name":"m.s"}},` +
			`{"id":"2","type":"custom","custom":{"name":"m.c"}},{"id":"3","type":"function",` +
			`"function":{"name":"plain"}}]}`,
			Projection{Encode: func(s string) string { return strings.ReplaceAll(s, ".", "-_-") }},
			`{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"arguments":"{}",` +
				`"name":"m-_-s"}},` +
				`{"id":"2","type":"custom","custom":{"name":"m.c"}},{"id":"3","type":"function",` +
				`"function":{"name":"plain"}}]}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			v := chatView(t, body(c.messages))
			if got := string(Chat.Compose(v, c.p)); got != body(c.want) {
				t.Errorf("got\n%s\nwant\n%s", got, body(c.want))
			}
		})
	}
	v := chatView(t, body(`{"role":"user"}`))
	got := string(Chat.Compose(v, Projection{Tools: []byte(`[{"b":1}]`), Mode: "required"}))
	want := strings.Replace(strings.Replace(body(`{"role":"user"}`),
		`[ {"type":"function","function":{"name":"a"}} ]`, `[{"b":1}]`, 1), `"auto"`, `"required"`, 1)
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	// PC-044: nothing that needs tools stays without them.
	got = string(Chat.Compose(v, Projection{Tools: []byte{}}))
	if want := `{"seed":9007199254740993,"x":1.0,"messages":[{"role":"user"}],"é":"<&>\u00e9"}`; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	forced := chatView(t, `{"messages":[],"tools":[{"type":"function","function":{"name":"m.s"}}],`+
		`"tool_choice":{"type":"function","function":{"name":"m.s"}}}`)
	got = gjson.GetBytes(Chat.Compose(forced, Projection{Encode: func(string) string { return "m-_-s" }}),
		"tool_choice").Raw
	if want := `{"type":"function","function":{"name":"m-_-s"}}`; got != want {
		t.Errorf("the forced choice is %s, want %s", got, want)
	}
}

// spliceRounds plays hidden rounds in front of a last one and returns what later requests need.
func spliceRounds(t *testing.T, rounds ...[]byte) []Splice {
	t.Helper()
	v := chatView(t, chatRequest)
	p := playChat(t, v, AnswerOptions{}, weatherAndMail, false, rounds...)
	splices := Chat.Splices(v, p.rounds, p.results, p.last)
	if len(splices) != 1 {
		t.Fatalf("got %d splices", len(splices))
	}
	return splices
}

func TestChatSplices(t *testing.T) {
	hidden := func(content string) string {
		return `{"role":"assistant","content":` + content + `,"tool_calls":[{"id":"s1","type":"function",` +
			`"function":{"name":"tool_search",` +
			`"arguments":"{\"query\":\"q\"}"}}]},{"role":"tool","tool_call_id":"s1","content":"R11"}`
	}
	const call = `"tool_calls":[{"id":"w1","type":"function","function":{"name":"read_file",` +
		`"arguments":"{ \"path\": 1 }"}}]}`
	const result = `,{"role":"tool","tool_call_id":"w1","content":"text"}`
	visible := callDelta("0", "w1", "read_file", `{"path":1}`)
	silent := spliceRounds(t, chunks("c1", searchDelta("q"), "=tool_calls"), chunks("c2", visible, "=tool_calls"))
	talking := spliceRounds(t, chunks("c1", "Let me look. ", searchDelta("q"), "=tool_calls"), chunks("c2",
		"Found it.", visible, "=tool_calls"))
	parts := spliceRounds(t, chunks("c1", `{"content":[{"type":"text","text":"Let me look. "}]}`, searchDelta("q"),
		"=tool_calls"), chunks("c2", "Found it.", visible, "=tool_calls"))
	thinking := spliceRounds(t, chunks("c1", `{"reasoning_content":"hm "}`, "Look. ", searchDelta("q"),
		"=tool_calls"), chunks("c2", `{"reasoning_content":"so"}`, visible, "=tool_calls"))
	thought := func(content string) string {
		return `{"role":"assistant","reasoning_content":"hm ","content":` + content +
			`,"tool_calls":[{"id":"s1","type":"function","function":{"name":"tool_search",` +
			`"arguments":"{\"query\":\"q\"}"}}]},{"role":"tool","tool_call_id":"s1","content":"R11"}`
	}
	mixed := spliceRounds(t, chunks("c1", callDelta("0", "w0", "read_file", "{}"), callDelta("1", "s1",
		"tool_search", `{"query":"q"}`), callDelta("2", "w1", "read_file", `{"path":1}`), "=tool_calls"))
	const search = `{"id":"s1","type":"function","function":{"name":"tool_search","arguments":"{\"query\":\"q\"}"}}`
	const searched = `{"role":"tool","tool_call_id":"s1","content":"R11"}`
	w0 := `{"id":"w0","type":"function","function":{"name":"read_file","arguments":"{}"}}`
	w1 := strings.TrimSuffix(strings.TrimPrefix(call, `"tool_calls":[`), `]}`)
	cases := []struct {
		name, sent string // what the client sends behind its user message
		splices    []Splice
		want       string
	}{
		{"PC-052 before a turn with calls", `{"role":"assistant","content":null,` + call + result, silent,
			hidden("null") + `,{"role":"assistant","content":null,` + call + result},
		{"another call of that id", `{"role":"assistant",` + strings.Replace(call, "path", "other", 1), silent,
			`{"role":"assistant",` + strings.Replace(call, "path", "other", 1)},
		{"no such call", `{"role":"assistant","content":"x"}`, silent, `{"role":"assistant","content":"x"}`},
		{"the joined text is cut", `{"role":"assistant","content":"Let me look. Found it.",` + call + result, talking,
			hidden(`"Let me look. "`) + `,{"role":"assistant","content":"Found it.",` + call + result},
		{"a trimmed text is cut", `{"role":"assistant","content":"Let me look.",` + call + result, talking,
			hidden(`"Let me look. "`) + `,{"role":"assistant","content":null,` + call + result},
		{"text in parts is cut", `{"role":"assistant","content":[{"type":"text","text":"Let me "},{"type":"text",` +
			`"text":"look. Found it.","x":1}],` + call, talking,
			hidden(`"Let me look. "`) + `,{"role":"assistant","content":[{"type":"text","text":"Found it.","x":1}],` +
				call},
		{"text in parts is cut whole", `{"role":"assistant","content":[{"type":"text","text":"Let me look. "}],` +
			call, talking,
			hidden(`"Let me look. "`) + `,{"role":"assistant","content":null,` + call},
		{"another text is not doubled", `{"role":"assistant","content":"Summary.",` + call + result, talking,
			hidden(`null`) + `,{"role":"assistant","content":"Summary.",` + call + result},
		{"other parts are not doubled", `{"role":"assistant","content":[{"type":"text","text":"Found it."}],` + call,
			talking,
			hidden(`null`) + `,{"role":"assistant","content":[{"type":"text","text":"Found it."}],` + call},
		{"a client that keeps no text", `{"role":"assistant","content":null,` + call + result, talking,
			hidden(`"Let me look. "`) + `,{"role":"assistant","content":null,` + call + result},
		{"a client that keeps an empty text", `{"role":"assistant","content":"",` + call, talking,
			hidden(`"Let me look. "`) + `,{"role":"assistant","content":"",` + call},
		{"a client without a content", `{"role":"assistant",` + call, talking, hidden(`"Let me look. "`) +
			`,{"role":"assistant",` + call},
		{"a hidden text in parts", `{"role":"assistant","content":[{"type":"text","text":"Let me look. "},` +
			`{"type":"text","text":"Found it."}],` + call, parts,
			hidden(`[{"type":"text","text":"Let me look. "}]`) + `,{"role":"assistant","content":[{"type":"text",` +
				`"text":"Found it."}],` + call},
		{"a hidden text in parts is not doubled", `{"role":"assistant","content":"Else.",` + call, parts,
			hidden(`null`) + `,{"role":"assistant","content":"Else.",` + call},
		{"reasoning is cut", `{"role":"assistant","content":"Look. ","reasoning_content":"hm so",` + call, thinking,
			thought(`"Look. "`) + `,{"role":"assistant","content":null,"reasoning_content":"so",` + call},
		{"reasoning that is not sent back", `{"role":"assistant","content":"Look. ",` + call, thinking,
			thought(`"Look. "`) + `,{"role":"assistant","content":null,` + call},
		{"other reasoning and text", `{"role":"assistant","content":"Else.","reasoning_content":"other",` + call,
			thinking,
			thought(`null`) + `,{"role":"assistant","content":"Else.","reasoning_content":"other",` + call},
		{"PC-005 a mixed turn", `{"role":"assistant","content":null,"tool_calls":[` + w0 + `,` + w1 +
			`]},{"role":"tool","tool_call_id":"w0","content":"a"}` + result, mixed,
			`{"role":"assistant","content":null,"tool_calls":[` + w0 + `,` + search + `,` + w1 +
				`]},{"role":"tool","tool_call_id":"w0","content":"a"},` + searched + result},
		{"a mixed turn, results in another order", `{"role":"assistant","tool_calls":[` + w0 + `,` + w1 + `]}` +
			result + `,{"role":"tool","tool_call_id":"w0","content":"a"}`, mixed,
			`{"role":"assistant","tool_calls":[` + w0 + `,` + search + `,` + w1 + `]}` + result + `,` + searched +
				`,{"role":"tool","tool_call_id":"w0","content":"a"}`},
		{"a mixed turn, one call left", `{"role":"assistant","tool_calls":[` + w0 +
			`]},{"role":"tool","tool_call_id":"w0","content":"a"},{"role":"user","content":"go on"}`, mixed,
			`{"role":"assistant","tool_calls":[` + w0 + `,` + search + `]},{"role":"tool","tool_call_id":"w0",` +
				`"content":"a"},` + searched + `,{"role":"user","content":"go on"}`},
		{"a mixed turn, one message a call", `{"role":"assistant","tool_calls":[` + w0 + `]},` +
			`{"role":"tool","tool_call_id":"w0","content":"a"},{"role":"assistant","tool_calls":[` + w1 + `]}` + result, mixed,
			`{"role":"assistant","tool_calls":[` + w0 + `,` + search + `]},{"role":"tool","tool_call_id":"w0",` +
				`"content":"a"},` + searched + `,{"role":"assistant","tool_calls":[` + w1 + `]}` + result},
		{"an equal call behind it", `{"role":"assistant","content":null,` + call + result + `,{"role":"assistant",` + call + result,
			silent, hidden("null") + `,{"role":"assistant","content":null,` + call + result + `,{"role":"assistant",` + call + result},
		{"an equal call before it, elsewhere", `{"role":"user","content":"x"},{"role":"assistant",` + call + result +
			`,{"role":"assistant","content":null,` + call + result, silent, `{"role":"user","content":"x"},{"role":"assistant",` +
			call + result + `,` + hidden("null") + `,{"role":"assistant","content":null,` + call + result},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			request := func(rest string) string {
				return strings.Replace(chatRequest, `"weather?"}`, `"weather?"},`+rest, 1)
			}
			v := chatView(t, request(c.sent))
			before := bytes.Clone(c.splices[0].Before)
			got := string(Chat.Compose(v, Projection{Splices: c.splices}))
			if got != request(c.want) {
				t.Errorf("got\n%s\nwant\n%s", got, request(c.want))
			}
			if again := string(Chat.Compose(v, Projection{Splices: c.splices})); again != got || !bytes.Equal(before,
				c.splices[0].Before) {
				t.Errorf("the same request became\n%s\nat the second time", again)
			}
		})
	}
}

// TestChatSplicesOfSeveralRounds: the texts of all hidden rounds were joined to the visible one.
func TestChatSplicesOfSeveralRounds(t *testing.T) {
	second := callDelta("0", "s2", "tool_search", `{}`)
	splices := spliceRounds(t, chunks("c1", "One. ", searchDelta("q"), "=tool_calls"), chunks("c2", "Two. ", second,
		"=tool_calls"),
		chunks("c3", "Three.", callDelta("0", "w1", "read_file", `{}`), "=tool_calls"))
	for _, c := range []struct{ sent, want string }{
		{`"One. Two. Three."`, `["One. ","Two. ","Three."]`}, {`"Three."`, `[null,null,"Three."]`}, {`null`,
			`["One. ","Two. ",null]`},
	} {
		v := chatView(t, strings.Replace(chatRequest, `"weather?"}`,
			`"weather?"},{"role":"assistant","content":`+c.sent+
				`,"tool_calls":[{"id":"w1","type":"function","function":{"name":"read_file","arguments":"{}"}}]},`+
				`{"role":"tool","tool_call_id":"w1","content":"r"}`, 1))
		if got := gjson.GetBytes(Chat.Compose(v, Projection{Splices: splices}),
			`messages.#(role=="assistant")#.content`).Raw; got != c.want {
			t.Errorf("of %s became %s, want %s", c.sent, got, c.want)
		}
	}
	v := chatView(t, chatRequest)
	p := playChat(t, v, AnswerOptions{}, weatherAndMail, false, chunks("c1", searchDelta("q"), "=tool_calls"), chunks("c2", "Found.", "=stop"))
	if got := Chat.Splices(v, p.rounds, p.results, p.last); got != nil {
		t.Errorf("a text, which others may equal, is taken for an anchor: %+v", got)
	}
	if got := Chat.Splices(&View{}, nil, nil, Round{}); got != nil {
		t.Errorf("without hidden rounds got %+v", got)
	}
}

// FuzzChatCompose projects any body: what was JSON stays JSON, and messages are only added.
func FuzzChatCompose(f *testing.F) {
	f.Add([]byte(chatRequest), "dir")
	f.Add([]byte(strings.Replace(chatRequest, `"weather?"}`,
		`"weather?"},{"role":"assistant","content":[{"text":"Look. "}],"tool_calls":[{"id":"w1",`+
			`"function":{"name":"read_file","arguments":"{}"}}]},{"role":"tool","tool_call_id":"w1"}`, 1)), "<x>")
	f.Add([]byte(`{"messages":[{"role":"system"},{}],"tools":[{"type":"function","name":"flat"}],`+
		`"tool_choice":{"type":"function","name":"flat"}}`), "")
	f.Add([]byte(`{"messages":[{"role":"assistant","content":1,"tool_calls":[{"function":{}}]}],`+
		`"tools":[{"type":"x"}],"tool_choice":{"type":"function"}}`), "d")
	v, err := Chat.View([]byte(chatRequest), nil)
	if err != nil {
		f.Fatal(err)
	}
	p := playChat(f, v, AnswerOptions{}, weatherAndMail, false, chunks("c1", "Look. ", searchDelta("q"), "=tool_calls"),
		chunks("c2", "a", callDelta("0", "s2", "tool_search", "{}"), callDelta("1", "w1", "read_file", "{}"),
			"=tool_calls"))
	splices := Chat.Splices(v, p.rounds, p.results, p.last)
	f.Fuzz(func(t *testing.T, body []byte, directory string) {
		before := bytes.Clone(body)
		v, err := Chat.View(body, nil)
		if err != nil {
			if gjson.ValidBytes(body) && gjson.ParseBytes(body).IsObject() && !errors.Is(err, ErrTooDeep) {
				t.Fatalf("a JSON object was refused: %v", err)
			}
			return
		}
		if v.Passthrough != "" {
			return
		}
		projection := Projection{Directory: AppendString(nil, directory), Splices: splices, Rounds: p.rounds,
			Results: p.results[:1],
			Tools:   []byte(`[{"type":"function","function":{"name":"x"}}]`), Encode: func(s string) string {
				return s +
					"_"
			}}
		out := Chat.Compose(v, projection)
		checkSlim(t, Chat, v, projection)
		if !bytes.Equal(before, body) {
			t.Fatal("the client's body was changed")
		}
		if !gjson.ValidBytes(body) {
			return
		}
		if !gjson.ValidBytes(out) {
			t.Fatalf("%s\nbecame\n%s", body, out)
		}
		if n, m := len(v.Items), len(lastMember(gjson.ParseBytes(out), "messages").Array()); m < n+2 {
			t.Fatalf("%d messages became %d", n, m)
		}
	})
}

// checkSlim makes the view a slim one: nothing that comes of it may change.
func checkSlim(t *testing.T, d Dialect, v *View, p Projection) {
	t.Helper()
	none := p
	none.Tools = []byte{}
	full := [][]byte{d.Compose(v, p), d.Compose(v, Projection{}), d.Compose(v, none), bytes.Clone(v.Body)}
	slim := *v
	slim.Slim(v.Tools.Detach())
	for i, got := range [][]byte{d.Compose(&slim, p), d.Compose(&slim, Projection{}), d.Compose(&slim, none), slim.Original()} {
		if !bytes.Equal(got, full[i]) {
			t.Fatalf("without the tools, case %d becomes\n%s\nwith them\n%s", i, got, full[i])
		}
	}
	if !bytes.Equal(v.Body, full[3]) {
		t.Fatal("the view that was copied has changed")
	}
}

func BenchmarkChatRequest(b *testing.B) {
	var tools, messages []string
	for i := range 200 {
		name := "tool_" + strings.Repeat("x", i%9) + string(rune('a'+i%26))
		tools = append(tools, `{"type":"function","function":{"name":"`+name+`",`+
			`"description":"Does what its name says, and nothing else.",`+
			`"parameters":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}}}}}`)
	}
	for range 50 {
		messages = append(messages, `{"role":"user","content":"`+strings.Repeat("word ", 50)+`"}`,
			`{"role":"assistant","content":null,"tool_calls":[`+
				`{"id":"w","type":"function","function":{"name":"tool_a","arguments":"{\"a\":\"b\"}"}}]}`,
			`{"role":"tool","tool_call_id":"w","content":"`+strings.Repeat("text ", 100)+`"}`)
	}
	body := []byte(`{"model":"m","messages":[` + strings.Join(messages, ",") + `],"tools":[` + strings.Join(tools,
		",") + `]}`)
	b.Run("view", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			if _, err := Chat.View(body, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	v, err := Chat.View(body, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("view with known tools", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			if _, err := Chat.View(body, func([]byte) *Tools { return v.Tools }); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("compose", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			Chat.Compose(v, Projection{Tools: []byte(`[]`), Directory: []byte(`"directory"`)})
		}
	})
}
