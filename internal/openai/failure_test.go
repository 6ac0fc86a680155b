package openai

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFailureOf(t *testing.T) {
	cases := []struct {
		name, body string
		status     int
		want       Failure
	}{
		{"the common form", `{"error":{"message":"m","type":"t","param":null,"code":"c"}}`, 400,
			Failure{Message: "m", Type: "t", Code: "c"}},
		{"a number for a code", `{"error":{"message":"m","type":"t","code":503}}`, 503, Failure{Message: "m",
			Type: "t", Code: "503"}},
		{"a flat object", `{"object":"error","message":"m","type":"t","code":"c"}`, 400, Failure{Message: "m",
			Type: "t", Code: "c"}},
		{"a string", `{"code":"c","error":"m"}`, 400, Failure{Message: "m", Type: "invalid_request_error", Code: "c"}},
		{"a list", `[{"error":{"code":400,"message":"m","status":"X"}}]`, 400, Failure{Message: "m",
			Type: "invalid_request_error", Code: "400"}},
		{"an event", `{"type":"error","message":"m","code":"c"}`, 0, Failure{Message: "m", Type: "server_error",
			Code: "c"}},
		{"a failed response", `{"type":"response.failed","response":{"error":{"code":"c","message":"m"}}}`, 0,
			Failure{Message: "m", Type: "server_error", Code: "c"}},
		{"another object", `{"detail":[1]}`, 422, Failure{Message: `{"detail":[1]}`, Type: "invalid_request_error",
			Code: "server_error"}},
		{"HTML", " <h1>Bad</h1>\n", 502, Failure{Message: "<h1>Bad</h1>", Type: "server_error", Code: "server_error"}},
		{"too many requests", `slow down`, 429, Failure{Message: "slow down", Type: "rate_limit_error",
			Code: "rate_limit_exceeded"}},
		{"nothing", ``, 503, Failure{Message: "Service Unavailable", Type: "server_error", Code: "server_error"}},
		{"nothing at all", ` `, 0, Failure{Message: "the upstream gave no reason", Type: "server_error",
			Code: "server_error"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := FailureOf(c.status, []byte(c.body))
			if c.want.Status = c.status; got.Message != c.want.Message || got.Type != c.want.Type ||
				got.Code != c.want.Code || got.Status != c.want.Status {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
	if got := FailureOf(500, []byte(strings.Repeat("é", 5000))).Message; len(got) > 2000 || !utf8.ValidString(got) {
		t.Errorf("a long message has %d bytes, valid: %v", len(got), utf8.ValidString(got))
	}
}
