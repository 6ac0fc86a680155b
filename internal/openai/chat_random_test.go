package openai

import (
	"bytes"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// labels are the ways in which servers number the calls of a stream.
var labels = map[string]func(n int) string{
	"dense":   func(n int) string { return fmt.Sprint(n) },
	"from 1":  func(n int) string { return fmt.Sprint(n + 1) },
	"all 0":   func(int) string { return "0" },
	"missing": func(int) string { return "" },
}

// randomRound makes up one round: its parts, what a client is to see of it, and the message that goes back upstream.
type randomRound struct {
	stream             []byte
	content, reasoning string
	visible            []clientCall
	replayed           string // content, reasoning and calls
	hidden             int
}

func makeRound(random *rand.Rand, id string, hides bool) randomRound {
	var r randomRound
	var parts []string
	names := []string{"read_file", "read_files", "tool_search_all", "unheard_of"}
	if hides {
		names = []string{"tool_search", "get_weather", "send_mail"}
	}
	if random.Intn(2) == 0 {
		parts = append(parts, role)
	}
	for range random.Intn(3) {
		r.reasoning += "hm "
		parts = append(parts, `{"reasoning_content":"hm "}`)
	}
	for range random.Intn(3) {
		r.content += "wörd "
		parts = append(parts, `{"content":"w\u00f6rd "}`)
	}
	r.replayed = r.content + "|" + r.reasoning
	styles := []string{"dense", "from 1", "all 0", "missing"}
	label := labels[styles[random.Intn(len(styles))]]
	calls := random.Intn(4)
	if hides {
		calls++
	}
	for n := range calls {
		call := clientCall{fmt.Sprint(id, "_", n), names[random.Intn(len(names))], fmt.Sprintf(`{"n":%d,"s":"a\"b"}`,
			n)}
		if !hides && random.Intn(4) == 0 {
			call.name = "tool_search"
		}
		r.replayed += "|" + call.id + " " + call.name + " " + call.arguments
		if deferredNames(weatherAndMail).Classify(call.name) == Visible {
			r.visible = append(r.visible, call)
		} else {
			r.hidden++
		}
		name, arguments := call.name, call.arguments
		switch random.Intn(3) {
		case 0: // whole
			parts = append(parts, callDelta(label(n), call.id, name, arguments))
			continue
		case 1: // the name in two pieces
			if index := label(n); index != "" {
				cut := 1 + random.Intn(len(name)-1)
				parts = append(parts, callDelta(index, call.id, name[:cut], ""), callDelta(index, "", name[cut:], ""))
				break
			}
			fallthrough
		default:
			parts = append(parts, callDelta(label(n), call.id, name, ""))
		}
		for len(arguments) > 0 {
			cut := 1 + random.Intn(len(arguments))
			piece := `"function":{"arguments":` + string(AppendString(nil, arguments[:cut])) + `}`
			if index := label(n); index != "" {
				piece = `"index":` + index + `,` + piece
			}
			parts = append(parts, `{"tool_calls":[{`+piece+`}]}`)
			arguments = arguments[cut:]
		}
	}
	reason := "=stop"
	if calls > 0 {
		reason = "=tool_calls"
	}
	parts = append(parts, reason)
	if random.Intn(2) == 0 {
		parts = append(parts, "#1")
	}
	if random.Intn(4) > 0 {
		parts = append(parts, ".")
	}
	r.stream = chunks(id, parts...)
	if random.Intn(3) == 0 {
		r.stream = bytes.ReplaceAll(r.stream, []byte("\n"), []byte("\r\n"))
	}
	return r
}

// TestChatRandomAnswers plays random answers of up to three hidden rounds: the client sees the texts of all rounds and the
// visible calls of the last, and the upstream gets back what it said.
func TestChatRandomAnswers(t *testing.T) {
	for seed := range 1000 {
		random := rand.New(rand.NewSource(int64(seed)))
		var rounds [][]byte
		var want chatClient
		var replayed []string
		for n := range random.Intn(4) {
			r := makeRound(random, fmt.Sprint("h", n), true)
			rounds = append(rounds, r.stream)
			want.content += r.content
			want.reasoning += r.reasoning
			replayed = append(replayed, r.replayed)
		}
		last := makeRound(random, "l1", false)
		if len(last.visible) == 0 && last.hidden > 0 {
			continue // that would be a further hidden round
		}
		rounds = append(rounds, last.stream)
		want.content += last.content
		want.reasoning += last.reasoning
		want.calls = last.visible
		for _, textCalls := range []bool{false, true} {
			o := AnswerOptions{TextCalls: textCalls, Known: knownTools("tool_search")}
			v := chatView(t, chatRequest)
			p := playChat(t, v, o, weatherAndMail, random.Intn(2) == 0, rounds...)
			got := readChat(t, p.client)
			if got.content != want.content || got.reasoning != want.reasoning || got.callList() != want.callList() ||
				got.done != 1 || got.finish == "" {
				t.Errorf("seed %d: the client read\n%+v\nwant\n%+v", seed, got, want)
			}
			var back []string
			for _, m := range gjson.GetBytes(p.body, "messages").Array() {
				if m.Get("role").String() != "assistant" {
					continue
				}
				s := m.Get("content").String() + "|" + m.Get("reasoning_content").String()
				for _, call := range m.Get("tool_calls").Array() {
					s += "|" + call.Get("id").String() + " " + call.Get("function.name").String() + " " +
						call.Get("function.arguments").String()
				}
				back = append(back, s)
			}
			if strings.Join(back, "\n") != strings.Join(replayed, "\n") {
				t.Errorf("seed %d: the upstream got back\n%s\nwant\n%s", seed, strings.Join(back, "\n"),
					strings.Join(replayed, "\n"))
			}
			checkReplay(t, seed, v, p, got)
			if t.Failed() {
				t.Fatalf("the rounds were\n%s", bytes.Join(rounds, []byte("---\n")))
			}
		}
	}
}

// checkReplay sends the answer back as a client does: the hidden rounds stand in front of it, every call has its result
// behind its message, and no text is there twice.
func checkReplay(t *testing.T, seed int, v *View, p playedChat, got chatClient) {
	t.Helper()
	splices := Chat.Splices(v, p.rounds, p.results, p.last)
	if len(splices) == 0 || len(got.calls) == 0 {
		return
	}
	var calls []string
	message := AppendString([]byte(`{"role":"assistant","content":`), got.content)
	results := ""
	for _, c := range got.calls {
		calls = append(calls, `{"id":"`+c.id+`","type":"function","function":{"name":"`+c.name+`",`+
			`"arguments":`+string(AppendString(nil, c.arguments))+`}}`)
		results += `,{"role":"tool","tool_call_id":"` + c.id + `","content":"r"}`
	}
	sent := string(message) + `,"tool_calls":[` + strings.Join(calls, ",") + `]}` + results
	next := chatView(t, strings.Replace(chatRequest, `"weather?"}`, `"weather?"},`+sent, 1))
	messages := gjson.GetBytes(Chat.Compose(next, Projection{Splices: splices}), "messages").Array()
	content, assistants := "", 0
	open := map[string]bool{}
	for _, m := range messages[2:] {
		switch m.Get("role").String() {
		case "assistant":
			if len(open) > 0 {
				t.Errorf("seed %d: calls without a result: %v", seed, open)
			}
			assistants++
			content += m.Get("content").String()
			for _, id := range m.Get("tool_calls.#.id").Array() {
				open[id.String()] = true
			}
		case "tool":
			id := m.Get("tool_call_id").String()
			if !open[id] {
				t.Errorf("seed %d: a result of no call: %s", seed, m.Raw)
			}
			delete(open, id)
		}
	}
	if len(open) > 0 || assistants != len(p.rounds)+1 || strings.TrimSpace(content) != strings.TrimSpace(got.content) {
		t.Errorf("seed %d: the next request has %d assistant messages with the text %q, open %v", seed, assistants,
			content, open)
	}
}
