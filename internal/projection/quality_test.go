package projection

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// qualityQuery is a query with the tools that serve it; none for a query that no tool of the set serves.
type qualityQuery struct {
	kind, text string
	relevant   []string
}

// quality reads the quality set: tools of made-up servers and queries as models write them.
func quality(t testing.TB) ([]Tool, []qualityQuery) {
	t.Helper()
	rows := func(file string) (rows [][]string) {
		content, err := os.ReadFile("testdata/quality/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
				continue
			}
			cells := strings.Split(line, "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows = append(rows, cells)
		}
		return rows
	}
	var tools []Tool
	for _, row := range rows("tools.txt") {
		var parameters []string
		for parameter := range strings.SplitSeq(row[2], ";") {
			name, description, _ := strings.Cut(parameter, ":")
			parameters = append(parameters, fmt.Sprintf(`%q:{"type":"string","description":%q}`, strings.TrimSpace(name),
				strings.TrimSpace(description)))
		}
		tools = append(tools, Tool{row[0], row[1], []byte(`{"type":"object","properties":{` + strings.Join(parameters, ",") + `}}`)})
	}
	var queries []qualityQuery
	for _, row := range rows("queries.txt") {
		q := qualityQuery{kind: row[0], text: row[1]}
		for name := range strings.SplitSeq(row[2], ",") {
			if name = strings.TrimSpace(name); name != "" {
				q.relevant = append(q.relevant, name)
			}
		}
		queries = append(queries, q)
	}
	return tools, queries
}

// TestQuality holds the search to floors: the share of queries of a kind for which a relevant tool is among the first
// five, and the share of queries that no tool serves for which nothing is found.
func TestQuality(t *testing.T) {
	floors := map[string]float64{
		"exact": 1, "keywords": 1, "paraphrase": 0.97, "typo": 1, "plural": 1, "other language": 0.9, "none": 0.7,
	}
	tools, queries := quality(t)
	if len(tools) < 60 || len(queries) < 120 {
		t.Fatalf("%d tools and %d queries", len(tools), len(queries))
	}
	x := NewIndex(tools)
	good, all := map[string]int{}, map[string]int{}
	for _, q := range queries {
		for _, name := range q.relevant {
			if _, ok := x.lookup(name, ""); !ok {
				t.Fatalf("%q names the unknown tool %s", q.text, name)
			}
		}
		got := namesOf(x.Search(q.text, 5))
		all[q.kind]++
		if len(q.relevant) == 0 && len(got) == 0 || slices.ContainsFunc(got, func(name string) bool { return slices.Contains(q.relevant, name) }) {
			good[q.kind]++
		} else {
			t.Logf("%s: %q gives %q", q.kind, q.text, got)
		}
	}
	for kind, floor := range floors {
		share := float64(good[kind]) / float64(all[kind])
		t.Logf("%-15s %3d of %3d (%.2f, floor %.2f)", kind, good[kind], all[kind], share, floor)
		if share < floor || all[kind] == 0 {
			t.Errorf("%s: %.2f is below the floor of %.2f", kind, share, floor)
		}
	}
}
