// Command demo shows one conversation through the proxy without a key: a client with 120 tools, the proxy as it is
// shipped, and a scripted stand-in for a language model. It prints what the model saw, what was searched, and the bytes and
// tokens before and after.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"tool-search-proxy/internal/app"
	"tool-search-proxy/internal/config"
	"tool-search-proxy/internal/openai"
	"tool-search-proxy/internal/telemetry"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

const question = "Put lunch with Ada into my calendar, tomorrow at noon."

// run has the conversation and tells of it.
func run(ctx context.Context, out io.Writer) error {
	scripted := &model{
		query: "create calendar event", tool: "calendar_create_event",
		arguments: `{"id":"lunch","title":"Lunch with Ada","start":"2030-01-02T12:00:00Z"}`,
		answer:    "Done: lunch with Ada is in your calendar for tomorrow at noon.",
	}
	upstream := httptest.NewServer(scripted)
	defer upstream.Close()
	proxy, err := start(ctx, upstream.URL)
	if err != nil {
		return err
	}
	defer proxy.Close()
	sidecar := httptest.NewServer(proxy.Clients)
	defer sidecar.Close()

	tools := makeTools()
	fmt.Fprintf(out, "The client sends %d tools with each request; the model behind the proxy is a script.\n\n", gjson.GetBytes(tools, "#").Int())
	fmt.Fprintf(out, "user       %s\n", question)
	history := `{"role":"user","content":` + string(openai.AppendString(nil, question)) + `}`
	sent := 0
	for {
		body := []byte(`{"model":"demo","stream":true,"messages":[` + history + `],"tools":` + string(tools) + `}`)
		sent++
		before := len(scripted.calls)
		answer, err := ask(ctx, sidecar.URL, body)
		if err != nil {
			return err
		}
		for i, call := range scripted.calls[before:] {
			describe(out, len(body), call, before+i+1)
		}
		if answer.text != "" {
			fmt.Fprintf(out, "\nassistant  %s\n", answer.text)
			break
		}
		fmt.Fprintf(out, "client     is asked to run %s, and runs it\n", answer.name)
		history += `,{"role":"assistant","content":null,"tool_calls":[{"id":` + string(openai.AppendString(nil, answer.id)) +
			`,"type":"function","function":{"name":` + string(openai.AppendString(nil, answer.name)) + `,"arguments":` +
			string(openai.AppendString(nil, answer.arguments)) + `}}]},{"role":"tool","tool_call_id":` +
			string(openai.AppendString(nil, answer.id)) + `,"content":"{\"created\":\"evt_1\"}"}`
	}
	summarize(out, tools, sent, scripted.calls)
	return nil
}

// start puts the proxy together in front of an upstream, with tool search on and nothing else configured.
func start(ctx context.Context, upstream string) (*app.App, error) {
	flags := pflag.NewFlagSet("demo", pflag.ContinueOnError)
	config.AddFlags(flags)
	if err := flags.Parse([]string{"--config", os.DevNull, "--upstream", upstream + "/v1", "--tool-search"}); err != nil {
		return nil, err
	}
	c, err := config.Load(flags)
	if err != nil {
		return nil, err
	}
	return app.New(ctx, app.Options{Config: config.NewLive(c, flags, zap.NewNop(), nil), Log: zap.NewNop(), Version: "demo"})
}

// clientAnswer is what the client makes of one streamed answer.
type clientAnswer struct{ text, id, name, arguments string }

// ask sends one request as a client does, and reads the streamed answer.
func ask(ctx context.Context, base string, body []byte) (clientAnswer, error) {
	var answer clientAnswer
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return answer, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		return answer, fmt.Errorf("status %d: %s", response.StatusCode, text)
	}
	events := openai.NewEventReader(response.Body, 1<<20)
	for {
		event, err := events.Next()
		if err == io.EOF {
			return answer, nil
		}
		if err != nil {
			return answer, err
		}
		delta := gjson.GetBytes(event.Data, "choices.0.delta")
		answer.text += delta.Get("content").String()
		call := delta.Get("tool_calls.0")
		answer.id += call.Get("id").String()
		answer.name += call.Get("function.name").String()
		answer.arguments += call.Get("function.arguments").String()
	}
}

// describe tells of one round as the model saw it.
func describe(out io.Writer, client int, call modelCall, number int) {
	request := gjson.ParseBytes(call.body)
	var names []string
	request.Get("tools.#.function.name").ForEach(func(_, name gjson.Result) bool {
		names = append(names, name.String())
		return true
	})
	directory := request.Get("messages.0.content").String()
	_, listed, _ := strings.Cut(directory, "<available_deferred_tools>")
	fmt.Fprintf(out, "\nround %d    the client's request has %d bytes, the model saw %d: %d tools, and a directory of %d names\n", number, client,
		len(call.body), len(names), max(strings.Count(listed, "\n")-1, 0))
	fmt.Fprintf(out, "           tools: %s\n", strings.Join(names, ", "))
	if last := request.Get("messages|@reverse|0"); last.Get("role").String() == "tool" {
		fmt.Fprintf(out, "           result: %s\n", last.Get("content"))
	}
	fmt.Fprintf(out, "model      %s\n", call.moved)
}

// summarize compares with what the same conversation costs without the proxy.
func summarize(out io.Writer, tools []byte, requests int, calls []modelCall) {
	before, beforeTokens := requests*len(tools), requests*telemetry.CountTokens(tools)
	after, afterTokens := 0, 0
	for _, call := range calls {
		seen := gjson.GetBytes(call.body, "tools").Raw
		directory := gjson.GetBytes(call.body, "messages.0.content").Raw
		after += len(seen) + len(directory)
		afterTokens += telemetry.CountTokens([]byte(seen)) + telemetry.CountTokens([]byte(directory))
	}
	fmt.Fprintf(out, "\nTools that the model read       without      with the proxy\n")
	fmt.Fprintf(out, "  rounds                     %10d %12d\n", requests, len(calls))
	fmt.Fprintf(out, "  bytes                      %10d %12d   %.1f %% less\n", before, after, less(before, after))
	fmt.Fprintf(out, "  tokens (o200k_base)        %10d %12d   %.1f %% less\n", beforeTokens, afterTokens, less(beforeTokens, afterTokens))
}

func less(before, after int) float64 { return 100 * float64(before-after) / float64(before) }
