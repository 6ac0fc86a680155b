package openai

import (
	"testing"

	"github.com/tidwall/gjson"
)

func mergeAll(deltas ...string) string {
	m := &merged{}
	for _, d := range deltas {
		m.addAll([]byte(d), Range{0, len(d)})
	}
	return string(m.append(nil))
}

func TestMerge(t *testing.T) {
	cases := []struct {
		name   string
		deltas []string
		want   string
	}{
		{"nothing", nil, `{}`},
		{"strings are joined, escapes and all", []string{`{"content":"a\u00e9"}`, `{"content":"\n<&>"}`},
			`{"content":"a\u00e9\n<&>"}`},
		{"a surrogate pair in two pieces", []string{`{"content":"\ud83d"}`, `{"content":"\ude00"}`},
			`{"content":"\ud83d\ude00"}`},
		{"PC-095 null, empty and absent", []string{`{"a":null,"b":"","c":[],"d":{}}`},
			`{"a":null,"b":"","c":[],"d":{}}`},
		{"null does not undo", []string{`{"a":"x","b":[1],"c":{"d":1},"d":2}`,
			`{"a":null,"b":null,"c":null,"d":null}`}, `{"a":"x","b":[1],"c":{"d":1},"d":2}`},
		{"null gives way", []string{`{"a":null,"b":null,"c":null,"d":null}`, `{"a":"x","b":[1],"c":{"d":1},"d":2}`},
			`{"a":"x","b":[1],"c":{"d":1},"d":2}`},
		{"numbers are replaced, as they are spelled", []string{`{"a":1.0,"b":true}`, `{"a":1e3,"b":false}`},
			`{"a":1e3,"b":false}`},
		{"objects are merged", []string{`{"audio":{"id":"u","data":"AA"}}`,
			`{"audio":{"data":"BB","expires_at":7}}`}, `{"audio":{"id":"u","data":"AABB","expires_at":7}}`},
		{"lists are joined", []string{`{"a":[1,"x"]}`, `{"a":[{"b":1}]}`, `{"a":[{"b":1}]}`},
			`{"a":[1,"x",{"b":1},{"b":1}]}`},
		{"PC-047 pieces of one index", []string{`{"r":[{"type":"t","text":"Let","index":0},{"type":"e","data":"A",` +
			`"index":1}]}`,
			`{"r":[{"type":"t","text":" me","signature":null,"index":0}]}`, `{"r":[{"type":"e","data":"B","index":1},` +
				`{"type":"t","signature":"S","index":0}]}`},
			`{"r":[{"type":"t","text":"Let me","index":0,"signature":"S"},{"type":"e","data":"AB","index":1}]}`},
		{"an index that is null is none", []string{`{"r":[{"text":"a","index":null}]}`,
			`{"r":[{"text":"b","index":null}]}`}, `{"r":[{"text":"a","index":null},{"text":"b","index":null}]}`},
		{"parts, then a string", []string{`{"content":[{"type":"thinking"}]}`, `{"content":"a"}`, `{"content":""}`,
			`{"content":"b"}`},
			`{"content":[{"type":"thinking"},{"type":"text","text":"ab"}]}`},
		{"a string, then parts", []string{`{"content":"a"}`, `{"content":[{"type":"x"}]}`, `{"content":"b"}`},
			`{"content":[{"type":"text","text":"a"},{"type":"x"},{"type":"text","text":"b"}]}`},
		{"an empty string, then parts", []string{`{"content":""}`, `{"content":[{"type":"x"}]}`},
			`{"content":[{"type":"x"}]}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := mergeAll(c.deltas...); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func FuzzMerge(f *testing.F) {
	f.Add([]byte(`{"a":[{"index":0,"text":"x"},1],"content":"a"}`), []byte(`{"a":[{"index":0,"text":null}],`+
		`"content":[{}]}`))
	f.Add([]byte(`{"a":{"b":"x"},"a":"y"}`), []byte(`{"a":[],"a":{}}`))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		for _, b := range [][]byte{first, second} {
			if !gjson.ValidBytes(b) || len(b) == 0 || b[0] != '{' {
				return
			}
		}
		if out := mergeAll(string(first), string(second)); !gjson.Valid(out) {
			t.Fatalf("%s and %s became %s", first, second, out)
		}
	})
}

func BenchmarkMerge(b *testing.B) {
	delta := []byte(`{"content":" word","reasoning_content":null}`)
	b.ReportAllocs()
	b.SetBytes(int64(1000 * len(delta)))
	for b.Loop() {
		m := &merged{}
		for range 1000 {
			m.addAll(delta, Range{0, len(delta)})
		}
	}
}
