package turn_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"tool-search-proxy/internal/openai"
	"tool-search-proxy/internal/projection"
	"tool-search-proxy/internal/session"
	"tool-search-proxy/internal/turn"
)

// canned answers every request with the same bytes, without a network.
type canned struct{ kind, body string }

func (c canned) Send(context.Context, *http.Request, []byte, func(http.Header)) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {c.kind}}, ContentLength: int64(len(c.body)),
		Body: io.NopCloser(strings.NewReader(c.body)),
	}, nil
}

// manyTools returns n tools of about 850 bytes each.
func manyTools(n int) string {
	var s strings.Builder
	for i := range n {
		if i > 0 {
			s.WriteByte(',')
		}
		fmt.Fprintf(&s, `{"type":"function","function":{"name":"server%d_action_%d","description":%q,"parameters":`+
			`{"type":"object","properties":{"id":{"type":"string","description":%q}},"required":["id"]}}}`, i/10, i,
			strings.Repeat("does something useful with things ", 15), strings.Repeat("an identifier ", 10))
	}
	return "[" + s.String() + "]"
}

// BenchmarkServe measures a whole turn but for the network: one request with 100 tools that needs no search.
func BenchmarkServe(b *testing.B) {
	policy := turn.NewPolicy(projection.Policy{
		Enabled: true, VirtualName: "tool_search", Strict: "omit", MaxResults: 5, MaxRounds: 8, MaxExposed: 128, MinDeferred: 1,
		FailOpen: true, UsageDetails: true, RequestIDHeader: []string{"X-Request-Id"},
	})
	var stream strings.Builder
	stream.WriteString("data: " + chunk(`{"role":"assistant","content":""}`, "") + "\n\n")
	for range 100 {
		stream.WriteString("data: " + chunk(`{"content":"a few words "}`, "") + "\n\n")
	}
	stream.WriteString("data: " + chunk(`{}`, "stop") + "\n\ndata: [DONE]\n\n")
	answers := map[string]canned{
		"whole": {"application/json", `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":` +
			`{"role":"assistant","content":"` + strings.Repeat("text ", 80) + `"},"finish_reason":"stop"}],"usage":` +
			`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`},
		"stream of 100": {"text/event-stream", stream.String()},
	}
	for name, answer := range answers {
		b.Run(name, func(b *testing.B) {
			engine := benchEngine(b, answer, policy)
			raw := []byte(benchRequest(name != "whole"))
			request := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", nil)
			request.Header.Set("Authorization", "Bearer key")
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				engine.Serve(discard{http.Header{}}, request, openai.Chat, turn.Body{Raw: raw, JSON: raw})
			}
		})
		// Every request has other tools, so that nothing that is remembered helps.
		b.Run(name+", new tools", func(b *testing.B) {
			engine := benchEngine(b, answer, policy)
			body := []byte(benchRequest(name != "whole"))
			request := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", nil)
			at := bytes.LastIndex(body, []byte("an identifier"))
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				copy(body[at:], strconv.Itoa(1e9+n))
				engine.Serve(discard{http.Header{}}, request, openai.Chat, turn.Body{Raw: body, JSON: body})
			}
		})
	}
}

func benchEngine(b *testing.B, upstream turn.Upstream, policy *turn.Policy) *turn.Engine {
	sessions := session.NewMemory(session.MemoryOptions{TTL: time.Hour, MaxSessions: 1000, MaxBytes: 1 << 20})
	b.Cleanup(func() { _ = sessions.Close() })
	return turn.New(turn.Options{
		Upstream: upstream, Sessions: sessions, Secret: []byte("s"), Policy: func() *turn.Policy { return policy },
		Log: zap.NewNop(), MaxAnswerBytes: 1 << 20, MaxEventBytes: 1 << 20,
	})
}

func benchRequest(stream bool) string {
	return `{"model":"m","stream":` + fmt.Sprint(stream) + `,"messages":[{"role":"system","content":"be kind"},` +
		`{"role":"user","content":"` + strings.Repeat("hello ", 100) + `"}],"tools":` + manyTools(100) + `}`
}

// discard is a client that throws its answer away.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}
func (d discard) Flush()                      {}
