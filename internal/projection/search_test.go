package projection

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// small is the catalog of the contract's examples.
var small = []Tool{
	{"group.get_member_info", "Read the profile of one person.", []byte(`{"properties":{"member_id":{"type":"string"}}}`)},
	{"group.list_members", "List the people of a group.", nil},
	{"music.search_songs", "Find songs.", []byte(`{"properties":{"artist":{"type":"string"}}}`)},
	{"playlist.mentions", "Collects what search_songs has found.", nil},
	{"avatar.upload", "Set the picture of a member.", []byte(`{"properties":{"user":{"properties":{"name":{"type":"string"}}}}}`)},
	{"user.rename", "Give a user another name.", nil},
	{"web_agent", "Browse the web.", nil},
	{"info_agent", "Answer questions.", nil},
	{"Info_Agent2", "Answer more questions.", nil},
	{"getURLStatus", "Ask a server for its state.", nil},
	{"weather", "当前天气预报", []byte(`{"properties":{"城市":{"type":"string","description":"城市名称"}}}`)},
}

func namesOf(m Matches) []string {
	names := make([]string, 0, len(m.Hits))
	for _, h := range m.Hits {
		names = append(names, h.Name)
	}
	return names
}

func TestQueryLanguage(t *testing.T) {
	x := NewIndex(small)
	tests := map[string]struct {
		first    []string // the results must begin so
		all      bool     // and nothing may follow
		without  []string
		notFound []string
	}{
		"select:web_agent,info_agent":          {first: []string{"web_agent", "info_agent"}, all: true},
		" Select : info_agent , WEB_AGENT ":    {first: []string{"info_agent", "web_agent"}, all: true},
		"select:web_agent,web_agent,Web_Agent": {first: []string{"web_agent"}, all: true},
		"select:nothing,web_agent":             {first: []string{"web_agent"}, all: true, notFound: []string{"nothing"}},
		"select:":                              {all: true, notFound: []string{"select:"}},
		"select: , ,":                          {all: true, notFound: []string{"select: , ,"}},
		"select":                               {all: true, notFound: []string{"select"}},
		"select：`web_agent`":                   {first: []string{"web_agent"}, all: true},
		"group.get_member_info":                {first: []string{"group.get_member_info"}, all: true},
		"GROUP.GET_MEMBER_INFO":                {first: []string{"group.get_member_info"}, all: true},
		"info_agent":                           {first: []string{"info_agent"}, all: true},
		"member_info":                          {first: []string{"group.get_member_info"}},
		"memberInfo":                           {first: []string{"group.get_member_info"}},
		"search_songs":                         {first: []string{"music.search_songs"}},
		"url status":                           {first: []string{"getURLStatus"}},
		"member avatar":                        {first: []string{"avatar.upload"}},
		"member +user":                         {first: []string{"user.rename", "avatar.upload"}, all: true},
		"+user name":                           {first: []string{"user.rename"}, without: []string{"web_agent"}},
		"member +zebra":                        {all: true, notFound: []string{"member +zebra"}},
		"group":                                {without: []string{"avatar.upload", "music.search_songs"}},
		"artist":                               {first: []string{"music.search_songs"}},
		"天气":                                   {first: []string{"weather"}},
		"城市":                                   {first: []string{"weather"}},
		"weather forecast":                     {first: []string{"weather"}},
		"memebr":                               {first: []string{"group.get_member_info"}},
		"zzzzqqqq":                             {all: true, notFound: []string{"zzzzqqqq"}},
		"+":                                    {all: true, notFound: []string{"+"}},
		"!!!":                                  {all: true, notFound: []string{"!!!"}},
		"":                                     {all: true},
	}
	for query, test := range tests {
		t.Run(query, func(t *testing.T) {
			m := x.Search(query, 5)
			got := namesOf(m)
			if len(got) < len(test.first) || !slices.Equal(got[:len(test.first)], test.first) || test.all && len(got) != len(test.first) {
				t.Errorf("got %q, want %q first", got, test.first)
			}
			for _, name := range test.without {
				if slices.Contains(got, name) {
					t.Errorf("%s is among %q", name, got)
				}
			}
			if len(m.NotFound)+len(test.notFound) > 0 && !slices.Equal(m.NotFound, test.notFound) {
				t.Errorf("not found is %q, want %q", m.NotFound, test.notFound)
			}
		})
	}
}

func TestNameSpaceGivesItsTools(t *testing.T) {
	got := namesOf(NewIndex(small).Search("group", 5))
	slices.Sort(got)
	if want := []string{"group.get_member_info", "group.list_members"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNameGoesBeforeEverythingElse(t *testing.T) {
	tools := []Tool{{"zz_invoice_zz_of_some_very_long_name_with_many_parts", "", nil}}
	for i := range 30 {
		tools = append(tools, Tool{fmt.Sprintf("a%d", i), "invoice invoice invoice", []byte(`{"properties":{"invoice":{"description":"invoice"}}}`)})
	}
	if got := namesOf(NewIndex(tools).Search("invoice", 3)); got[0] != tools[0].Name {
		t.Errorf("got %q", got)
	}
}

func TestSelectIsCappedByTheLimit(t *testing.T) {
	m := NewIndex(small).Search("select:web_agent,info_agent,weather", 2)
	if got := namesOf(m); !slices.Equal(got, []string{"web_agent", "info_agent"}) || !m.Truncated {
		t.Errorf("got %q, truncated %v", got, m.Truncated)
	}
	if m := NewIndex(small).Search("select:web_agent,nothing", 1); m.Truncated || len(m.NotFound) != 1 {
		t.Errorf("got %+v", m)
	}
}

func TestAnswerSplitsByWhatIsVisible(t *testing.T) {
	x := NewIndex(small)
	exposed := func(name string) bool { return name == "web_agent" }
	tests := map[string]struct {
		arguments string
		limit     int
		want      string
	}{
		"new and visible": {`{"query":"select:web_agent,info_agent"}`, 5,
			`{"loaded":["info_agent"],"already_loaded":["web_agent"],"not_found":[],"truncated":false,"total_deferred_tools":9}`},
		"itself": {`{"query":"select:tool_search,gone"}`, 5,
			`{"loaded":[],"already_loaded":["tool_search"],"not_found":["gone"],"truncated":false,"total_deferred_tools":9}`},
		"itself by name": {`{"query":"Tool_Search"}`, 5,
			`{"loaded":[],"already_loaded":["tool_search"],"not_found":[],"truncated":false,"total_deferred_tools":9}`},
		"shrunk": {`{"query":"select:web_agent,info_agent","max_results":1}`, 5,
			`{"loaded":[],"already_loaded":["web_agent"],"not_found":[],"truncated":true,"total_deferred_tools":9}`},
		"not grown": {`{"query":"select:web_agent,info_agent","max_results":9}`, 1,
			`{"loaded":[],"already_loaded":["web_agent"],"not_found":[],"truncated":true,"total_deferred_tools":9}`},
		"below one": {`{"query":"select:info_agent","max_results":-3}`, 0,
			`{"loaded":["info_agent"],"already_loaded":[],"not_found":[],"truncated":false,"total_deferred_tools":9}`},
		"wrong type": {`{"query":"select:info_agent,weather","max_results":"1"}`, 5,
			`{"loaded":["info_agent","weather"],"already_loaded":[],"not_found":[],"truncated":false,"total_deferred_tools":9}`},
		"no query": {`{"max_results":3}`, 5,
			`{"loaded":[],"already_loaded":[],"not_found":[],"truncated":false,"total_deferred_tools":9}`},
		"query of a wrong type": {`{"query":["a"]}`, 5,
			`{"loaded":[],"already_loaded":[],"not_found":[],"truncated":false,"total_deferred_tools":9}`},
		"no JSON": {`{"query":`, 5,
			`{"loaded":[],"already_loaded":[],"not_found":[],"truncated":false,"total_deferred_tools":9}`},
		"nothing matches": {`{"query":"<zebra> \"x\""}`, 5,
			`{"loaded":[],"already_loaded":[],"not_found":["<zebra> \"x\""],"truncated":false,"total_deferred_tools":9}`},
		"arguments as a string": {`"{\"query\":\"select:info_agent\"}"`, 5,
			`{"loaded":["info_agent"],"already_loaded":[],"not_found":[],"truncated":false,"total_deferred_tools":9}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := Answer(x, ParseArguments([]byte(test.arguments)), test.limit, "tool_search", exposed, 9)
			if got := string(r.AppendJSON(nil)); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestResultsDependOnNothingButTheCatalog(t *testing.T) {
	tools, queries := quality(t)
	x := NewIndex(tools)
	random := rand.New(rand.NewPCG(1, 2))
	var b Builder
	for range 5 {
		shuffled := slices.Clone(tools)
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		y := b.Index(shuffled)
		for _, i := range random.Perm(len(queries)) {
			if a, b := x.Search(queries[i].text, 7), y.Search(queries[i].text, 7); !reflect.DeepEqual(a, b) {
				t.Fatalf("%q gives %v and %v", queries[i].text, a, b)
			}
		}
	}
}

func TestExplainAddsUp(t *testing.T) {
	x := NewIndex(small)
	for _, query := range []string{"member avatar", "find songs of an artist", "天气 城市", "web_agent"} {
		for _, e := range x.Explain(query, 5) {
			sum := 0.0
			for _, m := range e.Matches {
				if len(m.Fields) == 0 || m.Points <= 0 {
					t.Errorf("%q: %s has the empty match %+v", query, e.Name, m)
				}
				sum += m.Points
			}
			if len(e.Matches) > 0 && (e.NameBonus < 0.999 || e.NameBonus > 1+nameBonus+0.001) {
				t.Errorf("%q: %s has the bonus %f over %f points", query, e.Name, e.NameBonus, sum)
			}
		}
	}
}

func TestBuilderRemembersByContent(t *testing.T) {
	var b Builder
	first := b.Index(small)
	if b.Index(slices.Clone(small)) != first {
		t.Error("an equal catalog is compiled again")
	}
	changed := slices.Clone(small)
	changed[2].Description = "Look for tunes."
	second := b.Index(changed)
	if second == first {
		t.Error("a changed catalog gives the old index")
	}
	if got := namesOf(second.Search("tunes", 1)); !slices.Equal(got, []string{"music.search_songs"}) {
		t.Errorf("got %q", got)
	}
}

func FuzzIndex(f *testing.F) {
	f.Add("a.b", "some text", []byte(`{"properties":{"x":{"$ref":"#/$defs/x"}},"$defs":{"x":{"$ref":"#/$defs/x"}}}`), "some x")
	f.Add("\xff", "\xc3\x28", []byte(`{"properties":{"a":`), "\xff")
	f.Add("n", strings.Repeat("长", 300), []byte(strings.Repeat(`{"items":`, 200)), "长长")
	f.Add("select", "", []byte(`[[[{"enum":["`), "select:select")
	f.Fuzz(func(t *testing.T, name, description string, parameters []byte, query string) {
		tools := append(slices.Clone(small), Tool{name, description, parameters})
		x := NewIndex(tools)
		m := x.Search(query, 3)
		if len(m.Hits) > 3 {
			t.Fatalf("%d results", len(m.Hits))
		}
		slices.Reverse(tools)
		if again := NewIndex(tools).Search(query, 3); !reflect.DeepEqual(m, again) {
			t.Fatalf("%+v and %+v", m, again)
		}
		x.Explain(query, 3)
		if found, ok := x.lookup(name, ""); !ok || compareFold(found, name) != 0 {
			t.Fatalf("%q is not found by its name", name)
		}
	})
}

func FuzzArguments(f *testing.F) {
	f.Add([]byte(`{"query":"a","max_results":3}`))
	f.Add([]byte(`"{\"query\":\"a\"}"`))
	f.Add([]byte(`{"query":"a","max_results":1e999}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		a := ParseArguments(raw)
		if a.OK && (a.Query == "" || a.MaxResults < 0) {
			t.Fatalf("%+v", a)
		}
	})
}

// madeUpWord returns the n-th of many words that can be spoken.
func madeUpWord(n int) string {
	const consonants, vowels = "bcdfghklmnprstvz", "aeiou"
	var word []byte
	for n = n*7919 + 104729; len(word) < 6; n /= 80 {
		word = append(word, consonants[n%16], vowels[n/16%5])
	}
	return string(word)
}

// catalogOf makes a catalog of made-up tools with words that are spread as in real ones.
func catalogOf(n int) []Tool {
	random := rand.New(rand.NewPCG(3, 4))
	word := func() string { return madeUpWord(int(random.ExpFloat64() * 300)) }
	tools := make([]Tool, n)
	for i := range tools {
		var text []string
		for range 20 {
			text = append(text, word())
		}
		tools[i] = Tool{
			Name: fmt.Sprintf("server%d.%s_%s_%d", i/20, word(), word(), i), Description: strings.Join(text, " "),
			Parameters: fmt.Appendf(nil, `{"type":"object","properties":{%q:{"type":"string","description":%q},%q:{"type":"integer"}}}`,
				word(), word()+" of "+word(), word()),
		}
	}
	return tools
}

func BenchmarkSearch(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		x := NewIndex(catalogOf(n))
		long := make([]string, 12)
		for i := range long {
			long[i] = madeUpWord(i * 40)
		}
		long[5] += "x" // a slip
		for _, query := range []string{madeUpWord(3) + " " + madeUpWord(40), strings.Join(long, " ")} {
			b.Run(fmt.Sprintf("tools=%d/words=%d", n, len(strings.Fields(query))), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					x.Search(query, 5)
				}
			})
		}
	}
}

func BenchmarkBuild(b *testing.B) {
	tools := catalogOf(1000)
	b.Run("new", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			NewIndex(tools)
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1000, "µs/tool")
	})
	b.Run("remembered", func(b *testing.B) {
		var builder Builder
		b.ReportAllocs()
		for b.Loop() {
			builder.Index(tools)
		}
	})
}
