package projection

import (
	"slices"
	"strings"
	"testing"
)

func testPolicy() *Policy {
	return &Policy{Enabled: true, AlwaysLoaded: []string{"end", "send_*"}, VirtualName: "tool_search", MaxResults: 5}
}

func TestPlanSortsTools(t *testing.T) {
	tests := []struct {
		name     string
		change   func(*Policy)
		request  Request
		deferred []string
		kept     []string
		removed  []string
	}{
		{
			name:     "always loaded by name and glob, deferred sorted by folded name",
			request:  Request{Names: []string{"zeta", "Alpha", "end", "beta", "send_mail", "alpha"}},
			deferred: []string{"Alpha", "alpha", "beta", "zeta"},
			kept:     []string{"end", "send_mail"},
		},
		{
			name:     "the operator hides tools before anything else",
			change:   func(p *Policy) { p.Hidden = []string{"admin_*", "end"} },
			request:  Request{Names: []string{"admin_drop", "end", "a"}},
			deferred: []string{"a"},
			removed:  []string{"admin_drop", "end"},
		},
		{
			name:     "the request rules tools out",
			request:  Request{Names: []string{"a", "b", "end"}, Allows: func(n string) bool { return n == "b" }},
			deferred: []string{"b"},
			removed:  []string{"a", "end"},
		},
		{
			name:     "a forced tool is exposed",
			request:  Request{Names: []string{"a", "b"}, Forced: "b"},
			deferred: []string{"a"},
			kept:     []string{"b"},
		},
		{
			name:     "prefetch tools that the client has run are left out, others stay exposed",
			change:   func(p *Policy) { p.Prefetch, p.PrefetchHide = []string{"time", "user"}, true },
			request:  Request{Names: []string{"time", "user", "a"}, Prefetched: []string{"time"}},
			deferred: []string{"a"},
			kept:     []string{"user"},
			removed:  []string{"time"},
		},
		{
			name:     "without hiding, prefetch tools are always loaded",
			change:   func(p *Policy) { p.Prefetch = []string{"time"} },
			request:  Request{Names: []string{"time", "a"}, Prefetched: []string{"time"}},
			deferred: []string{"a"},
			kept:     []string{"time"},
		},
		{
			name:     "only prefetch tools can be prefetched away",
			change:   func(p *Policy) { p.PrefetchHide = true },
			request:  Request{Names: []string{"end", "a"}, Prefetched: []string{"end"}},
			deferred: []string{"a"},
			kept:     []string{"end"},
		},
		{
			name:     "one name stands in the directory once",
			request:  Request{Names: []string{"a", "a"}},
			deferred: []string{"a"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			policy := testPolicy()
			if test.change != nil {
				test.change(policy)
			}
			plan := policy.Plan(test.request)
			if !slices.Equal(plan.Deferred, test.deferred) {
				t.Errorf("deferred %v, want %v", plan.Deferred, test.deferred)
			}
			pick := func(flags []bool) (names []string) {
				for i, set := range flags {
					if set {
						names = append(names, test.request.Names[i])
					}
				}
				return names
			}
			if got := pick(plan.Keep); !slices.Equal(got, test.kept) {
				t.Errorf("kept %v, want %v", got, test.kept)
			}
			if got := pick(plan.Removed); !slices.Equal(got, test.removed) {
				t.Errorf("removed %v, want %v", got, test.removed)
			}
			for _, name := range test.removed {
				if _, ok := plan.Function(name); ok {
					t.Errorf("%s is removed and can still be found", name)
				}
			}
		})
	}
}

func TestCollision(t *testing.T) {
	for names, want := range map[string]bool{"a tool_search": true, "a Tool_Search": false, "tool_search_x": false} {
		if got := testPolicy().Plan(Request{Names: strings.Fields(names)}).Collision; got != want {
			t.Errorf("collision of %q is %v, want %v", names, got, want)
		}
	}
}

func TestDirectory(t *testing.T) {
	directory := testPolicy().Plan(Request{Names: []string{"b<x>", "a&b", "天气.查询", "two\nlines", "end"}}).Directory()
	block := "<available_deferred_tools>\na&amp;b\nb&lt;x&gt;\ntwo&#10;lines\n天气.查询\n</available_deferred_tools>"
	if !strings.HasSuffix(directory, block) {
		t.Errorf("the directory ends in\n%s\nwant\n%s", directory, block)
	}
	for _, rule := range []string{"cannot be called yet", "select:NAME", "next turn", "same turn", "task is done"} {
		if !strings.Contains(directory, rule) {
			t.Errorf("the rule text does not say %q", rule)
		}
	}
}

func TestNameEncoding(t *testing.T) {
	policy := testPolicy()
	policy.DotSeparator = "-_-"
	plan := policy.Plan(Request{Names: []string{"a.b", "c.d", "c-_-d", "x-_-y.z", "plain"}})
	seen := map[string]bool{}
	for name, want := range map[string]string{
		"a.b": "a-_-b", "c.d": "c.d", "c-_-d": "c-_-d", "x-_-y.z": "x-_-y.z", "plain": "plain", "gone.tool": "gone-_-tool",
	} {
		got := plan.Encode(name)
		if got != want {
			t.Errorf("%s is encoded as %s, want %s", name, got, want)
		}
		if seen[got] {
			t.Errorf("two tools are called %s", got)
		}
		seen[got] = true
		if back := plan.Decode(got); back != name && name != "gone.tool" {
			t.Errorf("%s comes back as %s", name, back)
		}
	}
}

func TestHasLongerHidden(t *testing.T) {
	plan := testPolicy().Plan(Request{Names: []string{"get_weather", "end"}})
	for prefix, want := range map[string]bool{
		"get": true, "get_weather": false, "tool": true, "tool_search": false, "en": false, "x": false, "": true,
	} {
		if got := plan.HasLongerHidden(prefix); got != want {
			t.Errorf("%q begins a longer hidden name: %v, want %v", prefix, got, want)
		}
	}
}
