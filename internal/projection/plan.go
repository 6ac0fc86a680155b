package projection

import (
	"slices"
	"strings"
)

// Request is what a plan depends on beside the policy.
type Request struct {
	// Names are the canonical names of the request's function tools, in its order.
	Names []string
	// Others are the names of its tools that are no functions.
	Others []string
	// Allows reports whether the request leaves a tool to the model; nil allows all.
	Allows func(name string) bool
	// Forced is the tool that the request forces the model to call, "" for none.
	Forced string
	// Prefetched are the tools that the client has run before the first round, with success.
	Prefetched []string
}

// Plan says what becomes of every function tool of a request at the start of an ask.
type Plan struct {
	// Names are the canonical names of the request's function tools.
	Names []string
	// Removed are the tools that the request rules out, that the operator hides or that were prefetched: they reach
	// neither the model nor the directory nor the index.
	Removed []bool
	// Keep are the tools that are exposed in every round.
	Keep []bool
	// Deferred are the names in the directory, in its order.
	Deferred []string
	// Missing are the names of always-loaded tools that the request does not hold.
	Missing []string
	// Collision says that a real tool bears the name of the virtual one.
	Collision bool
	// ForcedHidden says that the request forces a tool that the operator hides.
	ForcedHidden bool

	virtualName string
	functions   map[string]int // by canonical name
	hidden      sortedNames    // names that are not the client's to call before they are loaded
	encoded     map[string]string
	decoded     map[string]string
	separator   string
}

// Plan sorts the tools of a request by the policy.
func (p *Policy) Plan(r Request) *Plan {
	plan := &Plan{
		Names:       r.Names,
		Removed:     make([]bool, len(r.Names)),
		Keep:        make([]bool, len(r.Names)),
		Collision:   slices.Contains(r.Others, p.VirtualName),
		virtualName: p.VirtualName,
		functions:   make(map[string]int, len(r.Names)),
	}
	hidden, always, prefetch := NewPatterns(p.Hidden), NewPatterns(p.AlwaysLoaded), NewPatterns(p.Prefetch)
	for i, name := range r.Names {
		isPrefetch := prefetch.Match(name)
		switch {
		case hidden.Match(name), r.Allows != nil && !r.Allows(name),
			isPrefetch && p.PrefetchHide && name != r.Forced && slices.Contains(r.Prefetched, name):
			plan.Removed[i] = true
			plan.ForcedHidden = plan.ForcedHidden || name == r.Forced
			continue
		}
		if _, known := plan.functions[name]; !known {
			plan.functions[name] = i
		}
		plan.Collision = plan.Collision || name == p.VirtualName
		if name == r.Forced || isPrefetch || always.Match(name) {
			plan.Keep[i] = true
		} else {
			plan.Deferred = append(plan.Deferred, name)
		}
	}
	for _, name := range p.AlwaysLoaded {
		if always.exact[name] && !slices.Contains(r.Names, name) {
			plan.Missing = append(plan.Missing, name)
		}
	}
	slices.SortFunc(plan.Deferred, compareNames)
	plan.Deferred = slices.Compact(plan.Deferred)
	plan.hidden = newSortedNames(append([]string{p.VirtualName}, plan.Deferred...))
	plan.encodeNames(p.DotSeparator, r.Others)
	return plan
}

// Filtered reports whether some tool is removed.
func (p *Plan) Filtered() bool { return slices.Contains(p.Removed, true) }

// Function returns the index of the tool of this name among the request's function tools, and whether the model may have
// it.
func (p *Plan) Function(name string) (int, bool) {
	i, ok := p.functions[name]
	return i, ok
}

// IsDeferred reports whether the name stands in the directory.
func (p *Plan) IsDeferred(name string) bool {
	i, ok := p.functions[name]
	return ok && !p.Keep[i]
}

// HasLongerHidden reports whether a deferred tool, or the virtual one, bears a name that begins with prefix and is longer.
func (p *Plan) HasLongerHidden(prefix string) bool { return p.hidden.hasLonger(prefix) }

// sortedNames finds names by their beginning.
type sortedNames []string

func newSortedNames(names []string) sortedNames {
	slices.Sort(names)
	return names
}

func (s sortedNames) hasLonger(prefix string) bool {
	i, found := slices.BinarySearch(s, prefix)
	if found {
		i++
	}
	return i < len(s) && strings.HasPrefix(s[i], prefix)
}

// encodeNames prepares the names of tools with dots for upstreams that refuse dots. A tool whose encoded name another tool
// bears, or whose name holds the separator already, stays as it is: never two tools of one name.
func (p *Plan) encodeNames(separator string, others []string) {
	if separator == "" {
		return
	}
	p.separator = separator
	p.encoded, p.decoded = make(map[string]string), make(map[string]string)
	taken := map[string]bool{p.virtualName: true}
	for _, name := range slices.Concat(p.Names, others) {
		taken[name] = true
	}
	for _, name := range p.Names {
		if strings.Contains(name, ".") && !strings.Contains(name, separator) {
			encoded := strings.ReplaceAll(name, ".", separator)
			if !taken[encoded] {
				p.encoded[name], p.decoded[encoded] = encoded, name
			}
		}
	}
}

// Encode returns the name that the upstream gets.
func (p *Plan) Encode(name string) string {
	if encoded, ok := p.encoded[name]; ok {
		return encoded
	}
	if _, known := p.functions[name]; !known && p.separator != "" && strings.Contains(name, ".") &&
		!strings.Contains(name, p.separator) {
		// A tool of the history that the request no longer holds.
		return strings.ReplaceAll(name, ".", p.separator)
	}
	return name
}

// Decode returns the canonical name of what the upstream calls.
func (p *Plan) Decode(name string) string {
	if decoded, ok := p.decoded[name]; ok {
		return decoded
	}
	return name
}

// Encodes reports whether some name differs towards the upstream.
func (p *Plan) Encodes() bool { return p.separator != "" }
