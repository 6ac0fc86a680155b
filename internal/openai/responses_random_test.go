package openai

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// generated is a random answer: its rounds, and the items that a true history holds.
type generated struct {
	rounds  [][]byte
	history []string // all items and results, those of the client's own calls included
}

// generate makes an answer of several hidden rounds and one that may be mixed.
func generate(random *rand.Rand) generated {
	var g generated
	serial := 0
	hiddenRounds := random.Intn(3)
	for n := 0; n <= hiddenRounds; n++ {
		last := n == hiddenRounds
		var items, calls, clientCalls []string
		var events [][]string
		add := func(item string, e []string) {
			items = append(items, item)
			events = append(events, e)
		}
		for range 1 + random.Intn(5) {
			serial++
			id := fmt.Sprint(serial)
			place := len(items)
			switch random.Intn(7) {
			case 0:
				add(reasoningItem("rs_"+id, ""), reasoningEvents(place, "rs_"+id, ""))
			case 1:
				add(reasoningItem("rs_"+id, "Hm."), reasoningEvents(place, "rs_"+id, "Hm."))
			case 2:
				add(messageItem("msg_"+id, "Word "+id+"."), messageEvents(place, "msg_"+id, "Word ", id, "."))
			case 3:
				add(hostedItem("ws_"+id), hosted(place, "ws_"+id))
			case 4:
				if last {
					add(weatherItem("c"+id), weather(place, "c"+id))
					clientCalls = append(clientCalls, "c"+id)
				}
			default:
				add(searchItem("s"+id), search(place, "s"+id))
				calls = append(calls, "s"+id)
			}
		}
		// A hidden round ends with a hidden call, the last one with an item that the client sees.
		serial++
		id := fmt.Sprint(serial)
		if !last {
			add(searchItem("s"+id), search(len(items), "s"+id))
			calls = append(calls, "s"+id)
		} else {
			add(weatherItem("c"+id), weather(len(items), "c"+id))
			clientCalls = append(clientCalls, "c"+id)
		}
		g.rounds = append(g.rounds, round(fmt.Sprintf("resp_%d", n+1), items, events...))
		g.history = append(g.history, items...)
		for _, id := range append(clientCalls, calls...) {
			g.history = append(g.history, resultItem(id))
		}
	}
	return g
}

func resultItem(id string) string {
	return `{"type":"function_call_output","call_id":"` + id + `","output":"R"}`
}

// TestResponsesRandomAnswers plays random answers: the client's stream must be one that an upstream could have sent, and
// a later request, made of what the client saw, must reach the upstream with everything that happened, in its order.
func TestResponsesRandomAnswers(t *testing.T) {
	v := responsesView(t, responsesRequest)
	for seed := range int64(500) {
		g := generate(rand.New(rand.NewSource(seed)))
		p := play(t, v, AnswerOptions{}, testNames{}, g.rounds...)
		checkStream(t, v, p.client)
		events := eventsOf(t, p.client)
		input := []string{`{"role":"user","content":"weather?"}`}
		var calls []string
		for _, item := range events[len(events)-1].Get("response.output").Array() {
			if name := item.Get("name").String(); name == "tool_search" {
				t.Errorf("seed %d: the client sees the virtual tool", seed)
			} else if name != "" {
				calls = append(calls, item.Get("call_id").String())
			}
			input = append(input, item.Raw)
		}
		for _, id := range calls {
			input = append(input, resultItem(id))
		}
		splices := Responses.Splices(v, p.rounds, p.results, p.last)
		want := append(input[:1:1], g.history...)
		for _, ids := range []bool{true, false} {
			sent := slices.Clone(input)
			if !ids {
				for i := range sent {
					sent[i] = string(withoutMember([]byte(sent[i]), "id"))
				}
			}
			body := `{"input":[` + strings.Join(sent, ",") + `],` + oneTool + `}`
			got := Responses.Compose(responsesView(t, body), Projection{Splices: splices})
			var have []string
			for i, item := range gjson.GetBytes(got, "input").Array() {
				have = append(have, item.Raw)
				if !ids && i < len(want) {
					have[i], want[i] = string(withoutMember([]byte(have[i]), "id")), string(withoutMember([]byte(want[i]), "id"))
				}
			}
			if !slices.Equal(have, want) {
				t.Fatalf("seed %d, ids %t: the upstream gets\n%s\nwant\n%s\nof\n%s", seed, ids, strings.Join(have, "\n"),
					strings.Join(want, "\n"), summary(t, p.client))
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
