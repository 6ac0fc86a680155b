// Package clients has conversations through a running proxy with the official SDK for Go. PROXY_URL says where it is.
package clients

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

func client(t *testing.T) openai.Client {
	t.Helper()
	base := os.Getenv("PROXY_URL")
	if base == "" {
		t.Skip("PROXY_URL is not set; run.sh sets it")
	}
	return openai.NewClient(option.WithBaseURL(base+"/v1"), option.WithAPIKey("sk-test"), option.WithMaxRetries(0))
}

const tools = 60

var parameters = shared.FunctionParameters{"type": "object", "properties": map[string]any{"id": map[string]any{"type": "string"}}}

func chatTools() (list []openai.ChatCompletionToolUnionParam) {
	for i := range tools {
		list = append(list, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: fmt.Sprintf("tool_%02d", i), Description: openai.String("does something"), Parameters: parameters,
		}))
	}
	return list
}

// chat has one exchange, streamed or not, and returns the assistant's message.
func chat(t *testing.T, c openai.Client, stream bool, messages []openai.ChatCompletionMessageParamUnion) openai.ChatCompletionMessage {
	t.Helper()
	params := openai.ChatCompletionNewParams{Model: "gpt-test", Messages: messages, Tools: chatTools()}
	if !stream {
		answer, err := c.Chat.Completions.New(context.Background(), params)
		if err != nil {
			t.Fatal(err)
		}
		return answer.Choices[0].Message
	}
	events := c.Chat.Completions.NewStreaming(context.Background(), params)
	var all openai.ChatCompletionAccumulator
	for events.Next() {
		if !all.AddChunk(events.Current()) {
			t.Fatal("a chunk does not belong to the answer")
		}
	}
	if err := events.Err(); err != nil {
		t.Fatal(err)
	}
	return all.Choices[0].Message
}

func TestChat(t *testing.T) {
	c := client(t)
	for _, stream := range []bool{false, true} {
		for _, mixed := range []string{"", "[[mixed]]"} {
			t.Run(fmt.Sprintf("stream=%v%s", stream, mixed), func(t *testing.T) {
				var messages []openai.ChatCompletionMessageParamUnion
				for round, need := range []string{"tool_07,tool_42", "tool_07,tool_13"} {
					messages = append(messages, openai.UserMessage(fmt.Sprintf("%s Question %d [[need:%s]]", mixed, round, need)))
					var called []string
					for range 6 {
						m := chat(t, c, stream, messages)
						messages = append(messages, m.ToParam())
						if len(m.ToolCalls) == 0 {
							if want := "done: " + strings.Join(results(called), " "); m.Content != want {
								t.Errorf("the answer is %q, want %q", m.Content, want)
							}
							break
						}
						for _, call := range m.ToolCalls {
							called = append(called, call.Function.Name)
							messages = append(messages, openai.ToolMessage("result of "+call.Function.Name, call.ID))
						}
					}
					slices.Sort(called)
					if got := strings.Join(called, ","); got != need {
						t.Errorf("the client was asked to run %s, want %s", got, need)
					}
				}
			})
		}
	}
}

func results(called []string) (list []string) {
	for _, name := range called {
		list = append(list, "result of "+name)
	}
	return list
}

func responseTools() (list []responses.ToolUnionParam) {
	for i := range tools {
		list = append(list, responses.ToolUnionParam{OfFunction: &responses.FunctionToolParam{
			Name: fmt.Sprintf("tool_%02d", i), Description: openai.String("does something"), Parameters: parameters, Strict: openai.Bool(false),
		}})
	}
	return list
}

func respond(t *testing.T, c openai.Client, stream bool, params responses.ResponseNewParams) responses.Response {
	t.Helper()
	params.Model, params.Tools = "gpt-test", responseTools()
	if !stream {
		answer, err := c.Responses.New(context.Background(), params)
		if err != nil {
			t.Fatal(err)
		}
		return *answer
	}
	events := c.Responses.NewStreaming(context.Background(), params)
	var last responses.Response
	text := ""
	for events.Next() {
		event := events.Current()
		switch event.Type {
		case "response.output_text.delta":
			text += event.Delta
		case "response.completed":
			last = event.Response
		}
	}
	if err := events.Err(); err != nil {
		t.Fatal(err)
	}
	if text != last.OutputText() {
		t.Errorf("streamed %q, final %q", text, last.OutputText())
	}
	return last
}

func TestResponses(t *testing.T) {
	c := client(t)
	for _, mode := range []string{"stored, chained", "stored, replayed", "unstored, encrypted"} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stream=%v", mode, stream), func(t *testing.T) {
				var history responses.ResponseInputParam
				previous := ""
				for round, need := range []string{"tool_07,tool_42", "tool_07,tool_13"} {
					fresh := responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage(
						fmt.Sprintf("Question %d [[need:%s]]", round, need), responses.EasyInputMessageRoleUser)}
					var called []string
					for range 6 {
						params := responses.ResponseNewParams{}
						history = append(history, fresh...)
						switch mode {
						case "stored, chained":
							params.Input.OfInputItemList = fresh
							if previous != "" {
								params.PreviousResponseID = openai.String(previous)
							}
						case "unstored, encrypted":
							params.Store = openai.Bool(false)
							params.Include = []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent}
							params.Input.OfInputItemList = history
						default:
							params.Input.OfInputItemList = history
						}
						answer := respond(t, c, stream, params)
						previous, fresh = answer.ID, nil
						calls := 0
						for _, item := range answer.Output {
							switch item.Type {
							case "function_call":
								calls++
								called = append(called, item.Name)
								history = append(history, responses.ResponseInputItemParamOfFunctionCall(item.Arguments.OfString, item.CallID, item.Name))
								history[len(history)-1].OfFunctionCall.ID = openai.String(item.ID)
								output := responses.ResponseInputItemParamOfFunctionCallOutput("result of " + item.Name)
								output.OfFunctionCallOutput.CallID = openai.String(item.CallID)
								fresh = append(fresh, output)
							case "reasoning":
								reasoning := item.AsReasoning().ToParam()
								history = append(history, responses.ResponseInputItemUnionParam{OfReasoning: &reasoning})
							case "message":
								message := item.AsMessage().ToParam()
								history = append(history, responses.ResponseInputItemUnionParam{OfOutputMessage: &message})
							default:
								t.Errorf("an item of type %s", item.Type)
							}
						}
						if calls == 0 {
							if !strings.HasPrefix(answer.OutputText(), "done:") {
								t.Errorf("the answer is %q", answer.OutputText())
							}
							break
						}
					}
					slices.Sort(called)
					if got := strings.Join(called, ","); got != need {
						t.Errorf("round %d: the client was asked to run %s, want %s", round, got, need)
					}
				}
			})
		}
	}
}
