package openai

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

func knownTools(names ...string) func(string) bool {
	return func(name string) bool { return slices.Contains(names, name) }
}

var textTools = knownTools("end", "music.search", "a", "b", "tool_search")

// textCallCases are texts with the calls that they hold: "name arguments", one a line, behind the id if one was given.
var textCallCases = []struct{ name, text, want string }{
	{"tool with arguments", `{"tool":"end","arguments":{"memo":"x"}}`, `end {"memo":"x"}`},
	{"name with arguments", `{"name":"music.search","arguments":{"query":"q"}}`, `music.search {"query":"q"}`},
	{"function with parameters", `{"function":"end","parameters":{"memo":"x"}}`, `end {"memo":"x"}`},
	{"tool with flat arguments", `{"tool":"end","memo":"x","n":[1]}`, `end {"memo":"x","n":[1]}`},
	{"tool alone", `{"tool":"end"}`, `end {}`},
	{"flat arguments of other forms' names", `{"tool":"end","name":"n","function":"f","parameters":[1]}`,
		`end {"name":"n","function":"f","parameters":[1]}`},
	{"arguments as a string", `{"tool":"end","arguments":"{\"memo\":\"x\\ny\"}"}`, `end {"memo":"x\ny"}`},
	{"parameters as a string", `{"function":"end","parameters":" {} "}`, `end {}`},
	{"arguments first", `{"arguments":{"memo":"x"},"name":"end"}`, `end {"memo":"x"}`},
	{"parameters first", `{"parameters":{},"function":"end"}`, `end {}`},
	{"several of mixed forms", "{\"tool\":\"a\"}\n\n{\"name\":\"b\",\"arguments\":{}}{\"function\":\"a\",\"parameters\":{\"x\":1}}",
		"a {}\nb {}\na {\"x\":1}"},
	{"white space all around", " \n\t{ \"tool\" : \"a\" , \"x\" : 1 }\r\n ", `a {"x" : 1}`},
	{"escapes in keys and names", `{"\u0074ool":"\u0061","k\"ey":"}"}`, `a {"k\"ey":"}"}`},
	{"numbers and Unicode stay as written", `{"tool":"a","n":12345678901234567890,"é":"\u00e9 <&>"}`,
		`a {"n":12345678901234567890,"é":"\u00e9 <&>"}`},
	{"fence", "```json\n{\"tool\":\"a\"}\n```", `a {}`},
	{"fence without a word", "```\n{\"tool\":\"a\"}\n```\n", `a {}`},
	{"fence of tildes", "~~~~ json\r\n{\"tool\":\"a\"}\r\n~~~~\r\n", `a {}`},
	{"fence within its content", "````\n{\"tool\":\"a\",\"x\":\"```\"}\n````", "a {\"x\":\"```\"}"},
	{"several in a fence", "```\n{\"tool\":\"a\"}\n{\"tool\":\"b\"}\n```", "a {}\nb {}"},

	{"list", `{"tool_calls":[{"id":"c1","name":"end","arguments":{}}]}`, `c1 end {}`},
	{"list without ids", `{"tool_calls":[{"name":"a","arguments":{"x":1}},{"arguments":"{}","name":"b"}]}`,
		"a {\"x\":1}\nb {}"},
	{"list in a fence", "```json\n{\"tool_calls\": [ {\"name\":\"a\",\"arguments\":{}} ] }\n```", `a {}`},

	{"tag", `<tool name="end" params='{"memo":"x"}' />`, `end {"memo":"x"}`},
	{"paired tag", `<tool name='end' parameters='{"memo":"x"}'></tool>`, `end {"memo":"x"}`},
	{"paired tag with space", "<tool\n name = 'end'\n arguments = '{}' > </tool>", `end {}`},
	{"several tags", `<tool name="a" params='{}'/> <tool params="{}" name="b"/>`, "a {}\nb {}"},
	{"HTML escapes", `<tool name="a" params="{&quot;q&quot;:&quot;x &amp; y &lt; z&#39;&quot;}"/>`,
		`a {"q":"x & y < z'"}`},
	{"backslash escapes", `<tool name="a" params="{\"q\":\"x \\\"y\\\"\\nz\"}"/>`, `a {"q":"x \"y\"\nz"}`},
	{"JSON escapes within single quotes", `<tool name="a" params='{"q":"x \"y\"\nz \\"}'/>`, `a {"q":"x \"y\"\nz \\"}`},
	{"an escaped quote within single quotes", `<tool name="a" params='{"q":"it\'s \"y\""}'/>`, `a {"q":"it's \"y\""}`},
	{"escapes within a name", `<tool name="mus&#105;c.se\arch" params='{}'/>`, ""},
	{"HTML escapes within a name", `<tool name="mus&#105;c.search" params='{}'/>`, `music.search {}`},
	{"brackets within a value", `<tool name="a" params='{"q":"/></tool>"}'/>`, `a {"q":"/></tool>"}`},

	{"execution", `<tool_execution><tool_call name="a" arguments='{}'></tool_call></tool_execution>`, `a {}`},
	{"execution without arguments", `<tool_execution><tool_call name="a"></tool_call></tool_execution>`, `a {}`},
	{"execution of several", "<tool_execution>\n <tool_call name=\"a\" arguments='{\"x\":1}' />\n <tool_call name='b'/>\n</tool_execution>\n",
		"a {\"x\":1}\nb {}"},
	{"two executions", `<tool_execution><tool_call name="a"/></tool_execution><tool_execution><tool_call name="b"/></tool_execution>`,
		"a {}\nb {}"},

	{"invoke", `<function_calls><invoke name="a"><arguments>{"q":1}</arguments></invoke></function_calls>`,
		`a {"q":1}`},
	{"several invokes", "<function_calls>\n<invoke name='a'>\n<arguments>\n{\"q\":1}\n</arguments>\n</invoke>\n" +
		"<invoke name='b'><arguments>{}</arguments></invoke>\n</function_calls>", "a {\"q\":1}\nb {}"},
	{"invoke with literal brackets", `<function_calls><invoke name="a"><arguments>{"q":"x < y & z &lt;"}</arguments></invoke></function_calls>`,
		`a {"q":"x < y & z &lt;"}`},
	{"invoke with escaped quotes", `<function_calls><invoke name="a"><arguments>{&quot;q&quot;:1}</arguments></invoke></function_calls>`,
		`a {"q":1}`},

	{"block", `<function=end><parameter=memo>text</parameter></function>`, `end {"memo":"text"}`},
	{"block without parameters", `<function=end></function>`, `end {}`},
	{"block of several lines", "<function=end>\n<parameter=memo>\n two\nlines \n</parameter>\n<parameter=n>\n12\n</parameter>\n</function>\n",
		`end {"memo":"two\nlines","n":12}`},
	{"several blocks", "<function=a></function>\n<function=b></function>", "a {}\nb {}"},
	{"values that are JSON",
		`<function=a><parameter=o>{"x":[1]}</parameter><parameter=t>true</parameter><parameter=z>null</parameter>` +
			`<parameter=s>"q"</parameter><parameter=f>-1.5e3</parameter></function>`,
		`a {"o":{"x":[1]},"t":true,"z":null,"s":"q","f":-1.5e3}`},
	{"values that are text",
		`<function=a><parameter=n>007</parameter><parameter=v>1.2.3</parameter><parameter=e></parameter>` +
			`<parameter=q>"so" he said</parameter><parameter=c>if a < b && c > d</parameter></function>`,
		`a {"n":"007","v":"1.2.3","e":"","q":"\"so\" he said","c":"if a < b && c > d"}`},
	{"block in a fence", "```xml\n<function=end>\n</function>\n```", `end {}`},
}

// ordinaryTexts are no calls, and not even broken ones.
var ordinaryTexts = []string{
	"", " \n", "Hello", `{"tool":"a",}`, "{}", "{ }", "[]", `[{"tool":"a"}]`, `"a"`, "12", "null", "<",
	"<b>bold</b>", "<tools>", "<tool>", "<toolbox />",
	"`code`", "``", "```", "```python\nprint(1)\n```", "```json {\"tool\":\"a\"} ```",
	"```a very long word that no renderer would know\n{\"tool\":\"a\"}\n```",
	`Now: {"tool":"a"}`, `{"tool":"a"} Done.`, `{"tool":"a"} and {"tool":"b"}`, `{"tool":"a"},{"tool":"b"}`,
	`{"name":"Ann","age":3}`, `{"name":"Ann"}`, `{"name":["Ann"]}`, `{"answer":"x","tool":"a"}`,
	`{"function":"sin","x":1}`,
	`{"tool":5}`, `{"tool":{"a":1}}`, `{"tool_calls":3}`, `{"tool_calls":[],"x":1}`, `{"arguments":[1]}`,
	`{"arguments":{},"answer":1}`,
	`{"name":"a","arguments":{},"id":"x"}`, `{"function":"a","parameters":{},"x":1}`, `{"name":"a","parameters":{}}`,
	`<tool name="a" params='{}'/> Done.`, `<function=a></function> Done.`,
	"<function=a></function>\nand\n<function=b></function>",
	"```\n```\n{\"tool\":\"a\"}\n```\n```", "{\"tool\":\"a\"}\n```",
	`{"tool_calls":[{"name":"a","arguments":{}}]} {"tool":"a"}`,
	`{"tool":"a"} <function=a></function>`,
}

// unreadTexts look like calls and cannot be read safely.
var unreadTexts = []struct {
	name, text string
	want       error
}{
	{"cut object", `{"tool":"a","arguments":{"x":`, errTextJSON},
	{"cut string", `{"tool":"a`, errTextJSON},
	{"nothing but an opening", `{`, errTextJSON},
	{"broken value", `{"tool":"a","x":tru}`, errTextJSON},
	{"control character in a string", "{\"tool\":\"a\",\"x\":\"\n\"}", errTextJSON},
	{"too deep", `{"tool":"a","x":` + strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1) + `}`,
		errTextJSON},
	{"unknown name", `{"tool":"other"}`, errTextUnknown},
	{"one unknown name", `{"tool":"a"}{"tool":"other"}`, errTextUnknown},
	{"other spelling", `{"tool":"A"}`, errTextUnknown},
	{"empty name", `{"tool":""}`, errTextName},
	{"flat beside arguments", `{"tool":"a","arguments":{},"x":1}`, errTextKeys},
	{"repeated key", `{"tool":"a","x":1,"x":2}`, errTextKeys},
	{"repeated key, escaped", `{"tool":"a","x":1,"\u0078":2}`, errTextKeys},
	{"arguments that could be flat", `{"tool":"a","parameters":{"x":1}}`, errTextKeys},
	{"arguments that are a list in a string", `{"name":"a","arguments":"[]"}`, errTextArguments},
	{"arguments that are no JSON", `{"name":"a","arguments":"{x}"}`, errTextArguments},
	{"arguments that are two objects", `{"name":"a","arguments":"{}{}"}`, errTextArguments},
	{"empty arguments", `{"name":"a","arguments":""}`, errTextArguments},
	{"empty list", `{"tool_calls":[]}`, errTextKeys},
	{"list of no objects", `{"tool_calls":["a"]}`, errTextKeys},
	{"list with another key", `{"tool_calls":[{"name":"a","arguments":{},"type":"function"}]}`, errTextKeys},
	{"list with a repeated key", `{"tool_calls":[{"name":"a","name":"a","arguments":{}}]}`, errTextKeys},
	{"list without arguments", `{"tool_calls":[{"name":"a"}]}`, errTextKeys},
	{"list without a name", `{"tool_calls":[{"arguments":{}}]}`, errTextKeys},
	{"list with a number for a name", `{"tool_calls":[{"name":1,"arguments":{}}]}`, errTextName},
	{"blank id", `{"tool_calls":[{"id":" ","name":"a","arguments":{}}]}`, errTextID},
	{"null id", `{"tool_calls":[{"id":null,"name":"a","arguments":{}}]}`, errTextID},
	{"equal ids", `{"tool_calls":[{"id":"x","name":"a","arguments":{}},{"id":"x","name":"b","arguments":{}}]}`,
		errTextID},
	{"list behind a call", `{"tool":"a"}{"tool_calls":[{"name":"a","arguments":{}}]}`, errTextMixed},
	{"fence without an end", "```json\n{\"tool\":\"a\"}", errTextUnclosed},
	{"fence with a shorter end", "````\n{\"tool\":\"a\"}\n```", errTextUnclosed},
	{"tag without arguments", `<tool name="a"/>`, errTextArguments},
	{"tag with arguments twice", `<tool name="a" params='{}' arguments='{}'/>`, errTextTag},
	{"tag with a name twice", `<tool name="a" name="a" params='{}'/>`, errTextTag},
	{"tag without a name", `<tool params='{}'/>`, errTextName},
	{"tag with another attribute", `<tool name="a" params='{}' id="1"/>`, errTextTag},
	{"tag without quotes", `<tool name=a params='{}'/>`, errTextTag},
	{"tag without a space between", `<tool name="a"params='{}'/>`, errTextTag},
	{"tag without an end", `<tool name="a" params='{}'`, errTextTag},
	{"tag that ends in a backslash", `<tool name="a" params='{\`, errTextTag},
	{"tag with text in it", `<tool name="a" params='{}'>x</tool>`, errTextTag},
	{"tag without an end tag", `<tool name="a" params='{}'>`, errTextTag},
	{"tag with broken arguments", `<tool name="a" params='{"x":}'/>`, errTextArguments},
	{"tag with a list", `<tool name="a" params='[]'/>`, errTextArguments},
	{"mixed tags", `<tool name="a" params='{}'/><function=a></function>`, errTextMixed},
	{"tag and JSON", `<tool name="a" params='{}'/>{"tool":"a"}`, errTextMixed},
	{"empty execution", `<tool_execution></tool_execution>`, errTextTag},
	{"execution with an attribute", `<tool_execution id="1"><tool_call name="a"/></tool_execution>`, errTextTag},
	{"execution with text", `<tool_execution>x<tool_call name="a"/></tool_execution>`, errTextTag},
	{"execution with params", `<tool_execution><tool_call name="a" params='{}'/></tool_execution>`, errTextTag},
	{"execution without an end", `<tool_execution><tool_call name="a"/>`, errTextTag},
	{"empty invokes", `<function_calls></function_calls>`, errTextTag},
	{"invoke without arguments", `<function_calls><invoke name="a"></invoke></function_calls>`, errTextTag},
	{"invoke with two arguments", `<function_calls><invoke name="a"><arguments>{}</arguments><arguments>{}</arguments></invoke></function_calls>`, errTextTag},
	{"invoke with empty arguments", `<function_calls><invoke name="a"><arguments></arguments></invoke></function_calls>`, errTextArguments},
	{"invoke with another attribute", `<function_calls><invoke name="a" id="b"><arguments>{}</arguments></invoke></function_calls>`, errTextTag},
	{"invoke with parameters", `<function_calls><invoke name="a"><parameter name="q">1</parameter></invoke></function_calls>`, errTextTag},
	{"block with a repeated parameter", `<function=a><parameter=x>1</parameter><parameter=x>1</parameter></function>`, errTextParameter},
	{"block with a broken object", `<function=a><parameter=x>{"y":</parameter></function>`, errTextParameter},
	{"block with a broken string", `<function=a><parameter=x>"y</parameter></function>`, errTextParameter},
	{"block with a broken escape", `<function=a><parameter=x>"\y"</parameter></function>`, errTextParameter},
	{"block with stray text", `<function=a>x<parameter=x>1</parameter></function>`, errTextTag},
	{"block without the parameter's end", `<function=a><parameter=x>1</function>`, errTextTag},
	{"block with a parameter in a parameter", `<function=a><parameter=x>1<parameter=y>2</parameter></function>`,
		errTextParameter},
	{"block without an end", `<function=a><parameter=x>1</parameter>`, errTextTag},
	{"block with an end too early", `<function=a><parameter=x>1</function><function=b><parameter=x>1</parameter></function>`, errTextParameter},
	{"block without a name", `<function=></function>`, errTextName},
	{"block with a parameter without a name", `<function=a><parameter=>1</parameter></function>`, errTextParameter},
	{"block with an unknown name", `<function=other></function>`, errTextUnknown},
}

func listCalls(calls []TextCall) string {
	var lines []string
	for _, c := range calls {
		line := c.Name + " " + string(c.Arguments)
		if c.ID != "" {
			line = c.ID + " " + line
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestParseTextCalls(t *testing.T) {
	for _, c := range textCallCases {
		t.Run(c.name, func(t *testing.T) {
			calls, err := ParseTextCalls([]byte(c.text), textTools)
			if got := listCalls(calls); got != c.want || (err == nil) != (c.want != "") {
				t.Errorf("got\n%s\nand error %v, want\n%s", got, err, c.want)
			}
		})
	}
	for _, text := range ordinaryTexts {
		if calls, err := ParseTextCalls([]byte(text), textTools); calls != nil || err != nil {
			t.Errorf("%q gave calls %v and error %v, though it is ordinary text", text, calls, err)
		}
	}
	for _, c := range unreadTexts {
		t.Run(c.name, func(t *testing.T) {
			if calls, err := ParseTextCalls([]byte(c.text), textTools); calls != nil || err != c.want {
				t.Errorf("got calls %v and error %v, want error %v", calls, err, c.want)
			}
		})
	}
	if calls, err := ParseTextCalls([]byte(`{"tool":"a"}`), nil); calls != nil || err != errTextUnknown {
		t.Errorf("without known tools: got calls %v and error %v", calls, err)
	}
}

// TestTextCallPrefix feeds every text of calls in two pieces, cut at every byte, and in single bytes: it may be calls all
// the way.
func TestTextCallPrefix(t *testing.T) {
	texts := []string{}
	for _, c := range textCallCases {
		texts = append(texts, c.text)
	}
	for _, text := range texts {
		for at := range len(text) + 1 {
			var p TextCallPrefix
			if !p.Feed([]byte(text[:at])) || !p.Feed([]byte(text[at:])) {
				t.Errorf("%q cut at %d was let go, though it is calls", text, at)
			}
		}
		var p TextCallPrefix
		for i := range len(text) {
			if !p.Feed([]byte(text[i : i+1])) {
				t.Errorf("%q was let go at byte %d, though it is calls", text, i)
			}
		}
	}
}

// TestTextCallPrefixLetsGo says at which byte ordinary text is let go.
func TestTextCallPrefixLetsGo(t *testing.T) {
	cases := []struct{ held, release string }{
		{"", "H"}, {"", "1"}, {"", "["}, {"", "\""}, {" \n ", "x"}, {"", "\u00e9"}, {"", "}"},
		{"<", "b"}, {"<tool", ">"}, {"<tool", "b"}, {"<tool_", "x"}, {"<function", ">"}, {"<", "/"},
		{"`", "x"}, {"``", " "}, {"```", "é"}, {"```python\n", "p"}, {"```json\n", "["}, {"~~", "x"},
		{"```" + strings.Repeat("x", longestInfo), "x"},
		{"{", "}"}, {`{ "answer`, `"`}, {`{"name"`, "x"}, {`{"name":`, "["}, {`{"name":"Ann","age`, `"`},
		{`{"name":"Ann"}`, "x"},
		{`{"name":"Ann","arguments":{},"x`, `"`}, {`{"tool":"a"} `, "a"}, {`{"tool":"a"}`, ","}, {`{"tool":"a"}`, "`"},
		{`{"tool_calls":`, "{"}, {`{"tool_calls":[],"x`, `"`}, {`{"tool_calls":[]}`, "{"},
		{"```\n{\"tool\":\"a\"}\n```", "x"},
		{`{"tool":"a","x":[{"y":"]}"}] `, "]"}, {`{"tool":"a"`, `"`},
	}
	for _, c := range cases {
		var p TextCallPrefix
		if !p.Feed([]byte(c.held)) {
			t.Errorf("%q was let go", c.held)
			continue
		}
		if p.Feed([]byte(c.release)) {
			t.Errorf("%q was held after %q", c.release, c.held)
		}
		if p.Feed([]byte(" ")) || p.Feed(nil) {
			t.Errorf("%q was held again", c.held+c.release)
		}
	}
}

func TestNewTextCallID(t *testing.T) {
	first, second := newTextCallID(), newTextCallID()
	if !strings.HasPrefix(first, "call_txt_") || first == second || len(first) > 64 {
		t.Errorf("got the ids %s and %s", first, second)
	}
}

func FuzzParseTextCalls(f *testing.F) {
	for _, c := range textCallCases {
		f.Add([]byte(c.text), 3)
	}
	for _, text := range ordinaryTexts {
		f.Add([]byte(text), 1)
	}
	for _, c := range unreadTexts {
		if len(c.text) < 1000 {
			f.Add([]byte(c.text), 7)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, at int) {
		before := bytes.Clone(text)
		calls, err := ParseTextCalls(text, func(name string) bool { return name != "" })
		if !bytes.Equal(text, before) {
			t.Fatal("the text was changed")
		}
		if calls != nil && err != nil {
			t.Fatalf("both calls and the error %v", err)
		}
		for _, c := range calls {
			if c.Name == "" || !gjson.ValidBytes(c.Arguments) || !gjson.ParseBytes(c.Arguments).IsObject() {
				t.Fatalf("the call %q has the arguments %q", c.Name, c.Arguments)
			}
		}
		// However a text is cut, the answer is the same; what was let go is never called.
		at = min(max(at, 0), len(text))
		var whole, pieces TextCallPrefix
		held := pieces.Feed(text[:at])
		held = pieces.Feed(text[at:]) && held
		if whole.Feed(text) != held {
			t.Fatalf("cut at %d the text was held: %v", at, held)
		}
		if (calls != nil || err != nil) && !held {
			t.Fatalf("the text was let go, but gave %d calls and the error %v", len(calls), err)
		}
	})
}

// hostileTexts would take long to read for a reader that looks at anything twice.
func hostileTexts(n int) map[string]string {
	return map[string]string{
		"brackets":    `{"tool":"a","x":` + strings.Repeat("[", n),
		"objects":     strings.Repeat(`{"tool":"a"}`, n/12),
		"keys":        `{"tool":"a"` + strings.Repeat(`,"x":1`, n/6),
		"quotes":      `<function=a>` + strings.Repeat(`<parameter=x>"</parameter>`, n/26),
		"parameters":  `<function=a>` + strings.Repeat(`<parameter=x>`, n/13),
		"attributes":  `<tool ` + strings.Repeat(`name="a" `, n/9),
		"backslashes": `<tool name="a" params="` + strings.Repeat(`\`, n),
		"entities":    `<tool name="a" params='{"x":"` + strings.Repeat(`&amp`, n/4) + `"}'/>`,
		"tags":        strings.Repeat(`<tool name="a" params='{}'/>`, n/28),
		"fences":      strings.Repeat("`", n),
		"space":       strings.Repeat(" ", n),
		"escapes":     `{"tool":"a","x":"` + strings.Repeat(`\\`, n/2) + `"}`,
	}
}

// BenchmarkParseTextCalls reads plain calls, and hostile texts of two sizes: the time per byte is to be the same.
func BenchmarkParseTextCalls(b *testing.B) {
	run := func(name, text string) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				_, _ = ParseTextCalls([]byte(text), textTools)
			}
		})
	}
	run("prose", "The weather in Oslo is fine today, and it will stay so until the end of the week.")
	run("json", `{"name":"music.search","arguments":{"query":"songs by a band"}}`)
	run("block", `<function=end><parameter=memo>text</parameter></function>`)
	for _, n := range []int{1 << 12, 1 << 18} {
		for name, text := range hostileTexts(n) {
			run(name+"-"+strconv.Itoa(n), text)
		}
	}
}

func BenchmarkTextCallPrefix(b *testing.B) {
	piece := []byte("The weather")
	b.ReportAllocs()
	for b.Loop() {
		var p TextCallPrefix
		if p.Feed(piece) {
			b.Fatal("prose was held")
		}
	}
}
