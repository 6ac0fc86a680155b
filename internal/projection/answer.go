package projection

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// Arguments are the arguments of one call of the virtual tool.
type Arguments struct {
	// Query is the text to search for.
	Query string
	// MaxResults is the most results that the model wants, at least 1; 0 if it said nothing usable.
	MaxResults int
	// OK is false for a malformed call: arguments that are no JSON object, or that hold no query.
	OK bool
}

// ParseArguments reads the JSON text of a call's arguments. It accepts an object, and a string that holds an object, which
// is how some servers hand arguments on. A member of a wrong type counts as absent. A bare JSON string is no call, but
// its text is kept as the query, so that the result can name it.
func ParseArguments(raw []byte) Arguments {
	if !gjson.ValidBytes(raw) {
		return Arguments{}
	}
	arguments := gjson.ParseBytes(raw)
	if arguments.Type == gjson.String {
		text := arguments.String()
		if !gjson.Valid(text) || !gjson.Parse(text).IsObject() {
			return Arguments{Query: strings.TrimSpace(text)}
		}
		arguments = gjson.Parse(text)
	}
	if !arguments.IsObject() {
		return Arguments{}
	}
	var a Arguments
	arguments.ForEach(func(key, value gjson.Result) bool {
		switch {
		case key.String() == "query" && value.Type == gjson.String:
			a.Query = strings.TrimSpace(value.String())
		case key.String() == "max_results" && value.Type == gjson.Number && value.Num == math.Trunc(value.Num):
			a.MaxResults = int(max(1, min(value.Num, math.MaxInt32)))
		}
		return true
	})
	a.OK = a.Query != ""
	return a
}

// Result is what the model reads as the virtual tool's result.
type Result struct {
	// Loaded are the canonical names that this search made visible, callable from the next round.
	Loaded []string
	// AlreadyLoaded are matches that were visible before.
	AlreadyLoaded []string
	// NotFound are exact names that do not exist, or the query text where nothing matched.
	NotFound []string
	// Truncated says that there were more matches than the limit.
	Truncated bool
	// TotalDeferredTools is the number of deferred tools at the start of the ask.
	TotalDeferredTools int
}

// AppendJSON appends the result as one compact JSON object with its five fields in a fixed order. Arrays are never null.
func (r Result) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"loaded":`...)
	dst = appendStrings(dst, r.Loaded)
	dst = append(dst, `,"already_loaded":`...)
	dst = appendStrings(dst, r.AlreadyLoaded)
	dst = append(dst, `,"not_found":`...)
	dst = appendStrings(dst, r.NotFound)
	dst = append(dst, `,"truncated":`...)
	dst = strconv.AppendBool(dst, r.Truncated)
	dst = append(dst, `,"total_deferred_tools":`...)
	dst = strconv.AppendInt(dst, int64(r.TotalDeferredTools), 10)
	return append(dst, '}')
}

func appendStrings(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, s)
	}
	return append(dst, ']')
}

// appendString appends s as a JSON string. Unlike encoding/json it leaves <, > and & as they are, for names must read
// the same here and in tools. Invalid UTF-8 becomes U+FFFD.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, '\\', 'n')
		case r == '\t':
			dst = append(dst, '\\', 't')
		case r < ' ':
			dst = append(dst, '\\', 'u', '0', '0', "0123456789abcdef"[r>>4], "0123456789abcdef"[r&15])
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}

// Answer answers one call of the virtual tool over the index of the deferred and exposed tools. At most limit matches are
// taken (below 1 counts as 1), fewer if the arguments ask for fewer; those for which exposed is true, and the virtual tool
// itself, are already loaded. A malformed call gives a result too, which names the text that was understood, if any.
func Answer(x *Index, a Arguments, limit int, virtualName string, exposed func(name string) bool,
	totalDeferred int) Result {
	result := Result{TotalDeferredTools: totalDeferred}
	if !a.OK {
		if a.Query != "" {
			result.NotFound = []string{a.Query}
		}
		return result
	}
	limit = max(limit, 1)
	if a.MaxResults > 0 {
		limit = min(limit, a.MaxResults)
	}
	matches := x.find(a.Query, limit, virtualName)
	for _, hit := range matches.Hits {
		if hit.Name == virtualName || exposed(hit.Name) {
			result.AlreadyLoaded = append(result.AlreadyLoaded, hit.Name)
		} else {
			result.Loaded = append(result.Loaded, hit.Name)
		}
	}
	result.NotFound = matches.NotFound
	result.Truncated = matches.Truncated
	return result
}
