package openai

import (
	"testing"

	"github.com/tidwall/gjson"
)

func TestSumUsage(t *testing.T) {
	first := `{"prompt_tokens":100,"completion_tokens":10,"total_tokens":115,` +
		`"prompt_tokens_details":{"cached_tokens":80},"completion_tokens_details":{"reasoning_tokens":5},"cost":0.5,` +
		`"x":1}`
	last := `{"prompt_tokens":130,"completion_tokens":20,"total_tokens":150,` +
		`"prompt_tokens_details":{"cached_tokens":100},"completion_tokens_details":{"reasoning_tokens":7},` +
		`"cost":0.25,"x":2,"big":12345678901234567890}`
	cases := []struct {
		name, last string
		earlier    []string
		o          AnswerOptions
		want       string
	}{
		{"one round", last, nil, AnswerOptions{UsageDetails: true}, last},
		{"context", last, []string{first}, AnswerOptions{}, `{"prompt_tokens":130,"completion_tokens":30,` +
			`"total_tokens":165,"prompt_tokens_details":{"cached_tokens":100},` +
			`"completion_tokens_details":{"reasoning_tokens":12},"cost":0.75,"x":2,"big":12345678901234567890}`},
		{"billed", last, []string{first}, AnswerOptions{BilledUsage: true},
			`{"prompt_tokens":230,"completion_tokens":30,"total_tokens":265,` +
				`"prompt_tokens_details":{"cached_tokens":180},` +
				`"completion_tokens_details":{"reasoning_tokens":12},"cost":0.75,"x":2,"big":12345678901234567890}`},
		{"three rounds with details", `{"prompt_tokens":3,"completion_tokens":3,"total_tokens":6}`,
			[]string{`{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}`,
				`{"prompt_tokens":2,"completion_tokens":2,"total_tokens":4}`}, AnswerOptions{UsageDetails: true},
			`{"prompt_tokens":3,"completion_tokens":6,"total_tokens":9,"tool_search":{"rounds":3,"input_tokens":6,` +
				`"output_tokens":6,"cached_tokens":0}}`},
		{"the other dialect", `{"input_tokens":20,"output_tokens":2,"output_tokens_details":{"reasoning_tokens":1},` +
			`"total_tokens":22}`,
			[]string{`{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":1,` +
				`"output_tokens_details":{"reasoning_tokens":1},"total_tokens":11}`}, AnswerOptions{UsageDetails: true},
			`{"input_tokens":20,"output_tokens":3,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":23,` +
				`"tool_search":{"rounds":2,"input_tokens":30,"output_tokens":3,"cached_tokens":4}}`},
		{"none in the last round", "", []string{"", first}, AnswerOptions{}, first},
		{"none in an earlier round", last, []string{""}, AnswerOptions{}, last},
		{"none at all", "", []string{""}, AnswerOptions{UsageDetails: true}, ""},
		{"counters that are null", `{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,` +
			`"completion_tokens_details":null}`,
			[]string{`{"prompt_tokens":1,"completion_tokens":null,"total_tokens":1,` +
				`"completion_tokens_details":{"reasoning_tokens":4,"x":null}}`}, AnswerOptions{},
			`{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"completion_tokens_details":{"reasoning_tokens":4}}`},
		{"a counter of an earlier round only", `{"prompt_tokens":1}`,
			[]string{`{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}`}, AnswerOptions{},
			`{"prompt_tokens":1,"completion_tokens":2}`},
		{"money within an object", `{"cost":1,"cost_details":{"upstream.cost":0.5}}`,
			[]string{`{"cost":2,"cost_details":{"upstream.cost":0.25},"cost_in_usd_ticks":7}`}, AnswerOptions{},
			`{"cost":3,"cost_details":{"upstream.cost":0.75},"cost_in_usd_ticks":7}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			raw := func(s string) []byte {
				if s == "" {
					return nil
				}
				return []byte(s)
			}
			var earlier [][]byte
			for _, e := range c.earlier {
				earlier = append(earlier, raw(e))
			}
			given := raw(c.last)
			if got := string(sumUsage(given, earlier, len(earlier)+1, c.o)); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if string(given) != c.last {
				t.Errorf("the round's own usage became %s", given)
			}
		})
	}
}

func TestReadTokens(t *testing.T) {
	for usage, want := range map[string]Tokens{
		``: {}, `null`: {},
		`{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"prompt_tokens_details":{"cached_tokens":4}}`: {1,
			2, 4, 3},
		`{"input_tokens":1,"output_tokens":2,"total_tokens":3,"input_tokens_details":{"cached_tokens":4}}`: {1,
			2, 4, 3},
		`{"prompt_tokens":9,"input_tokens":null,"prompt_cache_hit_tokens":5}`: {9,
			0, 5, 0},
		`{"prompt_tokens":9007199254740993}`: {9007199254740993, 0, 0, 0},
	} {
		if got := ReadTokens([]byte(usage)); got != want {
			t.Errorf("%s was read as %+v, want %+v", usage, got, want)
		}
	}
}

func FuzzSumUsage(f *testing.F) {
	f.Add([]byte(`{"completion_tokens":1,"completion_tokens_details":{"a":1},"cost":0.1}`),
		[]byte(`{"completion_tokens":2,"completion_tokens_details":null}`), true)
	f.Add([]byte(`{"cost.x":{"":1},"cost":{"a|b":2}}`), []byte(`{"cost":[1]}`), false)
	f.Fuzz(func(t *testing.T, first, last []byte, billed bool) {
		for _, b := range [][]byte{first, last} {
			if !gjson.ValidBytes(b) || !gjson.ParseBytes(b).IsObject() {
				return
			}
		}
		if out := sumUsage(last, [][]byte{first}, 2, AnswerOptions{BilledUsage: billed,
			UsageDetails: true}); !gjson.ValidBytes(out) {
			t.Fatalf("%s and %s became %s", first, last, out)
		}
	})
}

func BenchmarkSumUsage(b *testing.B) {
	usage := []byte(`{"prompt_tokens":100,"completion_tokens":10,"total_tokens":110,` +
		`"prompt_tokens_details":{"cached_tokens":80},"completion_tokens_details":{"reasoning_tokens":5}}`)
	b.ReportAllocs()
	for b.Loop() {
		sumUsage(usage, [][]byte{usage, usage}, 3, AnswerOptions{UsageDetails: true})
	}
}
