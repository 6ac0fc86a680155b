package openai

import (
	"strings"
	"testing"
)

func TestLookalike(t *testing.T) {
	chunk := func(text, padding string) string {
		return `data: {"id":"c","choices":[{"index":0,"delta":{"content":"` + text + `"},"finish_reason":null}],"usage":null,` +
			`"obfuscation":"` + padding + `"}` + "\n\n"
	}
	const plain = `data: {"id":"c","choices":[{"delta":{"content":"a"}}]}` + "\n\n"
	for _, test := range []struct {
		name, known, raw, text string // "" is no lookalike
	}{
		{"another text", chunk("a", "xyz"), chunk(`b\n c`, "x"), `"b\n c"`},
		{"no text", chunk("a", "xyz"), chunk("", ""), `""`},
		{"the same", chunk("a", "xyz"), chunk("a", "xyz"), `"a"`},
		{"no obfuscation", plain, `data: {"id":"c","choices":[{"delta":{"content":"bc"}}]}` + "\n\n", `"bc"`},
		{"a quote in the text", chunk("a", "x"), chunk(`say \"hi\"`, "x"), ""},
		{"a backslash at the end of the text", chunk("a", "x"), chunk(`\\`, "x"), ""},
		{"a finish reason", chunk("a", "x"), `data: {"id":"c","choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}],` +
			`"usage":null,"obfuscation":"x"}` + "\n\n", ""},
		{"another id", plain, `data: {"id":"d","choices":[{"delta":{"content":"a"}}]}` + "\n\n", ""},
		{"a call behind the text", plain, `data: {"id":"c","choices":[{"delta":{"content":"a","tool_calls":[{}]}}]}` + "\n\n", ""},
		{"more lines", plain, `data: {"id":"c","choices":[{"delta":{"content":"a"}}]}` + "\nid: 1\n\n", ""},
		{"a member behind the obfuscation", chunk("a", "x"), `data: {"id":"c","choices":[{"index":0,"delta":{"content":"b"},` +
			`"finish_reason":null}],"usage":null,"obfuscation":"x","error":{}}` + "\n\n", ""},
		{"a known content of parts", `data: {"choices":[{"delta":{"content":["a"]}}]}` + "\n\n",
			`data: {"choices":[{"delta":{"content":["a"]}}]}` + "\n\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var l lookalike
			learnFrom(t, &l, plain) // what was learnt before leaves nothing behind
			learnFrom(t, &l, test.known)
			at, ok := l.text([]byte(test.raw))
			if got := string(at.Of([]byte(test.raw))); ok != (test.text != "") || ok && got != test.text {
				t.Errorf("got %q, %v", got, ok)
			}
		})
	}
}

func learnFrom(t *testing.T, l *lookalike, raw string) {
	t.Helper()
	ev, err := NewEventReader(strings.NewReader(raw), 1<<10).Next()
	if err != nil {
		t.Fatal(err)
	}
	var c chunk
	if !c.read(ev.Data) {
		t.Fatalf("%q is no chunk", raw)
	}
	l.learn(ev, &c)
}
