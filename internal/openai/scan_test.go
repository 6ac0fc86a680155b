package openai

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

func TestSkipValue(t *testing.T) {
	cases := []struct {
		text string
		want int
	}{
		{`"a"`, 3}, {`"a\"b" x`, 6}, {`"a\\"b`, 5}, {`"a\\\"b"`, 8}, {`""`, 2}, {`"`, failed}, {`"a\"`, failed},
		{`"\\\\\\\`, failed},
		{`12,`, 2}, {`true}`, 4}, {`null]`, 4}, {"-1.5e3\n", 6}, {`1`, 1},
		{`{}`, 2}, {`{"a":"}"}]`, 9}, {`[[],{"x":["]"]}] `, 16}, {`[`, failed}, {`{"a":[}`, failed}, {`{"a":"}`,
			failed},
		{``, failed}, {`,`, failed}, {`:`, failed}, {`}`, failed}, {`]`, failed},
		{`tr"ue",`, failed}, {`1{}`, failed}, {`1[]`, failed},
		{strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth), 2 * MaxDepth},
		{strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1), failed},
	}
	for _, c := range cases {
		if got := skipValue([]byte(c.text), 0); got != c.want {
			t.Errorf("the value at the front of %.40q ends at %d, want %d", c.text, got, c.want)
		}
	}
}

func TestEachMember(t *testing.T) {
	read := func(s string) (string, bool) {
		members, ok := appendMembers(nil, []byte(s), 0)
		var out []string
		for _, m := range members {
			out = append(out, string(m.Key)+"="+string(m.Value.Of([]byte(s)))+"("+string(m.Whole.Of([]byte(s)))+")")
		}
		return strings.Join(out, ";"), ok
	}
	cases := []struct {
		text, want string
		ok         bool
	}{
		{`{}`, "", true}, {"{ \n }", "", true}, {`{"a":1}`, `a=1("a":1)`, true},
		{"{ \"a\" : [1] ,\r\n\"\\u0062\":\"x\" }", "a=[1](\"a\" : [1]);b=\"x\"(\"\\u0062\":\"x\")", true},
		{`{"a":1,"a":2}`, `a=1("a":1);a=2("a":2)`, true},
		{`{"a":1,}`, `a=1("a":1)`, false}, {`{,}`, "", false}, {`{"a"}`, "", false}, {`{"a":}`, "", false},
		{`{"a":,"b":1}`, "", false},
		{`{"a":1 "b":2}`, `a=1("a":1)`, false}, {`{a:1}`, "", false}, {`{"a":1`, `a=1("a":1)`, false}, {`[]`, "",
			false}, {``, "", false}, {`{"a`, "", false},
	}
	for _, c := range cases {
		if got, ok := read(c.text); got != c.want || ok != c.ok {
			t.Errorf("%q has the members %s, complete %v; want %s, %v", c.text, got, ok, c.want, c.ok)
		}
	}
}

func TestElements(t *testing.T) {
	for text, want := range map[string]string{
		`[]`: "", `[ ]`: "", `[1]`: "1", "[1 ,\n\"a,b\",{\"x\":[1,2]},[ ] ]": `1|"a,b"|{"x":[1,2]}|[ ]`,
		`[1,]`: "", `[,1]`: "", `[1 2]`: "", `[1`: "", `{}`: "", ``: "",
	} {
		var got []string
		for _, r := range elements([]byte(text), 0) {
			got = append(got, string(r.Of([]byte(text))))
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%q has the elements %q, want %q", text, got, want)
		}
	}
}

func TestFindAndText(t *testing.T) {
	b := []byte(`{"a":"x","\u0061":"\ud83d\ude00\n\"","n":null,"t":true,"o":{}}`)
	if got := text(b, find(b, 0, "a")); got != "😀\n\"" {
		t.Errorf("of a repeated key the last counts; got %q", got)
	}
	if at := find(b, 0, "x"); !at.Absent() || !isNull(b, at) || isTrue(b, at) || startsWith(b, at, '{') || text(b,
		at) != "" {
		t.Errorf("an absent member stands at %v", at)
	}
	if !isNull(b, find(b, 0, "n")) || !isTrue(b, find(b, 0, "t")) || !startsWith(b, find(b, 0, "o"), '{') ||
		isString(b, find(b, 0, "t")) {
		t.Error("a value was taken for another kind")
	}
	if broken := (Range{3, failed}); !broken.Absent() || !isNull(b, broken) || isString(b, broken) {
		t.Error("what could not be read is not absent")
	}
	if got := (Range{}).shift(3); !got.Absent() {
		t.Errorf("an absent range was shifted to %v", got)
	}
}

// checkWithin walks through a value to its leaves and looks that no part of it leads out of it.
func checkWithin(t testing.TB, b []byte, at Range) {
	t.Helper()
	parts := elements(b, at.Start)
	members, _ := appendMembers(nil, b, at.Start)
	for _, m := range members {
		parts = append(parts, m.Value)
	}
	last := at.Start
	for _, part := range parts {
		if part.Start <= last || part.End >= at.End || part.End <= part.Start {
			t.Fatalf("%q holds a part at %v", at.Of(b), part)
		}
		last = part.Start
		checkWithin(t, b, part)
	}
}

// FuzzScan holds the scanner to a JSON parser: the same values where the text is JSON, and no panic anywhere.
func FuzzScan(f *testing.F) {
	for _, s := range []string{`{"a":[1,"\\\"",{"b":null}],"c":"\ud83d\ude00","c":-0.1e+5}`, `[[],{},""]`, ` "x" `,
		`{"a":}`, `[,`, `{"a":1,"b":{"a":"}"}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		start := skipSpace(b, 0)
		end := skipValue(b, start)
		members, isObject := appendMembers(nil, b, start)
		list := elements(b, start)
		if end > 0 && len(b) < 1000 {
			checkWithin(t, b, Range{start, end})
		}
		if !json.Valid(b) {
			return
		}
		value := gjson.ParseBytes(b)
		if want := bytes.TrimSpace(b); end < 0 || string(b[start:end]) != string(want) {
			t.Fatalf("the value ends at %d of %d", end, len(b))
		}
		if isObject != value.IsObject() {
			t.Fatalf("an object: %v", isObject)
		}
		i := 0
		value.ForEach(func(key, inner gjson.Result) bool {
			raw := list
			if isObject {
				if string(members[i].Key) != key.String() {
					t.Fatalf("member %d is %q, want %q", i, members[i].Key, key.String())
				}
				raw = []Range{}
				for _, m := range members {
					raw = append(raw, m.Value)
				}
			} else if !value.IsArray() {
				return false
			}
			if string(raw[i].Of(b)) != inner.Raw {
				t.Fatalf("value %d is %s, want %s", i, raw[i].Of(b), inner.Raw)
			}
			i++
			return true
		})
		var s string
		if isString(b, Range{start, max(end, 0)}) && utf8.Valid(b) && json.Unmarshal(b, &s) == nil {
			if got := text(b, Range{start, end}); got != s {
				t.Fatalf("the string is %q, want %q", got, s)
			}
		}
	})
}

func BenchmarkSkipValue(b *testing.B) {
	for name, text := range map[string]string{
		"text":    `{"a":"` + strings.Repeat("word ", 10_000) + `"}`,
		"escapes": `{"a":"` + strings.Repeat(`\"`, 25_000) + `"}`,
		"objects": `[` + strings.Repeat(`{"a":{"b":[1,2]}},`, 2_500) + `0]`,
	} {
		b.Run(name, func(b *testing.B) {
			body := []byte(text)
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if skipValue(body, 0) != len(body) {
					b.Fatal("not read to the end")
				}
			}
		})
	}
}
