package openai

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// The counters of both dialects. The input side of an answer is the last round's, because clients read it as the size of
// the context; the output side is what all rounds produced.
var (
	inputCounters = map[string]bool{
		"prompt_tokens": true, "input_tokens": true, "prompt_tokens_details": true, "input_tokens_details": true,
		"prompt_cache_hit_tokens": true, "prompt_cache_miss_tokens": true,
	}
	outputCounters = map[string]bool{
		"completion_tokens": true, "output_tokens": true, "completion_tokens_details": true, "output_tokens_details": true,
	}
)

func isCost(name string) bool { return strings.HasPrefix(name, "cost") }

// Tokens are the counters of one round's usage, 0 where the upstream gave none.
type Tokens struct{ Input, Output, Cached, Total int64 }

// ReadTokens reads the counters of a raw usage object of either dialect. Servers that state a counter under the names of both
// may leave one of them at 0.
func ReadTokens(usage []byte) Tokens {
	var t Tokens
	var hits int64
	eachValue(usage, 0, func(key []byte, value Range) {
		switch string(key) {
		case "input_tokens", "prompt_tokens":
			t.Input = max(t.Input, integer(usage, value))
		case "output_tokens", "completion_tokens":
			t.Output = max(t.Output, integer(usage, value))
		case "input_tokens_details", "prompt_tokens_details":
			t.Cached = max(t.Cached, integer(usage, find(usage, value.Start, "cached_tokens")))
		case "total_tokens":
			t.Total = integer(usage, value)
		case "prompt_cache_hit_tokens":
			hits = integer(usage, value)
		}
	})
	if t.Cached == 0 {
		t.Cached = hits
	}
	return t
}

// integer returns the number at the range, cut to an integer; 0 if there is none.
func integer(b []byte, at Range) int64 {
	if at.Absent() {
		return 0
	}
	return gjson.ParseBytes(at.Of(b)).Int()
}

// sumUsage returns the usage object of the whole answer: the last round's bytes with the counters of the earlier rounds
// added. A round without usage leaves the others as they are.
func sumUsage(last []byte, earlier [][]byte, rounds int, o AnswerOptions) []byte {
	var given [][]byte
	for _, u := range earlier {
		if u != nil {
			given = append(given, u)
		}
	}
	if last == nil {
		if len(given) == 0 {
			return nil
		}
		last, given = given[len(given)-1], given[:len(given)-1]
	}
	if rounds < 2 {
		return last
	}
	out := last
	totals := ReadTokens(last)
	for _, u := range given {
		more := ReadTokens(u)
		totals.Input += more.Input
		totals.Output += more.Output
		totals.Cached += more.Cached
		gjson.ParseBytes(u).ForEach(func(key, value gjson.Result) bool {
			switch name := key.String(); {
			case outputCounters[name], isCost(name), o.BilledUsage && inputCounters[name]:
				out = addCounter(out, gjson.Escape(name), value)
			case name == "total_tokens":
				// Not recomputed as input plus output: some servers count reasoning in the total only.
				add := value.Int()
				if !o.BilledUsage {
					add -= more.Input
				}
				if total := gjson.GetBytes(out, name); total.Type == gjson.Number {
					out = setCounter(out, name, total.Int()+add)
				}
			}
			return true
		})
	}
	if o.UsageDetails {
		details := []byte(`{"rounds":`)
		details = strconv.AppendInt(details, int64(rounds), 10)
		for _, c := range []struct {
			name  string
			value int64
		}{{"input_tokens", totals.Input}, {"output_tokens", totals.Output}, {"cached_tokens", totals.Cached}} {
			details = append(append(append(details, `,"`...), c.name...), `":`...)
			details = strconv.AppendInt(details, c.value, 10)
		}
		if with, err := sjson.SetRawBytes(out, "tool_search", append(details, '}')); err == nil {
			out = with
		}
	}
	return out
}

// addCounter adds a number, or every number of a details object, to the counter at path.
func addCounter(usage []byte, path string, value gjson.Result) []byte {
	switch {
	case value.IsObject():
		value.ForEach(func(key, inner gjson.Result) bool {
			usage = addCounter(usage, path+"."+gjson.Escape(key.String()), inner)
			return true
		})
	case value.Type == gjson.Number:
		old := gjson.GetBytes(usage, path)
		if isInteger(value.Raw) && (!old.Exists() || old.Type == gjson.Null || isInteger(old.Raw)) {
			return setCounter(usage, path, old.Int()+value.Int())
		}
		if with, err := sjson.SetBytes(usage, path, old.Float()+value.Float()); err == nil {
			return with
		}
	}
	return usage
}

func setCounter(usage []byte, path string, n int64) []byte {
	if with, err := sjson.SetBytes(usage, path, n); err == nil {
		return with
	}
	return usage
}

func isInteger(raw string) bool { return !strings.ContainsAny(raw, ".eE") }
