package openai

import (
	"slices"
	"strconv"

	"github.com/tidwall/gjson"
)

// bundleName is a function that models call although nobody declared it, to make several calls at once:
// {"tool_uses":[{"recipient_name":"functions.NAME","parameters":{…}}, …]}.
const bundleName = "multi_tool_use.parallel"

// bundle is such a call with hidden calls in it. It has one id and gets one result.
type bundle struct {
	id    string
	parts int
	calls []Call // the hidden calls; each has an id of its own, which stays within the proxy
	at    []int  // the place of each among the parts
}

// notBundled answers a part of a bundle that is the client's: the client does not know bundles, and one call cannot be
// taken apart without inventing ids.
const notBundled = "Not carried out: call this tool directly, not through " + bundleName + "."

// mayBeBundle reports whether a called name is that of a bundle, or begins so, and no tool of the request has it.
func (v *View) mayBeBundle(name string) bool {
	if len(name) > len(bundleName) || name == "" || bundleName[:len(name)] != name {
		return false
	}
	tools := v.Tools
	return tools == nil || !slices.ContainsFunc(tools.Functions, func(f Function) bool {
		return f.Name == name || f.Name == bundleName
	})
}

func (a *chatAnswer) mayBeBundle(name string) bool { return a.view.mayBeBundle(name) }

func (a *chatAnswer) readBundle(call *chatStreamCall) *bundle {
	return readBundle(Call{ID: call.id, Arguments: call.text(), raw: call.history()}, a.names, a.canonical)
}

// readBundle takes a bundle apart; nil if it holds no hidden call and therefore is the client's.
func readBundle(call Call, names Names, canonical func(string) string) *bundle {
	if !jsonObject(trimSpace(call.Arguments)) {
		return nil
	}
	uses := gjson.GetBytes(call.Arguments, "tool_uses")
	if !uses.IsArray() {
		return nil
	}
	b := &bundle{id: call.ID}
	uses.ForEach(func(_, use gjson.Result) bool {
		name := canonical(use.Get("recipient_name").String())
		if class := names.Classify(name); class.Hidden() {
			b.calls = append(b.calls, Call{
				ID: call.ID + "#" + strconv.Itoa(b.parts), Name: name, Arguments: []byte(use.Get("parameters").Raw),
				Class: class, raw: call.raw, bundle: b,
			})
			b.at = append(b.at, b.parts)
		}
		b.parts++
		return true
	})
	if len(b.calls) == 0 {
		return nil
	}
	return b
}

// result puts the results of the hidden calls together: a JSON array with one element for each part.
func (b *bundle) result(results []Result) Result {
	parts := make([]string, b.parts)
	for i := range parts {
		parts[i] = notBundled
	}
	for i, c := range b.calls {
		for _, r := range results {
			if r.CallID == c.ID {
				parts[b.at[i]] = r.Output
			}
		}
	}
	out := []byte{'['}
	for i, part := range parts {
		if i > 0 {
			out = append(out, ',')
		}
		if raw := []byte(part); jsonObject(raw) {
			out = append(out, raw...)
		} else {
			out = AppendString(out, part)
		}
	}
	return Result{CallID: b.id, Output: string(append(out, ']'))}
}

// unbundled returns the results with one for each call of the turn, in the order of the calls that they answer.
func unbundled(calls []Call, results []Result) []Result {
	if !slices.ContainsFunc(calls, func(c Call) bool { return c.bundle != nil }) {
		return results
	}
	var out []Result
	done := make(map[*bundle]bool)
	for _, r := range results {
		i := slices.IndexFunc(calls, func(c Call) bool { return c.bundle != nil && c.ID == r.CallID })
		switch {
		case i < 0:
			out = append(out, r)
		case !done[calls[i].bundle]:
			done[calls[i].bundle] = true
			out = append(out, calls[i].bundle.result(results))
		}
	}
	return out
}
