package openai

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestApplyEdits(t *testing.T) {
	const body = "0123456789"
	for want, edits := range map[string][]Edit{
		body:                 nil,
		"01ab456789":         {{Range{2, 4}, []byte("ab")}},
		"x01234567y":         {{Range{8, 10}, []byte("y")}, insert(0, []byte("x"))},
		"0ab123456789":       {insert(1, []byte("a")), insert(1, []byte("b"))},
		"0ab3456789":         {insert(1, []byte("a")), {Range{1, 3}, []byte("b")}},
		"012345678":          {{Range{9, 10}, nil}},
		"0123456789end":      {insert(10, []byte("end"))},
		"abcdefghijklmnopqr": {{Range{0, 10}, []byte("abcdefghijklmnopqr")}},
	} {
		if got := string(applyEdits([]byte("> "), []byte(body), edits)); got != "> "+want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestAppendElements(t *testing.T) {
	for text, want := range map[string]string{`[]`: `[1,2]`, `[ ]`: `[ 1,2]`, `[0]`: `[0,1,2]`, "[0\n]": "[0\n,1,2]"} {
		b := []byte(text)
		if got := string(applyEdits(nil, b, []Edit{appendElements(b, Range{0, len(b)}, []byte("1,2"))})); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// TestAppendString: PC-031, only what JSON demands is escaped.
func TestAppendString(t *testing.T) {
	for s, want := range map[string]string{
		"": `""`, "<a> & b": `"<a> & b"`, "é \u2028 😀": "\"é \u2028 😀\"", `"\` +
			"\n\r\t\x00\x1f\b": `"\"\\\n\r\t\u0000\u001f\u0008"`,
	} {
		if got := string(AppendString(nil, s)); got != want {
			t.Errorf("%q became %s, want %s", s, got, want)
		}
	}
}

func FuzzAppendString(f *testing.F) {
	f.Add("a\"\\\n<é>\x00")
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			return
		}
		quoted := AppendString(nil, s)
		var back string
		if err := json.Unmarshal(quoted, &back); err != nil || back != s {
			t.Fatalf("%q came back as %q, %v", s, back, err)
		}
		if got := text(quoted, Range{0, len(quoted)}); got != s {
			t.Fatalf("%q was read as %q", s, got)
		}
	})
}

func TestErrorBody(t *testing.T) {
	for want, got := range map[string]string{
		`{"error":{"message":"a \"b\"","type":"t","param":null,"code":"c"}}`: string(ErrorBody(`a "b"`, "t", "c")),
		`{"error":{"message":"m","type":"t","param":null,"code":null}}`:      string(ErrorBody("m", "t", "")),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func BenchmarkApplyEdits(b *testing.B) {
	body := []byte(strings.Repeat("x", 1<<20))
	with := []byte("with")
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		applyEdits(nil, body, []Edit{{Range{100, 200}, with}, insert(1<<19, with), insert(1<<20, with)})
	}
}
