package app

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tool-search-proxy/internal/upstreamtest"
)

// The steps of a scripted ask. The upstream plays them one a round; what the client must see of them is known beforehand.
const (
	stepSearch   = 'S' // a search: hidden
	stepUnloaded = 'U' // a call of a tool that is not loaded: hidden
	stepSpeak    = 'T' // a few words, and a search: the words are seen
	stepMixed    = 'M' // a search beside a client's call: the call is seen
	stepCall     = 'C' // a client's call
	stepPair     = 'P' // two client's calls
	stepWritten  = 'W' // a search that is written as text: hidden
	stepEnd      = 'E' // the answer
)

// newPlan draws the steps of one ask. A rejected call comes once at most, before anything has loaded its tool.
func newPlan(random *rand.Rand, steps string) string {
	var plan strings.Builder
	if random.IntN(4) == 0 {
		plan.WriteByte(stepUnloaded)
	}
	for range random.IntN(5) {
		plan.WriteByte(steps[random.IntN(len(steps))])
	}
	plan.WriteByte(stepEnd)
	return plan.String()
}

// visible returns what the client must see of the plan from a step on: text, calls, and the step behind.
func visible(conversation string, plan string, step int) (text string, calls []string, next int) {
	for ; step < len(plan); step++ {
		switch plan[step] {
		case stepSpeak:
			text += fmt.Sprintf("words %d. ", step)
		case stepMixed, stepCall:
			return text, []string{callID(conversation, step, 1)}, step + 1
		case stepPair:
			return text, []string{callID(conversation, step, 1), callID(conversation, step, 2)}, step + 1
		case stepEnd:
			return text + "the end of " + conversation, nil, step + 1
		}
	}
	return text, calls, step
}

func callID(conversation string, step, n int) string {
	return fmt.Sprintf("call_%s_%d_%d", conversation, step, n)
}

var (
	soakPlan = regexp.MustCompile(`ask (\w+) \[(\w+)\] with ([\w.]+) (\w+)`)
	soakStep = regexp.MustCompile(`call_(\w+)_(\d+)_\d+`)
)

// playSoak answers a request by the plan in its last user message. Which step is next, the calls that the request holds tell.
func playSoak(r upstreamtest.Request) upstreamtest.Answer {
	body := string(r.Body)
	asks := soakPlan.FindAllStringSubmatch(body, -1)
	if asks == nil {
		return upstreamtest.JSON(500, `{"error":{"message":"no plan"}}`)
	}
	ask := asks[len(asks)-1]
	conversation, plan, step := ask[1], ask[2], 0
	for _, made := range soakStep.FindAllStringSubmatch(body, -1) {
		if n, err := strconv.Atoi(made[2]); err == nil && made[1] == conversation {
			step = max(step, n+1)
		}
	}
	if step >= len(plan) {
		return upstreamtest.JSON(500, `{"error":{"message":"the plan is over"}}`)
	}
	search := func(n int) upstreamtest.TurnOption {
		return upstreamtest.Call(callID(conversation, step, n), "tool_search", fmt.Sprintf(`{"query":"select:%s%02d"}`, ask[3], 10+step))
	}
	name := "read_file" // or what was loaded last
	if loaded := strings.LastIndexAny(plan[:step], "STMW"); loaded >= 0 && ask[4] == "loaded" {
		name = strings.ReplaceAll(fmt.Sprintf("%s%02d", ask[3], 10+loaded), ".", "-_-")
	}
	read := func(n int) upstreamtest.TurnOption {
		return upstreamtest.Call(callID(conversation, step, n), name, fmt.Sprintf(`{"step":%d}`, step))
	}
	var turn []upstreamtest.TurnOption
	thinks := (len(plan) + step) % 3
	if plan[step] == stepWritten {
		thinks = -1 // the strict upstream would pair the thought with a text that is no text any more
	}
	switch thinks {
	case 0:
		turn = append(turn, upstreamtest.Reasoning(fmt.Sprintf("thought %d. ", step)))
	case 1:
		turn = append(turn, upstreamtest.Reasoning("")) // Responses: an item without a summary
	}
	switch plan[step] {
	case stepSearch:
		turn = append(turn, search(0))
	case stepUnloaded:
		turn = append(turn, upstreamtest.Call(callID(conversation, step, 0), strings.ReplaceAll(ask[3], ".", "-_-")+"39", `{}`))
	case stepWritten:
		turn = append(turn, upstreamtest.Text(fmt.Sprintf(`{"name":"tool_search","arguments":{"query":"select:%s%02d","note":"%s"}}`,
			ask[3], 10+step, callID(conversation, step, 0))))
	case stepSpeak:
		turn = append(turn, upstreamtest.Text(fmt.Sprintf("words %d. ", step)), search(0))
	case stepMixed:
		turn = append(turn, search(0), read(1))
	case stepCall:
		turn = append(turn, read(1))
	case stepPair:
		turn = append(turn, read(1), read(2))
	case stepEnd:
		turn = append(turn, upstreamtest.Text("the end of "+conversation))
	}
	// Streams come in pieces of all sizes.
	return upstreamtest.Reply(turn...).Paced(upstreamtest.Pace{Chunk: []int{0, upstreamtest.ByEvent, 13, 200}[(len(plan)*3+step)%4]})
}

// soaker is one client with its own history.
type soaker struct {
	rig       *rig
	urls      []string // of proxies that know nothing of each other; the first one alone for clients that need its memory
	responses bool
	chains    bool // Responses: the history is the upstream's, and found by the id of the last response
	random    *rand.Rand
	steps     string   // that its asks are made of
	prefix    string   // of the names of its tools
	history   []string // what the next request sends
	ask       string
	previous  string
	tools     string
}

// send has one exchange and returns the text and the ids of the calls; the turn joins the history.
func (s *soaker) send() (text string, calls []string, err error) {
	stream := s.random.IntN(2) == 0
	url := s.urls[0]
	if s.responses && !s.chains && s.random.IntN(8) == 0 {
		url = s.urls[s.random.IntN(len(s.urls))] // as after a restart
	}
	path, body := chatPath, fmt.Sprintf(`{"model":"m","stream":%v,"messages":[%s],"tools":%s}`, stream, strings.Join(s.history, ","), s.tools)
	switch {
	case s.chains:
		path, body = responsesPath, fmt.Sprintf(`{"model":"m","instructions":"%s","stream":%v,"previous_response_id":%s,"input":[%s],"tools":%s}`,
			s.ask, stream, s.previous, strings.Join(s.history, ","), s.tools)
		s.history = nil
	case s.responses:
		path, body = responsesPath, fmt.Sprintf(`{"model":"m","stream":%v,"store":false,"include":["reasoning.encrypted_content"],"input":[%s],"tools":%s}`, stream, strings.Join(s.history, ","), s.tools)
	}
	if s.random.IntN(10) == 0 {
		s.rig.postTo(url+path, body) // and the answer is lost
	}
	a := s.rig.postTo(url+path, body)
	if a.status != 200 || a.err != nil {
		return "", nil, fmt.Errorf("status %d, %v: %s", a.status, a.err, a.body)
	}
	if strings.Contains(a.body, "tool_search\"") && !strings.Contains(a.body, `"tool_search":{"rounds"`) || strings.Contains(a.body, "available_deferred") {
		return "", nil, fmt.Errorf("the search shows: %s", a.body)
	}
	if !s.responses {
		message := a.get("choices.0.message").Raw
		if stream {
			message = string(upstreamtest.AccumulateChat([]byte(a.body)))
		}
		s.history = append(s.history, message)
		m := gjson.Parse(message)
		m.Get("tool_calls").ForEach(func(_, call gjson.Result) bool {
			calls = append(calls, call.Get("id").String())
			if name := call.Get("function.name").Raw; !strings.Contains(s.tools, `"name":`+name) {
				err = fmt.Errorf("a tool %s is called that the client does not have", name)
			}
			return true
		})
		return m.Get("content").String(), calls, err
	}
	output := a.get("output")
	snapshots := []gjson.Result{gjson.Parse(a.body)}
	if stream {
		output = gjson.ParseBytes(upstreamtest.AccumulateResponses([]byte(a.body)))
		snapshots = nil
		for _, data := range a.data() {
			if response := gjson.Get(data, "response"); response.Exists() {
				snapshots = append(snapshots, response)
			}
		}
	}
	for _, response := range snapshots {
		if response.Get("tools").Raw != s.tools {
			return "", nil, fmt.Errorf("the echo of the tools is not the client's: %.200s", response.Get("tools").Raw)
		}
	}
	// The id of any of the snapshots may be chained on.
	s.previous = snapshots[s.random.IntN(len(snapshots))].Get("id").Raw
	output.ForEach(func(_, item gjson.Result) bool {
		if !s.chains {
			s.history = append(s.history, item.Raw)
		}
		switch item.Get("type").String() {
		case "message":
			text += item.Get("content.0.text").String()
		case "function_call":
			calls = append(calls, item.Get("call_id").String())
			if name := item.Get("name").Raw; !strings.Contains(s.tools, `"name":`+name) {
				err = fmt.Errorf("a tool %s is called that the client does not have", name)
			}
		}
		return true
	})
	return text, calls, err
}

func (s *soaker) result(id string) {
	if s.responses {
		s.history = append(s.history, `{"type":"function_call_output","call_id":"`+id+`","output":"done"}`)
		return
	}
	s.history = append(s.history, `{"role":"tool","tool_call_id":"`+id+`","content":"done"}`)
}

// converse has several asks, and returns what was not as it must be.
func (s *soaker) converse(name string) error {
	for n := range 1 + s.random.IntN(3) {
		conversation, plan := fmt.Sprintf("%sask%d", name, n), newPlan(s.random, s.steps)
		calls := "loaded"
		if s.responses && !s.chains {
			calls = "first" // a proxy that has forgotten the search would not let the loaded tool through
		}
		s.ask = fmt.Sprintf("ask %s [%s] with %s %s", conversation, plan, s.prefix, calls)
		s.history = append(s.history, `{"role":"user","content":"`+s.ask+`"}`)
		for step := 0; step < len(plan); {
			wantText, wantCalls, next := visible(conversation, plan, step)
			text, calls, err := s.send()
			if err != nil {
				return fmt.Errorf("%s step %d of %s: %w", conversation, step, plan, err)
			}
			if text != wantText || !slices.Equal(calls, wantCalls) {
				return fmt.Errorf("%s step %d of %s: the client sees %q %q, must see %q %q", conversation, step, plan, text, calls, wantText, wantCalls)
			}
			for _, id := range calls {
				s.result(id)
			}
			step = next
		}
	}
	return nil
}

// TestSoak has many conversations at once through the whole proxy, in front of the strict upstream, and compares what each
// client sees with what it must see. SOAK sets how many.
func TestSoak(t *testing.T) {
	conversations := 150
	if n, err := strconv.Atoi(os.Getenv("SOAK")); err == nil {
		conversations = n
	}
	server, err := upstreamtest.NewServer(upstreamtest.Script{Respond: playSoak, Rules: upstreamtest.Rules{ReasoningContent: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	r := newRig(t, nil)
	proxies := func(settings ...string) []string {
		settings = append([]string{"skills.tool_search_always_loaded=read_file"}, settings...)
		_, one, _ := startProxy(t, server.URL+"/v1", settings)
		_, other, _ := startProxy(t, server.URL+"/v1", settings)
		return []string{one, other}
	}
	const usual = "STMCP"
	kinds := []struct {
		urls          []string
		steps, prefix string
	}{
		{proxies(), usual, "tool_"},
		{proxies("skills.tool_search_scope=conversation", "skills.tool_search_usage=billed"), usual, "tool_"},
		{proxies("skills.tool_search_keep_used=true", "skills.tool_search_response_id=first"), usual, "tool_"},
		{proxies("skills.tool_search_text_calls=true"), usual + "WW", "tool_"},
		{proxies("skills.tool_name_dot_separator=-_-"), usual, "server.tool_"},
	}
	// Large tools go other ways than small ones.
	list := func(one func(string) string, prefix, words string) string {
		tools := one("read_file")
		for i := range 40 {
			tools += "," + strings.Replace(one(fmt.Sprintf("%s%02d", prefix, i)), `","parameters"`, words+`","parameters"`, 1)
		}
		return "[" + tools + "]"
	}
	start := time.Now()
	numbers := make(chan int)
	failures := make(chan error, conversations)
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for i := range numbers {
				kind := kinds[i/8%len(kinds)]
				s := &soaker{rig: r, urls: kind.urls, responses: i%2 == 1, chains: i%4 == 3, random: rand.New(rand.NewPCG(uint64(i), 7)),
					steps: kind.steps, prefix: kind.prefix, previous: "null"}
				one, words := function, strings.Repeat(" and more", i/4%2*40)
				if s.responses {
					one = flat
				}
				s.tools = list(one, s.prefix, words)
				if err := s.converse(fmt.Sprint("c", i)); err != nil {
					failures <- err
				}
			}
		})
	}
	for i := range conversations {
		numbers <- i
		if i > 0 && i%1000 == 0 {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			t.Logf("%d conversations after %v, heap %d MiB, %d goroutines", i, time.Since(start).Round(time.Second), m.HeapAlloc>>20, runtime.NumGoroutine())
		}
	}
	close(numbers)
	group.Wait()
	close(failures)
	n := 0
	for err := range failures {
		if n++; n <= 5 {
			t.Error(err)
		}
	}
	forgotten := 0
	for _, violation := range server.Violations() {
		switch violation.Rule {
		case "reasoning-without-item", "item-without-reasoning": // what a proxy that has forgotten must find out
			forgotten++
		default:
			if n++; n <= 5 {
				t.Error(violation)
			}
		}
	}
	if forgotten == 0 {
		t.Error("no proxy has forgotten anything")
	}
	t.Logf("%d conversations, %d not as they must be, %v", conversations, n, time.Since(start).Round(time.Millisecond))
}
