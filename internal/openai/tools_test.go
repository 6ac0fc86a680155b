package openai

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

const (
	toolRead = `{"type":"function","function":{"name":"read_file","description":"Reads <a> \"file\".",` +
		`"parameters":{"type":"object","n":9223372036854775807}}}`
	toolPing   = `{ "type" : "function" , "function" : { "name" : "ping" } }`
	toolStrict = `{"type":"function","function":{"strict":false,"parameters":null,"name":"str\u0069ct"},"x":1.0}`
	toolFlat   = `{"type":"function","name":"flat","parameters":null}`
	toolPatch  = `{"type":"custom","custom":{"name":"patch","format":{"type":"text"}}}`
	toolSearch = `{"type":"web_search"}`
	toolMCP    = `{"type":"mcp","server_label":"docs"}`
)

func chatTools(t testing.TB, elements ...string) *Tools {
	t.Helper()
	tools := scanTools([]byte("["+strings.Join(elements, " , ")+"] , and more"), true)
	if tools == nil {
		t.Fatal("the array was not read")
	}
	return tools
}

func TestScanTools(t *testing.T) {
	tools := chatTools(t, toolRead, toolPatch, toolPing, toolStrict, toolSearch, toolFlat,
		`{"type":"function","function":{"description":"no name"}}`, `7`, `{"function":{"name":"no type"}}`)
	var names []string
	for i := range tools.Functions {
		f := &tools.Functions[i]
		names = append(names, f.Name)
		if f.Name == "read_file" && (tools.DescriptionText(f) != `Reads <a> "file".` ||
			string(f.Parameters.Of(tools.Raw)) != `{"type":"object","n":9223372036854775807}` ||
			string(f.Of(tools.Raw)) != toolRead) {
			t.Errorf("read_file was read as %+v", f)
		}
		if f.Name == "ping" && (tools.DescriptionText(f) != "" || !f.Parameters.Absent()) {
			t.Errorf("ping was read as %+v", f)
		}
	}
	if got := strings.Join(names, ","); got != "read_file,ping,strict,flat" {
		t.Errorf("PC-083: the functions are %s", got)
	}
	if tools.Native || len(tools.entries) != 9 || tools.Raw[len(tools.Raw)-1] != ']' {
		t.Errorf("got %d elements, native search %v", len(tools.entries), tools.Native)
	}
	for _, native := range []string{`{"type":"tool_search"}`, `{"type":"function","function":{"name":"a",` +
		`"defer_loading":true}}`, `{"type":"function","name":"a","defer_loading":true}`} {
		if !chatTools(t, native).Native {
			t.Errorf("PC-023: %s is not the provider's own search", native)
		}
	}
	if chatTools(t, `{"type":"function","function":{"name":"a","defer_loading":false}}`).Native {
		t.Error("a tool that is not deferred was taken for a deferred one")
	}
	for _, broken := range []string{``, `{}`, `[`, `[{]`, `[1,]`} {
		if scanTools([]byte(broken), true) != nil {
			t.Errorf("%q was read", broken)
		}
	}
}

func TestRenderTools(t *testing.T) {
	tools := chatTools(t, toolRead, toolPatch, toolPing, toolStrict, toolSearch, toolMCP)
	keep := func(kept ...int) []bool {
		out := make([]bool, len(tools.Functions))
		for _, i := range kept {
			out[i] = true
		}
		return out
	}
	virtual := Chat.VirtualTool("tool_search", "omit")
	cases := []struct {
		name string
		s    Selection
		want []string
	}{
		{"all kept", Selection{Keep: keep(0, 1, 2)}, []string{toolRead, toolPatch, toolPing, toolStrict, toolSearch,
			toolMCP}},
		{"what is no function is kept in place", Selection{Keep: keep(1), Virtual: virtual}, []string{toolPatch,
			toolPing, toolSearch, toolMCP, string(virtual)}},
		{"PC-032 loaded tools are appended in their order", Selection{Keep: keep(0), Virtual: virtual,
			Loaded: []int{2, 1}},
			[]string{toolRead, toolPatch, toolSearch, toolMCP, string(virtual), toolStrict, toolPing}},
		{"a kept tool is not loaded again", Selection{Keep: keep(0), Loaded: []int{0, 1}}, []string{toolRead,
			toolPatch, toolSearch, toolMCP, toolPing}},
		{"ruled out", Selection{Keep: keep(0), Drop: []bool{true, true, true}},
			[]string{toolRead}},
		{"encoded", Selection{Keep: keep(0), Loaded: []int{2}, Drop: []bool{true, true, true},
			Encode: strings.ToUpper},
			[]string{strings.Replace(toolRead, "read_file", "READ_FILE", 1), strings.Replace(toolStrict,
				`str\u0069ct`, "STRICT", 1)}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			want := "[" + strings.Join(c.want, ",") + "]"
			if got := string(tools.Render([]byte("> "), c.s)); got != "> "+want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if again := tools.Detach().Render(nil, c.s); string(again) != want {
				t.Errorf("a copy gave\n%s", again)
			}
		})
	}
	empty := Selection{Keep: keep(), Drop: []bool{true, true, true}}
	if got := tools.Render([]byte("> "), empty); string(got) != "> " {
		t.Errorf("with nothing to show got %s", got)
	}
}

// TestMembersThatAreNoFunctions: a namespace group may hold custom tools, which an allowed_tools choice rules out as well.
func TestMembersThatAreNoFunctions(t *testing.T) {
	body := `{"input":"x","tools":[{"type":"namespace","name":"crm","tools":[{"type":"function","name":"list"},{"type":"custom","name":"sql"}]},` +
		`{"type":"custom","name":"patch"}],"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[%s]}}`
	const all = "[false false]"
	for allowed, want := range map[string]string{
		`{"type":"function","name":"other"}`:                  "[true true]",
		`{"type":"custom","name":"patch"}`:                    "[true false]",
		`{"type":"custom","name":"sql"}`:                      "[false true]",
		`{"type":"custom","name":"sql","namespace":"crm"}`:    "[false true]",
		`{"type":"custom","name":"sql","namespace":"erp"}`:    "[true true]",
		`{"type":"namespace","name":"crm"}`:                   "[false true]",
		`{"type":"custom"}`:                                   all,
		`{"type":"namespace","name":"crm"},{"type":"custom"}`: all,
	} {
		v := responsesView(t, fmt.Sprintf(body, allowed))
		got := v.Tools.Dropped(&v.Choice)
		if got == nil {
			got = []bool{false, false}
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s drops %v, want %s", allowed, got, want)
		}
		if group := strings.Contains(allowed, `"namespace","name":"crm"`); v.Choice.Allows("crm.list") != group {
			t.Errorf("%s allows the group's function: %v", allowed, !group)
		}
		rendered := string(v.Tools.Render(nil, Selection{Keep: []bool{false}, Drop: got}))
		if strings.Contains(rendered, `"sql"`) == got[0] || strings.Contains(rendered, `"patch"`) == got[1] {
			t.Errorf("%s leaves %s", allowed, rendered)
		}
	}
}

func TestForcedMember(t *testing.T) {
	for forced, want := range map[string]string{
		`"name":"list"`: "crm.list", `"name":"list","namespace":"crm"`: "crm.list", `"name":"crm.list"`: "crm.list", `"name":"go"`: "go", `"name":"ist"`: "ist",
	} {
		v := responsesView(t, `{"input":"x","tools":[{"type":"namespace","name":"crm","tools":[{"type":"function","name":"list"}]},{"type":"function","name":"go"}],`+
			`"tool_choice":{"type":"function",`+forced+`}}`)
		if got := v.Tools.Forced(&v.Choice); got != want {
			t.Errorf("%s forces %s, want %s", forced, got, want)
		}
	}
}

func TestDroppedTools(t *testing.T) {
	tools := chatTools(t, toolRead, toolPatch, toolSearch, toolMCP)
	for name, c := range map[string]struct {
		choice string
		want   []bool
	}{
		"no restriction": {`"auto"`, nil},
		"a function only": {`{"type":"allowed_tools","allowed_tools":{"tools":[{"type":"function",` +
			`"function":{"name":"read_file"}}]}}`, []bool{true, true, true}},
		"others": {`{"type":"allowed_tools","tools":[{"type":"custom","custom":{"name":"patch"}},` +
			`{"type":"web_search"},{"type":"mcp","server_label":"other"}]}`, []bool{false, false, true}},
		"nothing to drop": {`{"type":"allowed_tools","tools":[{"type":"custom","name":"patch"},{"type":"web_search"},` +
			`{"type":"mcp","server_label":"docs"}]}`, nil},
	} {
		choice := scanChoice([]byte(c.choice), Range{0, len(c.choice)})
		got := tools.Dropped(&choice)
		if len(got) != len(c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: got %v, want %v", name, got, c.want)
			}
		}
	}
}

// FuzzTools renders any array: what was JSON stays JSON, and everything kept means everything as it came.
func FuzzTools(f *testing.F) {
	f.Add([]byte("["+toolRead+","+toolPatch+","+toolFlat+"]"), true)
	f.Add([]byte(`[{"type":"namespace","name":"mail","tools":[{"type":"function","name":"send"},{"type":"custom",`+
		`"name":"x"},3]},{"type":"function","name":"a"}]`), false)
	f.Add([]byte(`[{"type":"namespace","tools":[ ]},{"type":"function","function":{"name":}}]`), true)
	f.Fuzz(func(t *testing.T, b []byte, nested bool) {
		tools := scanTools(b, nested)
		if tools == nil {
			return
		}
		valid := gjson.ValidBytes(tools.Raw)
		all := Selection{Keep: make([]bool, len(tools.Functions))}
		none := Selection{Keep: make([]bool, len(tools.Functions)), Encode: func(s string) string { return s + "\"" }}
		for i := range tools.Functions {
			all.Keep[i] = true
			none.Loaded = append(none.Loaded, i)
		}
		for _, s := range []Selection{all, none} {
			if out := tools.Render(nil, s); valid && len(out) > 0 && !gjson.ValidBytes(out) {
				t.Fatalf("%s\nbecame\n%s", tools.Raw, out)
			}
		}
		if !valid || len(tools.groups) > 0 {
			return
		}
		if out := tools.Render(nil, all); len(out) > 0 && !bytes.Equal(bytes.Join(rawElements(out), nil),
			bytes.Join(rawElements(tools.Raw), nil)) {
			t.Fatalf("%s\nbecame\n%s", tools.Raw, out)
		}
	})
}

func rawElements(array []byte) [][]byte {
	var out [][]byte
	for _, r := range elements(array, 0) {
		out = append(out, r.Of(array))
	}
	return out
}

func BenchmarkTools(b *testing.B) {
	tools := chatTools(b, strings.Split(strings.Repeat(toolRead+"\n", 200), "\n")[:200]...)
	raw := tools.Raw
	b.Run("scan", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(raw)))
		for b.Loop() {
			scanTools(raw, true)
		}
	})
	b.Run("render", func(b *testing.B) {
		s := Selection{Keep: make([]bool, 200), Loaded: []int{3, 1, 100}}
		b.ReportAllocs()
		for b.Loop() {
			tools.Render(nil, s)
		}
	})
}
