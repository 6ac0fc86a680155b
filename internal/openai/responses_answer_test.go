package openai

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tidwall/gjson"
)

func search(place int, id string) []string {
	return callEvents(place, "fc_"+id, id, "tool_search", `{"query":"weather"}`)
}

func searchItem(id string) string {
	return callItem("fc_"+id, id, "tool_search", `{"query":"weather"}`)
}

func weather(place int, id string) []string {
	return callEvents(place, "fc_"+id, id, "get_weather", `{"city":"Oslo"}`)
}

func weatherItem(id string) string {
	return callItem("fc_"+id, id, "get_weather", `{"city":"Oslo"}`)
}

func hosted(place int, id string) []string {
	item := func(status string) string {
		return `{"id":"` + id + `","type":"web_search_call","status":"` + status + `"}`
	}
	where := `"item_id":"` + id + `",` + at(place)
	return []string{
		`{"type":"response.output_item.added",` + at(place) + `,"item":` + item("in_progress") + `}`,
		`{"type":"response.web_search_call.in_progress",` + where + `}`,
		`{"type":"response.web_search_call.completed",` + where + `}`,
		`{"type":"response.output_item.done",` + at(place) + `,"item":` + item("completed") + `}`,
	}
}

func hostedItem(id string) string {
	return `{"id":"` + id + `","type":"web_search_call","status":"completed"}`
}

// plainItem is added and done with nothing between.
func plainItem(place int, item string) []string {
	return []string{
		`{"type":"response.output_item.added",` + at(place) + `,"item":` + item + `}`,
		`{"type":"response.output_item.done",` + at(place) + `,"item":` + item + `}`,
	}
}

// legalOrders are answers that hold no call of the proxy's, in every order in which the API sends events.
func legalOrders(id string) map[string][]byte {
	const compaction = `{"id":"cmp_1","type":"compaction","encrypted_content":"C"}`
	const toolSearch = `{"id":"tsc_1","type":"tool_search_call","call_id":null,"execution":"server","arguments":{}}`
	const toolOutput = `{"id":"tso_1","type":"tool_search_output","call_id":null,"tools":[]}`
	const custom = `{"id":"ctc_1","type":"custom_tool_call","call_id":"k1","name":"shell","input":"ls"}`
	open := messageEvents(0, "msg_1", "Ha", "lf")
	return map[string][]byte{
		"text":          round(id, []string{messageItem("msg_1", "Hello")}, messageEvents(0, "msg_1", "Hel", "lo")),
		"function call": round(id, []string{weatherItem("c1")}, weather(0, "c1")),
		"reasoning, call": round(id, []string{reasoningItem("rs_1", ""), weatherItem("c1")},
			reasoningEvents(0, "rs_1", ""), weather(1, "c1")),
		"reasoning with a summary, call": round(id, []string{reasoningItem("rs_1", "Hm."), weatherItem("c1")},
			reasoningEvents(0, "rs_1", "Hm."), weather(1, "c1")),
		"hosted tools": round(id, []string{reasoningItem("rs_1", ""), hostedItem("ws_1"), reasoningItem("rs_2", ""),
			hostedItem("ws_2"), messageItem("msg_1", "Hello"), compaction}, reasoningEvents(0, "rs_1", ""), hosted(1, "ws_1"),
			reasoningEvents(2, "rs_2", ""), hosted(3, "ws_2"), messageEvents(4, "msg_1", "Hello"), plainItem(5, compaction)),
		"parallel calls": round(id, []string{weatherItem("c1"), weatherItem("c2"), custom},
			weather(0, "c1"), weather(1, "c2"), plainItem(2, custom)),
		"native search": round(id, []string{toolSearch, toolOutput, callItem("fc_c1", "c1", "mail/send", "{}")},
			plainItem(0, toolSearch), plainItem(1, toolOutput), callEvents(2, "fc_c1", "c1", "mail/send", "{}")),
		"reasoning alone": round(id, []string{reasoningItem("rs_1", "")}, reasoningEvents(0, "rs_1", "")),
		"incomplete": script(append(append([]string{created(id), inProgress(id)}, open...),
			ends(id, "incomplete", messageItem("msg_1", "Half")))...),
		"failed": script(append(append([]string{created(id), inProgress(id)}, open...),
			`{"type":"error","error":{"type":"server_error","code":"insufficient_quota","message":"No.","param":null}}`,
			ends(id, "failed", messageItem("msg_1", "Half")))...),
		"failed at once": script(created(id), inProgress(id),
			`{"type":"error","error":{"type":"server_error","code":"insufficient_quota","message":"No.","param":null}}`,
			ends(id, "failed", "")),
		"failed without an error event": script(created(id), inProgress(id), ends(id, "failed", "")),
		"text reasoning": script(created(id), inProgress(id),
			`{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"content":[]}}`,
			`{"type":"response.content_part.added","item_id":"rs_1","output_index":0,"content_index":0,"part":{"type":"reasoning_text","text":""}}`,
			`{"type":"response.reasoning_text.delta","item_id":"rs_1","output_index":0,"content_index":0,"delta":"Hm."}`,
			`{"type":"response.reasoning_text.done","item_id":"rs_1","output_index":0,"content_index":0,"text":"Hm."}`,
			`{"type":"response.content_part.done","item_id":"rs_1","output_index":0,"content_index":0,"part":{"type":"reasoning_text","text":"Hm."}}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"Hm."}]}}`,
			`{"type":"response.output_item.added","output_index":1,"item":{"id":"fc_1","type":"function_call","status":"in_progress","arguments":"","call_id":"c1","name":"get_weather"}}`,
			`{"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":1,"arguments":"{}"}`,
			`{"type":"response.output_item.done","output_index":1,"item":{"id":"fc_1","type":"function_call","status":"completed","arguments":"{}","call_id":"c1","name":"get_weather"}}`,
			ends(id, "completed", `{"id":"rs_1","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"Hm."}]},`+
				`{"id":"fc_1","type":"function_call","status":"completed","arguments":"{}","call_id":"c1","name":"get_weather"}`)),
		"details without an item, unknown types": script(append(append([]string{created(id), inProgress(id)},
			`{"type":"response.audio.delta","delta":"AA"}`,
			`{"type":"response.output_item.added","output_index":0,"item":{"id":"sh_1","type":"shell_call","call_id":"k1"}}`,
			`{"type":"response.shell_call_command.delta","output_index":0,"command_index":0,"delta":"ls"}`,
			`{"type":"keepalive","x":null}`,
			`{"type":"response.novelty","output_index":0,"é":[1.0,1e400]}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"id":"sh_1","type":"shell_call","call_id":"k1"}}`),
			ends(id, "completed", `{"id":"sh_1","type":"shell_call","call_id":"k1"}`))...),
	}
}

// TestResponsesAsItCame passes answers without hidden calls on event by event; only the echo is the client's.
func TestResponsesAsItCame(t *testing.T) {
	v := responsesView(t, responsesRequest)
	for name, raw := range legalOrders("resp_1") {
		t.Run(name, func(t *testing.T) {
			p := play(t, v, AnswerOptions{}, testNames{}, raw)
			checkStream(t, v, p.client)
			got, want := eventsOf(t, p.client), eventsOf(t, raw)
			if len(got) != len(want) {
				t.Fatalf("the client got\n%s\nof\n%s", summary(t, p.client), summary(t, raw))
			}
			for i := range got {
				if got[i].Raw != want[i].Raw && !want[i].Get("response").Exists() {
					t.Errorf("event %d is\n%s\nit came as\n%s", i, got[i].Raw, want[i].Raw)
				}
				if x := got[i].Get("response.x"); x.Exists() && x.Raw != `{"é":1.0}` {
					t.Errorf("an unknown member became %s", x.Raw)
				}
			}
		})
	}
}

// TestResponsesAfterHiddenRounds puts every order behind a hidden round that left no trace, and behind one that said
// something.
func TestResponsesAfterHiddenRounds(t *testing.T) {
	v := responsesView(t, responsesRequest)
	silent := round("resp_1", []string{reasoningItem("rs_0", ""), searchItem("s1")}, reasoningEvents(0, "rs_0", ""), search(1, "s1"))
	spoken := round("resp_1", []string{reasoningItem("rs_0", "So."), messageItem("msg_0", "Wait."), searchItem("s1")},
		reasoningEvents(0, "rs_0", "So."), messageEvents(1, "msg_0", "Wait."), search(2, "s1"))
	for name, raw := range legalOrders("resp_2") {
		t.Run(name, func(t *testing.T) {
			p := play(t, v, AnswerOptions{}, testNames{}, silent, raw)
			checkStream(t, v, p.client)
			if got, want := summary(t, p.client), summary(t, raw); got != want {
				t.Errorf("behind a silent round the client got\n%s\nwant\n%s", got, want)
			}
			p = play(t, v, AnswerOptions{}, testNames{}, spoken, raw)
			checkStream(t, v, p.client)
			got, want := eventsOf(t, p.client), eventsOf(t, raw)
			const before = 2 + 6 + 6 // the lifecycle, the reasoning, the message
			if len(got) != before+len(want)-2 {
				t.Fatalf("behind a round that said something the client got\n%s", summary(t, p.client))
			}
			for i, e := range got[before:] {
				if kind := want[i+2].Get("type").String(); e.Get("type").String() != kind {
					t.Errorf("event %d is %s, want %s", before+i, e.Get("type"), kind)
				}
				if place := want[i+2].Get("output_index"); place.Exists() && e.Get("output_index").Int() != place.Int()+2 {
					t.Errorf("%s", e.Raw)
				}
			}
			if id := got[len(got)-1].Get("response.id").String(); id != "resp_2" {
				t.Errorf("the answer ends as %s", id)
			}
		})
	}
}

// TestResponsesWholeEqualsStream gives the same rounds whole and streamed.
func TestResponsesWholeEqualsStream(t *testing.T) {
	v := responsesView(t, responsesRequest)
	silent := round("resp_1", []string{reasoningItem("rs_0", ""), searchItem("s1")}, reasoningEvents(0, "rs_0", ""), search(1, "s1"))
	spoken := round("resp_1", []string{reasoningItem("rs_0", "So."), messageItem("msg_0", "Wait."), searchItem("s1")},
		reasoningEvents(0, "rs_0", "So."), messageEvents(1, "msg_0", "Wait."), search(2, "s1"))
	final := func(stream []byte) string {
		events := eventsOf(t, stream)
		return events[len(events)-1].Get("response").Raw
	}
	for name, raw := range legalOrders("resp_2") {
		if strings.HasPrefix(name, "failed") {
			continue
		}
		for _, first := range [][]byte{nil, silent, spoken} {
			streamed, whole := [][]byte{raw}, [][]byte{[]byte(final(raw))}
			if first != nil {
				streamed, whole = [][]byte{first, raw}, [][]byte{[]byte(final(first)), []byte(final(raw))}
			}
			s := play(t, v, AnswerOptions{UsageDetails: true}, testNames{}, streamed...)
			w := play(t, v, AnswerOptions{UsageDetails: true}, testNames{}, whole...)
			want := gjson.Parse(final(s.client))
			if got := gjson.ParseBytes(w.client); got.Get("output").Raw != want.Get("output").Raw ||
				got.Get("usage").Raw != want.Get("usage").Raw || got.Get("tools").Raw != want.Get("tools").Raw ||
				got.Get("instructions").Raw != want.Get("instructions").Raw || got.Get("id").Raw != want.Get("id").Raw {
				t.Errorf("%s: whole the answer is\n%s\nstreamed it ends as\n%s", name, got.Raw, want.Raw)
			}
			if !bytes.Equal(s.body, w.body) {
				t.Errorf("%s: the next request is\n%s\nafter a streamed round it is\n%s", name, w.body, s.body)
			}
		}
	}
}

// TestResponsesFiltered shows what is left of rounds with hidden calls.
func TestResponsesFiltered(t *testing.T) {
	cases := []struct {
		name   string
		rounds [][]byte
		want   string
		items  string // of the hidden rounds, as the next request holds them
	}{
		{"the rounds of the reference's example",
			[][]byte{
				round("resp_1", nil, reasoningEvents(0, "rs_1", ""), search(1, "s1")),
				round("resp_2", nil, reasoningEvents(0, "rs_2", "Hm."), weather(1, "c1")),
			},
			`0 created resp_2
1 in_progress resp_2
2 output_item.added 0 rs_2
3 reasoning_summary_part.added 0
4 reasoning_summary_text.delta 0 "Hm."
5 reasoning_summary_text.done 0
6 reasoning_summary_part.done 0
7 output_item.done 0 rs_2
8 output_item.added 1 fc_c1
9 function_call_arguments.delta 1 "{\"city\":\"Oslo\"}"
10 function_call_arguments.done 1
11 output_item.done 1 fc_c1
12 completed resp_2
`, reasoningItem("rs_1", "") + "," + searchItem("s1")},
		{"its variant with a summary",
			[][]byte{
				round("resp_1", nil, reasoningEvents(0, "rs_1", "Hm."), search(1, "s1")),
				round("resp_2", nil, reasoningEvents(0, "rs_2", ""), weather(1, "c1")),
			},
			`0 created resp_1
1 in_progress resp_1
2 output_item.added 0 rs_1
3 reasoning_summary_part.added 0
4 reasoning_summary_text.delta 0 "Hm."
5 reasoning_summary_text.done 0
6 reasoning_summary_part.done 0
7 output_item.done 0 rs_1
8 output_item.added 1 rs_2
9 output_item.done 1 rs_2
10 output_item.added 2 fc_c1
11 function_call_arguments.delta 2 "{\"city\":\"Oslo\"}"
12 function_call_arguments.done 2
13 output_item.done 2 fc_c1
14 completed resp_2
`, reasoningItem("rs_1", "Hm.") + "," + searchItem("s1")},
		{"mixed, the search in front",
			[][]byte{round("resp_1", nil, reasoningEvents(0, "rs_1", ""), search(1, "s1"), weather(2, "c1"))},
			`0 created resp_1
1 in_progress resp_1
2 output_item.added 0 rs_1
3 output_item.done 0 rs_1
4 output_item.added 1 fc_c1
5 function_call_arguments.delta 1 "{\"city\":\"Oslo\"}"
6 function_call_arguments.done 1
7 output_item.done 1 fc_c1
8 completed resp_1
`, ""},
		{"mixed, reasoning of the hidden call alone",
			[][]byte{round("resp_1", nil, weather(0, "c1"), reasoningEvents(1, "rs_1", ""), search(2, "s1"))},
			`0 created resp_1
1 in_progress resp_1
2 output_item.added 0 fc_c1
3 function_call_arguments.delta 0 "{\"city\":\"Oslo\"}"
4 function_call_arguments.done 0
5 output_item.done 0 fc_c1
6 completed resp_1
`, ""},
		{"reasoning of both calls, each its own",
			[][]byte{round("resp_1", nil, reasoningEvents(0, "rs_1", ""), search(1, "s1"), reasoningEvents(2, "rs_2", ""), weather(3, "c1"))},
			`0 created resp_1
1 in_progress resp_1
2 output_item.added 0 rs_2
3 output_item.done 0 rs_2
4 output_item.added 1 fc_c1
5 function_call_arguments.delta 1 "{\"city\":\"Oslo\"}"
6 function_call_arguments.done 1
7 output_item.done 1 fc_c1
8 completed resp_1
`, ""},
		{"an unexposed member of a group, then an incomplete round",
			[][]byte{
				round("resp_1", nil, hosted(0, "ws_1"), callEvents(1, "fc_1", "c1", "mail/send", `{"to":"bob"}`)),
				script(append(append([]string{created("resp_2")}, search(0, "s2")...), ends("resp_2", "incomplete", searchItem("s2")))...),
			},
			`0 created resp_1
1 in_progress resp_1
2 output_item.added 0 ws_1
3 web_search_call.in_progress 0
4 web_search_call.completed 0
5 output_item.done 0 ws_1
6 incomplete resp_2
`, hostedItem("ws_1") + "," + callItem("fc_1", "c1", "mail/send", `{"to":"bob"}`)},
		{"three rounds",
			[][]byte{
				round("resp_1", nil, search(0, "s1")),
				round("resp_2", nil, messageEvents(0, "msg_1", "Wait."), search(1, "s2")),
				round("resp_3", nil, messageEvents(0, "msg_2", "Cold.")),
			},
			`0 created resp_2
1 in_progress resp_2
2 output_item.added 0 msg_1
3 content_part.added 0
4 output_text.delta 0 "Wait."
5 output_text.done 0
6 content_part.done 0
7 output_item.done 0 msg_1
8 output_item.added 1 msg_2
9 content_part.added 1
10 output_text.delta 1 "Cold."
11 output_text.done 1
12 content_part.done 1
13 output_item.done 1 msg_2
14 completed resp_3
`, searchItem("s1") + "|" + messageItem("msg_1", "Wait.") + "," + searchItem("s2")},
	}
	v := responsesView(t, responsesRequest)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := play(t, v, AnswerOptions{}, testNames{"mail.send": true}, c.rounds...)
			checkStream(t, v, p.client)
			if got := summary(t, p.client); got != c.want {
				t.Errorf("the client got\n%s\nwant\n%s", got, c.want)
			}
			var items []string
			for _, r := range p.rounds {
				items = append(items, string(r.items))
			}
			if got := strings.Join(items, "|"); got != c.items {
				t.Errorf("the rounds are replayed as\n%s\nwant\n%s", got, c.items)
			}
			if bytes.Contains(p.client, []byte("tool_search")) {
				t.Errorf("the client sees the virtual tool:\n%s", p.client)
			}
			for cut := 1; cut < 4; cut++ {
				readers := map[string]func([]byte) io.Reader{
					"one byte a read":  func(b []byte) io.Reader { return iotest.OneByteReader(bytes.NewReader(b)) },
					"half of a buffer": func(b []byte) io.Reader { return iotest.HalfReader(bytes.NewReader(b)) },
				}
				for how, reader := range readers {
					again := playFrom(t, Responses.NewAnswer(v, AnswerOptions{}), v, testNames{"mail.send": true}, c.rounds, reader)
					if !bytes.Equal(again.client, p.client) {
						t.Errorf("%s: the client got\n%s", how, again.client)
					}
				}
			}
		})
	}
}

// TestResponsesHoldsBack says what the client has got before the end of a round.
func TestResponsesHoldsBack(t *testing.T) {
	v := responsesView(t, responsesRequest)
	cases := []struct {
		name   string
		events []string
		opens  bool
	}{
		{"the lifecycle", []string{created("resp_1"), inProgress("resp_1")}, false},
		{"empty reasoning", reasoningEvents(0, "rs_1", ""), false},
		{"an empty delta", reasoningEvents(0, "rs_1", "x")[:2], false},
		{"a reasoning delta", reasoningEvents(0, "rs_1", "x")[:3], true},
		{"a message", messageEvents(0, "msg_1", "x")[:1], true},
		{"a hidden call", search(0, "s1"), false},
		{"a visible call", weather(0, "c1")[:1], true},
		{"a hosted tool", hosted(0, "ws_1")[:1], true},
		{"a keepalive", []string{`{"type":"keepalive","x":1}`}, false},
		{"an error", []string{`{"type":"error","code":"x","message":"no"}`}, false},
	}
	for _, c := range cases {
		a := Responses.NewAnswer(v, AnswerOptions{})
		a.Begin(testNames{})
		var got []byte
		r := NewEventReader(bytes.NewReader(script(append([]string{created("resp_1")}, c.events...)...)), 1<<20)
		for {
			ev, err := r.Next()
			if err != nil {
				break
			}
			got = a.Event(got, ev)
		}
		if opens := len(got) > 0; opens != c.opens {
			t.Errorf("%s: the client has got %q", c.name, got)
		}
	}
}

func TestResponsesFail(t *testing.T) {
	v := responsesView(t, responsesRequest)
	failure := Failure{Status: 500, Message: "the upstream is \"gone\"", Type: "server_error", Code: "server_error"}
	begin := func(raw []byte) (Answer, []byte) {
		a := Responses.NewAnswer(v, AnswerOptions{})
		a.Begin(testNames{})
		var out []byte
		r := NewEventReader(bytes.NewReader(raw), 1<<20)
		for {
			ev, err := r.Next()
			if err != nil {
				return a, out
			}
			out = a.Event(out, ev)
		}
	}
	whole := round("resp_1", nil, reasoningEvents(0, "rs_1", "Hm."), messageEvents(1, "msg_1", "Half"), search(2, "s1"))
	for cut := 0; cut <= len(whole); cut += 7 {
		a, out := begin(whole[:cut])
		a.End()
		out = a.Fail(out, failure)
		events := eventsOf(t, out)
		last := events[len(events)-1]
		if cut < 500 && last.Get("type").String() == "error" {
			continue // nothing was known of a response yet
		}
		checkStream(t, v, out)
		if len(events) < 2 || events[len(events)-2].Get("type").String() != "error" ||
			last.Get("type").String() != "response.failed" || last.Get("response.status").String() != "failed" ||
			last.Get("response.error.message").String() != failure.Message || last.Get("response.id").String() != "resp_1" {
			t.Fatalf("cut at %d: the client got\n%s", cut, out)
		}
	}
	t.Run("after a hidden round", func(t *testing.T) {
		a, out := begin(round("resp_1", nil, search(0, "s1")))
		a.End()
		out = a.Fail(out, failure)
		checkStream(t, v, out)
		if got := summary(t, out); got != "0 created resp_1\n1 in_progress resp_1\n2 error\n3 failed resp_1\n" {
			t.Errorf("the client got\n%s", got)
		}
	})
	t.Run("an error event alone", func(t *testing.T) {
		for _, event := range []string{
			`{"type":"error","error":{"type":"e","code":"context_length_exceeded","message":"long","param":null}}`,
			`{"type":"error","code":"context_length_exceeded","message":"long","param":null}`,
		} {
			p := play(t, v, AnswerOptions{}, testNames{}, script(append([]string{created("resp_1")}, event)...))
			checkStream(t, v, p.client)
			events := eventsOf(t, p.client)
			if len(events) != 3 || !strings.Contains(events[1].Raw, `"message":"long"`) ||
				events[2].Get("response.error.code").String() != "context_length_exceeded" {
				t.Errorf("the client got\n%s", p.client)
			}
		}
	})
}

// TestResponsesUnstored leaves out of an unstored round what the upstream could not read again, and what asks for it.
func TestResponsesUnstored(t *testing.T) {
	v := responsesView(t, strings.Replace(responsesRequest, `"model"`, `"store":false,"model"`, 1))
	plain := `{"id":"rs_1","type":"reasoning","summary":[]}`
	hosted := hostedItem("ws_1")
	own := `{"id":"rs_1","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"Hm."}]}`
	withoutID := func(item string) string {
		_, rest, _ := strings.Cut(item, ",")
		return "{" + rest
	}
	cases := []struct{ name, output, want string }{
		{"encrypted", reasoningItem("rs_1", "") + "," + searchItem("s1"), reasoningItem("rs_1", "") + "," + searchItem("s1")},
		{"plain", plain + "," + searchItem("s1"), withoutID(searchItem("s1"))},
		{"null", `{"id":"rs_1","encrypted_content":null,"type":"reasoning","summary":[]},` + searchItem("s1"),
			withoutID(searchItem("s1"))},
		{"with a text of its own", own + "," + searchItem("s1"), own + "," + searchItem("s1")},
		{"several", plain + "," + hosted + "," + plain + "," + messageItem("msg_1", "x") + "," + searchItem("s1") + "," + searchItem("s2"),
			withoutID(messageItem("msg_1", "x")) + "," + withoutID(searchItem("s1")) + "," + withoutID(searchItem("s2"))},
		{"an orphan at the end", searchItem("s1") + "," + reasoningItem("rs_2", ""), searchItem("s1")},
	}
	for _, c := range cases {
		a := Responses.NewAnswer(v, AnswerOptions{})
		a.Begin(testNames{})
		a.Whole([]byte(response("resp_1", "completed", c.output)))
		if got := string(a.End().items); got != c.want {
			t.Errorf("%s: the round is replayed as\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
	// Without a word of the client's, what the upstream says of itself counts.
	stored := responsesView(t, responsesRequest)
	for echo, want := range map[string]string{
		``: plain + "," + searchItem("s1"), `"store":true,`: plain + "," + searchItem("s1"), `"store":false,`: withoutID(searchItem("s1")),
	} {
		a := Responses.NewAnswer(stored, AnswerOptions{})
		a.Begin(testNames{})
		a.Whole([]byte(`{` + echo + response("resp_1", "completed", plain+","+searchItem("s1"))[1:]))
		if got := string(a.End().items); got != want {
			t.Errorf("a round that says %s is replayed as %s", echo, got)
		}
	}
}

// TestResponsesCalls reads calls as servers write them.
func TestResponsesCalls(t *testing.T) {
	v := responsesView(t, responsesRequest)
	cases := []struct{ item, id, name, arguments, replay string }{
		{`{"type":"function_call","id":"fc","call_id":"c","name":"tool_search","arguments":"{\"query\":\"a\"}"}`,
			"c", "tool_search", `{"query":"a"}`, ""},
		{`{"type":"function_call","id":"fc","call_id":"c","name":"tool_search","arguments":"{\"query\":"}`,
			"c", "tool_search", `{"query":`, `{"type":"function_call","id":"fc","call_id":"c","name":"tool_search","arguments":"{}"}`},
		{`{"type":"function_call","id":"fc","call_id":"c","name":"tool_search","arguments":{"query":"a"}}`,
			"c", "tool_search", `{"query":"a"}`,
			`{"type":"function_call","id":"fc","call_id":"c","name":"tool_search","arguments":"{\"query\":\"a\"}"}`},
		{`{"type":"function_call","id":"fc","name":"tool_search","arguments":""}`,
			"fc", "tool_search", ``, `{"call_id":"fc","type":"function_call","id":"fc","name":"tool_search","arguments":"{}"}`},
		{`{"type":"function_call","id":"fc","call_id":null,"name":"tool_search"}`,
			"fc", "tool_search", ``, `{"arguments":"{}","type":"function_call","id":"fc","call_id":"fc","name":"tool_search"}`},
		{`{"type":"function_call","call_id":"c","name":"send","namespace":"mail","arguments":"{}"}`, "c", "mail.send", "{}", ""},
	}
	for _, c := range cases {
		a := Responses.NewAnswer(v, AnswerOptions{})
		a.Begin(testNames{"mail.send": true})
		a.Whole([]byte(response("resp_1", "completed", c.item)))
		r := a.End()
		if len(r.Calls) != 1 {
			t.Errorf("%s: %d calls", c.item, len(r.Calls))
			continue
		}
		if got := r.Calls[0]; got.ID != c.id || got.Name != c.name || string(got.Arguments) != c.arguments || !got.Class.Hidden() {
			t.Errorf("%s is the call %s of %s with %s, class %d", c.item, got.ID, got.Name, got.Arguments, got.Class)
		}
		if c.replay == "" {
			c.replay = c.item
		}
		if string(r.items) != c.replay {
			t.Errorf("%s is replayed as\n%s\nwant\n%s", c.item, r.items, c.replay)
		}
	}
}

// TestResponsesClientCalls tells calls that the client answers from those that the server has answered.
func TestResponsesClientCalls(t *testing.T) {
	v := responsesView(t, responsesRequest)
	cases := []struct {
		output  string
		visible int
	}{
		{`{"type":"custom_tool_call","call_id":"k","name":"shell","input":"ls"}`, 1},
		{`{"type":"local_shell_call","call_id":"k"}`, 1},
		{`{"type":"mcp_approval_request","id":"a"}`, 1},
		{`{"type":"shell_call","call_id":"k"},{"type":"shell_call_output","call_id":"k"}`, 0},
		{hostedItem("ws_1"), 0},
		{`{"type":"program","id":"p","call_id":"k"}`, 0},
	}
	for _, c := range cases {
		a := Responses.NewAnswer(v, AnswerOptions{})
		a.Begin(testNames{})
		a.Whole([]byte(response("resp_1", "completed", c.output+","+searchItem("s1"))))
		hidden, visible := a.End().Hidden()
		if len(hidden) != 1 || visible != c.visible {
			t.Errorf("%s: %d calls are the client's, want %d", c.output, visible, c.visible)
		}
	}
}

// TestResponsesOddStreams reads the streams of servers that leave things out.
func TestResponsesOddStreams(t *testing.T) {
	v := responsesView(t, responsesRequest)
	drop := func(raw []byte, unwanted ...string) []byte {
		var kept []string
		for _, e := range eventsOf(t, raw) {
			if !slices.Contains(unwanted, strings.TrimPrefix(e.Get("type").String(), "response.")) {
				kept = append(kept, strings.Replace(e.Raw, `"sequence_number":`+e.Get("sequence_number").Raw+`,`, "", 1))
			}
		}
		return script(kept...)
	}
	answer := round("resp_2", []string{weatherItem("c1")}, weather(0, "c1"))
	hiddenRound := round("resp_1", []string{searchItem("s1")}, search(0, "s1"))
	sameIndex := bytes.ReplaceAll(round("resp_2", nil, weather(0, "c1"), search(1, "s2"), weather(2, "c2")),
		[]byte(`"output_index":1`), []byte(`"output_index":0`))
	noIndex := bytes.ReplaceAll(bytes.ReplaceAll(bytes.ReplaceAll(round("resp_2", nil, weather(0, "c1"), search(1, "s2"), weather(2, "c2")),
		[]byte(`"output_index":0,`), nil), []byte(`"output_index":1,`), nil), []byte(`"output_index":2,`), nil)
	lateName := bytes.Replace(answer, []byte(`"call_id":"c1","name":"get_weather"`), []byte(`"call_id":"c1","name":""`), 1)
	lateSearch := bytes.Replace(hiddenRound, []byte(`"call_id":"s1","name":"tool_search"`), []byte(`"call_id":"s1","name":""`), 1)
	cases := []struct {
		name   string
		rounds [][]byte
		want   string // ids of the items that the client got
		strict bool
	}{
		{"no item was announced", [][]byte{drop(hiddenRound, "output_item.added"), drop(answer, "output_item.added")}, "fc_c1", false},
		{"no item events at all", [][]byte{
			drop(hiddenRound, "output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"),
			drop(answer, "output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"),
		}, "fc_c1", true},
		{"no arguments deltas", [][]byte{hiddenRound, drop(answer, "function_call_arguments.delta")}, "fc_c1", true},
		{"no item is done", [][]byte{drop(hiddenRound, "output_item.done"), drop(answer, "output_item.done")}, "fc_c1", false},
		{"the name comes late", [][]byte{lateSearch, lateName}, "fc_c1", false},
		{"one index for all", [][]byte{hiddenRound, sameIndex}, "fc_c1,fc_c2", true},
		{"no index", [][]byte{hiddenRound, noIndex}, "fc_c1,fc_c2", false},
		{"a final object without output", [][]byte{hiddenRound, bytes.ReplaceAll(answer, []byte(`"output":[`+weatherItem("c1")+`],`), nil)},
			"fc_c1", true},
		{"a final object that holds more than was streamed", [][]byte{hiddenRound,
			bytes.ReplaceAll(answer, []byte(`"output":[`+weatherItem("c1")), []byte(`"output":[`+reasoningItem("rs_9", "")+","+weatherItem("c1")))},
			"fc_c1", true},
		{"[DONE] at the end", [][]byte{append(bytes.Clone(hiddenRound), "data: [DONE]\n\n"...), append(bytes.Clone(answer), "data: [DONE]\n\n"...)},
			"fc_c1", true},
		{"no blank line at the end", [][]byte{bytes.TrimSpace(hiddenRound), bytes.TrimSpace(answer)}, "fc_c1", true},
		{"carriage returns", [][]byte{bytes.ReplaceAll(hiddenRound, []byte("\n"), []byte("\r\n")),
			bytes.ReplaceAll(answer, []byte("\n"), []byte("\r\n"))}, "fc_c1", true},
		{"no event names", [][]byte{hiddenRound, bytes.ReplaceAll(answer, []byte("event: "), []byte("x: "))}, "fc_c1", true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := play(t, v, AnswerOptions{}, testNames{}, c.rounds...)
			if c.strict {
				checkStream(t, v, p.client)
			}
			events := eventsOf(t, p.client)
			last := events[len(events)-1]
			var ids []string
			for _, id := range last.Get("response.output.#.id").Array() {
				ids = append(ids, id.String())
			}
			if got := strings.Join(ids, ","); got != c.want || last.Get("type").String() != "response.completed" {
				t.Errorf("the client got\n%s", p.client)
			}
			if bytes.Contains(p.client, []byte("tool_search")) || bytes.Contains(p.client, []byte(`\"query\"`)) {
				t.Errorf("the client sees the virtual tool:\n%s", p.client)
			}
			if len(p.rounds) != 1 || !strings.Contains(string(p.rounds[0].items), `"call_id":"s1"`) {
				t.Errorf("the hidden round is not kept: %+v", p.rounds)
			}
		})
	}
}

// TestResponsesEcho gives the client its own words back, and leaves out what the upstream leaves out.
func TestResponsesEcho(t *testing.T) {
	cases := []struct{ name, request, response, want string }{
		{"own instructions", responsesRequest, `{"instructions":"x","output":[]}`, `{"instructions":"Be brief.","output":[]}`},
		{"no instructions", strings.Replace(responsesRequest, `"instructions":"Be brief.",`, "", 1),
			`{"instructions":"x","output":[]}`, `{"instructions":null,"output":[]}`},
		{"nothing echoed", responsesRequest, `{"output":[]}`, `{"output":[]}`},
		{"choice and chain", strings.Replace(responsesRequest, `"tool_choice":"auto"`,
			`"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[]},"previous_response_id":"resp_0"`, 1),
			`{"tool_choice":"auto","previous_response_id":"resp_9","output": [ ]}`,
			`{"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[]},"previous_response_id":"resp_0","output": [ ]}`},
		{"no choice", strings.Replace(responsesRequest, `"tool_choice":"auto",`, "", 1),
			`{"tool_choice":"auto","output":[]}`, `{"tool_choice":"auto","output":[]}`},
	}
	for _, c := range cases {
		v := responsesView(t, c.request)
		a := Responses.NewAnswer(v, AnswerOptions{})
		a.Begin(testNames{})
		a.Whole([]byte(c.response))
		a.End()
		if got := string(a.Body()); got != c.want {
			t.Errorf("%s: the answer is\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

func TestResponsesUsage(t *testing.T) {
	v := responsesView(t, responsesRequest)
	first := round("resp_1", []string{searchItem("s1")}, search(0, "s1"))
	second := bytes.Replace(round("resp_2", []string{messageItem("msg_1", "x")}, messageEvents(0, "msg_1", "x")),
		[]byte(`"input_tokens":100,"output_tokens":10,"total_tokens":110`), []byte(`"input_tokens":150,"output_tokens":20,"total_tokens":170`), 1)
	without := bytes.Replace(second, []byte(`"usage":{"input_tokens":150,"output_tokens":20,"total_tokens":170}`), []byte(`"usage":null`), 1)
	cases := []struct {
		name   string
		rounds [][]byte
		o      AnswerOptions
		want   string
	}{
		{"context", [][]byte{first, second}, AnswerOptions{}, `{"input_tokens":150,"output_tokens":30,"total_tokens":180}`},
		{"billed", [][]byte{first, second}, AnswerOptions{BilledUsage: true}, `{"input_tokens":250,"output_tokens":30,"total_tokens":280}`},
		{"details", [][]byte{first, second}, AnswerOptions{UsageDetails: true}, `{"input_tokens":150,"output_tokens":30,"total_tokens":180,` +
			`"tool_search":{"rounds":2,"input_tokens":250,"output_tokens":30,"cached_tokens":0}}`},
		{"no hidden round", [][]byte{second}, AnswerOptions{UsageDetails: true}, `{"input_tokens":150,"output_tokens":20,"total_tokens":170}`},
		{"none in the last round", [][]byte{first, without}, AnswerOptions{}, `{"input_tokens":100,"output_tokens":10,"total_tokens":110}`},
	}
	for _, c := range cases {
		p := play(t, v, c.o, testNames{}, c.rounds...)
		events := eventsOf(t, p.client)
		if got := events[len(events)-1].Get("response.usage").Raw; got != c.want {
			t.Errorf("%s: the usage is %s, want %s", c.name, got, c.want)
		}
	}
}

// TestResponsesJSONFormat drops the preamble of a hidden round where the whole answer's text must be JSON.
func TestResponsesJSONFormat(t *testing.T) {
	v := responsesView(t, strings.Replace(responsesRequest, `"model"`, `"text":{"format":{"type":"json_object"}},"model"`, 1))
	first := []byte(response("resp_1", "completed", messageItem("msg_1", "Wait.")+","+searchItem("s1")))
	second := []byte(response("resp_2", "completed", messageItem("msg_2", "{}")))
	p := play(t, v, AnswerOptions{}, testNames{}, first, second)
	if got := gjson.GetBytes(p.client, "output.#.id").Raw; got != `["msg_2"]` {
		t.Errorf("the output is %s", got)
	}
	s := Responses.Splices(v, p.rounds, p.results, p.last)
	if len(s) != 1 || !strings.Contains(string(s[0].Within[0].Call), "Wait.") {
		t.Errorf("the hidden round is kept as %+v", s)
	}
}

// TestResponsesDecode gives the client canonical names.
func TestResponsesDecode(t *testing.T) {
	v := responsesView(t, responsesRequest)
	o := AnswerOptions{Decode: func(name string) string { return strings.ReplaceAll(name, "-_-", ".") }}
	hiddenRound := round("resp_1", nil, callEvents(0, "fc_1", "s1", "web-_-search", "{}"))
	answer := round("resp_2", nil, callEvents(0, "fc_2", "c2", "music-_-play", "{}"), callEvents(1, "fc_3", "c3", "a-_-b/c-_-d", "{}"))
	p := play(t, v, o, testNames{"web.search": true}, hiddenRound, answer)
	checkStream(t, v, p.client)
	events := eventsOf(t, p.client)
	if got := events[len(events)-1].Get("response.output.#.name").Raw; got != `["music.play","c-_-d"]` {
		t.Errorf("the client got %s", got)
	}
	if p.last.Calls[0].Name != "music.play" || p.last.Calls[1].Name != "a-_-b.c-_-d" || p.rounds[0].Calls[0].Name != "web.search" {
		t.Errorf("the calls are %v, %v", p.rounds[0].Calls, p.last.Calls)
	}
	if !bytes.Contains(p.rounds[0].items, []byte("web-_-search")) {
		t.Errorf("the round is replayed as %s", p.rounds[0].items)
	}
}

// BenchmarkResponsesDeltas streams text through an answer.
func BenchmarkResponsesDeltas(b *testing.B) {
	v := responsesView(b, responsesRequest)
	pieces := make([]string, 1000)
	for i := range pieces {
		pieces[i] = "word and "
	}
	for _, c := range []struct {
		name   string
		rounds [][]byte
	}{
		{"as it came", [][]byte{round("resp_2", nil, messageEvents(0, "msg_1", pieces...))}},
		{"renumbered", [][]byte{round("resp_1", nil, search(0, "s1")), round("resp_2", nil, reasoningEvents(0, "rs_1", ""),
			search(1, "s2"), messageEvents(2, "msg_1", pieces...), weather(3, "c1"))}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(c.rounds[len(c.rounds)-1])))
			for b.Loop() {
				play(b, v, AnswerOptions{}, testNames{}, c.rounds...)
			}
		})
	}
}

// BenchmarkResponsesRequest reads and composes a request of a long conversation.
func BenchmarkResponsesRequest(b *testing.B) {
	v := responsesView(b, responsesRequest)
	p := play(b, v, AnswerOptions{}, testNames{}, round("resp_1", nil, reasoningEvents(0, "rs_1", ""), search(1, "s1")),
		round("resp_2", nil, weather(0, "c1")))
	splices := Responses.Splices(v, p.rounds, p.results, p.last)
	items := []string{`{"role":"user","content":"weather?"}`}
	for range 200 {
		items = append(items, reasoningItem("rs", "Hm."), weatherItem("c1"),
			`{"type":"function_call_output","call_id":"c1","output":"`+strings.Repeat("cold ", 100)+`"}`)
	}
	body := []byte(strings.Replace(responsesRequest, `{"role":"user","content":"weather?"}`, strings.Join(items, ","), 1))
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		v, err := Responses.View(body, nil)
		if err != nil {
			b.Fatal(err)
		}
		Responses.Compose(v, Projection{Directory: []byte(`"D"`), Splices: splices})
	}
}

// TestResponsesBundles takes bundles of calls apart that hold hidden ones, and leaves the others to the client.
func TestResponsesBundles(t *testing.T) {
	v := responsesView(t, responsesRequest)
	bundle := func(place int, names ...string) []string {
		var uses []string
		for _, name := range names {
			uses = append(uses, `{"recipient_name":"`+name+`","parameters":{"query":"x"}}`)
		}
		return callEvents(place, "fc_b", "b1", bundleName, `{"tool_uses":[`+strings.Join(uses, ",")+`]}`)
	}
	const refusal = `Not carried out: call this tool directly, not through multi_tool_use.parallel.`
	answer := round("resp_2", nil, messageEvents(0, "msg_1", "x"))
	cases := []struct {
		name   string
		rounds [][]byte
		items  int    // that the client gets
		result string // of the bundle
	}{
		{"hidden", [][]byte{round("resp_1", nil, reasoningEvents(0, "rs_1", ""), bundle(1, "tool_search", "tool_search")), answer},
			1, `["R","R"]`},
		{"partly hidden", [][]byte{round("resp_1", nil, bundle(0, "tool_search", "get_weather")), answer}, 1, `["R","` + refusal + `"]`},
		{"the client's", [][]byte{round("resp_1", nil, reasoningEvents(0, "rs_1", ""), bundle(1, "get_weather", "get_weather"))}, 2, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := play(t, v, AnswerOptions{}, testNames{}, c.rounds...)
			checkStream(t, v, p.client)
			events := eventsOf(t, p.client)
			if got := len(events[len(events)-1].Get("response.output").Array()); got != c.items {
				t.Errorf("the client got %d items, want %d:\n%s", got, c.items, p.client)
			}
			if p.body == nil {
				return
			}
			input := gjson.GetBytes(p.body, "input").Array()
			last := input[len(input)-1]
			if got := last.Get("output").String(); got != c.result || last.Get("call_id").String() != "b1" ||
				input[len(input)-2].Get("call_id").String() != "b1" {
				t.Errorf("the round goes back as %s", p.body)
			}
		})
	}
	t.Run("beside a call of the client's", func(t *testing.T) {
		p := play(t, v, AnswerOptions{}, testNames{}, round("resp_1", nil, bundle(0, "tool_search"), weather(1, "c1")))
		checkStream(t, v, p.client)
		s := Responses.Splices(v, p.rounds, p.results, p.last)
		if len(s) != 1 || len(s[0].Within) != 1 || gjson.GetBytes(s[0].Within[0].Result, "output").String() != `["R"]` {
			t.Errorf("the hidden bundle is kept as %+v", s)
		}
	})
}
