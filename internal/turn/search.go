package turn

import (
	"slices"
	"strings"

	"tool-search-proxy/internal/openai"
	"tool-search-proxy/internal/projection"
)

// names says whose a called tool is in the running round.
type names struct {
	turn  *turn
	final bool // the last round at the bound: everything is exposed
}

// Classify implements openai.Names.
func (n names) Classify(name string) openai.Class {
	t := n.turn
	name = t.called(name)
	i, ok := t.plan.Function(name)
	switch {
	case name == t.policy.VirtualName && t.defers():
		return openai.Virtual
	case t.isRemoved(name):
		return openai.Unexposed
	case !ok || n.final || !t.defers() || t.plan.Keep[i] || t.policy.PassUnloaded || t.isLoaded(i):
		return openai.Visible
	}
	return openai.Unexposed
}

// MayBeHidden implements openai.Names.
func (n names) MayBeHidden(prefix string) bool {
	const wrapper = "functions."
	if len(prefix) < len(wrapper) && strings.HasPrefix(wrapper, prefix) {
		return true
	}
	return n.Classify(prefix) == openai.Visible && n.turn.plan.HasLongerHidden(strings.TrimPrefix(prefix, wrapper))
}

// called returns the canonical name of what the model calls. Models put "functions." in front of a name now and then; it is
// cut off where only the short name is a tool.
func (t *turn) called(name string) string {
	short, ok := strings.CutPrefix(name, "functions.")
	if !ok {
		return name
	}
	if _, real := t.plan.Function(name); real {
		return name
	}
	if short == t.policy.VirtualName || t.plan.IsDeferred(short) {
		return short
	}
	return name
}

func (t *turn) isLoaded(function int) bool { return slices.Contains(t.loaded, function) }

// isRemoved reports whether the request holds the tool, but the request itself or the operator keeps it from the model.
func (t *turn) isRemoved(name string) bool {
	if _, ok := t.plan.Function(name); ok {
		return false
	}
	for i, removed := range t.plan.Removed {
		if removed && t.plan.Names[i] == name {
			return true
		}
	}
	return false
}

// answerHidden answers the calls of a round that are the proxy's, and loads what they found.
func (t *turn) answerHidden(hidden []openai.Call) []openai.Result {
	exposed := func(name string) bool {
		i, ok := t.plan.Function(name)
		return ok && (t.plan.Keep[i] || t.isLoaded(i))
	}
	var load []string
	out := make([]openai.Result, 0, len(hidden))
	for _, call := range hidden {
		name := t.called(call.Name)
		if call.Class == openai.Unexposed {
			t.report.Rejected++
			text := projection.Rejection(name, t.policy.VirtualName)
			if t.isRemoved(name) {
				text = projection.Refusal(name)
			}
			out = append(out, openai.Result{CallID: call.ID, Output: text})
			continue
		}
		arguments := projection.ParseArguments(call.Arguments)
		limit := min(t.policy.MaxResults, max(t.room()-len(load), 1))
		result := projection.Answer(t.plan.index(), arguments, limit, t.policy.VirtualName, exposed, len(t.plan.Deferred))
		load = append(load, result.Loaded...)
		t.report.Searches = append(t.report.Searches, Search{
			Round: len(t.rounds), Loaded: result.Loaded, AlreadyLoaded: len(result.AlreadyLoaded), Empty: len(result.Loaded)+
				len(result.AlreadyLoaded) == 0, Truncated: result.Truncated, Malformed: !arguments.OK,
		})
		out = append(out, openai.Result{CallID: call.ID, Output: string(result.AppendJSON(nil))})
	}
	// Visible from the next round on, not for the calls beside the search.
	for _, name := range load {
		t.load(name)
	}
	t.trimLoaded(load...)
	return out
}

// noteRepeats counts hidden rounds that ask only what has been asked in this request before.
func (t *turn) noteRepeats(hidden []openai.Call) {
	if t.asked == nil {
		t.asked = make(map[string]bool)
	}
	fresh := false
	for _, call := range hidden {
		key := call.Name + "\x00" + string(call.Arguments)
		fresh = fresh || !t.asked[key]
		t.asked[key] = true
	}
	if !fresh {
		t.repeats++
	}
}
