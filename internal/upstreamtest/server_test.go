package upstreamtest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

const (
	chatTool      = `{"type":"function","function":{"name":"a","parameters":{"type":"object"}}}`
	flatTool      = `{"type":"function","name":"a","parameters":{"type":"object"}}`
	assistantCall = `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"a","arguments":"{}"}}]}`
	chatUser      = `{"role":"user","content":"x"}`
)

func post(t *testing.T, s *Server, path, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var all strings.Builder
	buffer := make([]byte, 4096)
	for {
		n, err := response.Body.Read(buffer)
		all.Write(buffer[:n])
		if err != nil {
			return response.StatusCode, all.String()
		}
	}
}

func TestWhatTheRealAPIRefusesIsRefusedByName(t *testing.T) {
	chat := func(messages, tools string) string {
		return `{"model":"m","messages":[` + messages + `],"tools":[` + tools + `]}`
	}
	for rule, test := range map[string]struct{ path, body string }{
		"json":                   {"/v1/chat/completions", `{"model":`},
		"tools-empty":            {"/v1/chat/completions", chat(chatUser, "")},
		"tool-name-twice":        {"/v1/chat/completions", chat(chatUser, chatTool+","+chatTool)},
		"tool-name":              {"/v1/chat/completions", chat(chatUser, strings.Replace(chatTool, `"a"`, `"a b"`, 1))},
		"tool-result-missing":    {"/v1/chat/completions", chat(chatUser+","+assistantCall, chatTool)},
		"tool-result-orphan":     {"/v1/chat/completions", chat(chatUser+`,{"role":"tool","tool_call_id":"c9","content":"x"}`, chatTool)},
		"choice-unknown":         {"/v1/chat/completions", `{"model":"m","messages":[` + chatUser + `],"tools":[` + chatTool + `],"tool_choice":{"type":"function","function":{"name":"b"}}}`},
		"choice-without-tools":   {"/v1/chat/completions", `{"model":"m","messages":[` + chatUser + `],"tool_choice":"auto"}`},
		"output-without-call":    {"/v1/responses", `{"model":"m","input":[{"type":"function_call_output","call_id":"c9","output":"x"}],"tools":[` + flatTool + `]}`},
		"call-without-output":    {"/v1/responses", `{"model":"m","input":[{"role":"user","content":"x"},{"type":"function_call","call_id":"c1","name":"a","arguments":"{}"}],"tools":[` + flatTool + `]}`},
		"previous-response":      {"/v1/responses", `{"model":"m","previous_response_id":"resp_gone","input":"x"}`},
		"reasoning-without-item": {"/v1/responses", `{"model":"m","input":[{"role":"user","content":"x"},{"type":"reasoning","id":"rs_9","summary":[],"encrypted_content":"E"}]}`},
		"duplicate-key":          {"/v1/chat/completions", `{"model":"m","model":"n","messages":[` + chatUser + `]}`},
	} {
		t.Run(rule, func(t *testing.T) {
			s, err := NewServer(Script{Rules: Rules{Names: true}, Respond: func(Request) Answer { return Reply(Text("ok")) }})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			status, body := post(t, s, test.path, test.body)
			broken := s.Violations()
			if len(broken) == 0 || status < 400 || gjson.Get(body, "error.message").String() == "" {
				t.Fatalf("status %d %s, violations %v", status, body, broken)
			}
			found := false
			for _, v := range broken {
				found = found || v.Rule == rule
			}
			if !found {
				t.Errorf("it broke %v, want %s", broken, rule)
			}
		})
	}
}

func TestWhatTheRealAPITakesIsAnsweredInItsForm(t *testing.T) {
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"model":"m","messages":[` + chatUser + "," + assistantCall + `,{"role":"tool","tool_call_id":"c1","content":"x"}],"tools":[` + chatTool + `]%s}`,
		"/v1/responses":        `{"model":"m","input":"x","tools":[` + flatTool + `]%s}`,
	} {
		for _, extra := range []string{"", `,"stream":true`} {
			s := New(t, Reply(Text("hello"), Call("c2", "a", "{}")))
			status, got := post(t, s, path, strings.Replace(body, "%s", extra, 1))
			accumulated := string(AccumulateChat([]byte(got)))
			if path == "/v1/responses" {
				accumulated = string(AccumulateResponses([]byte(got)))
			}
			if status != 200 || !strings.Contains(accumulated, "hello") || !strings.Contains(accumulated, `"name":"a"`) || len(s.Violations()) > 0 {
				t.Errorf("%s%s: %d %s; accumulated %s; %v", path, extra, status, got, accumulated, s.Violations())
			}
		}
	}
}
