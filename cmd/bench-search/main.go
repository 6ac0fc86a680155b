// Command bench-search measures how well and how fast the search finds tools, beside two baselines: plain BM25 and a
// hand-weighted substring score. It reads sets of a catalog (catalog.jsonl, one tool a line) and queries (queries.jsonl,
// {"kind","query","relevant":[…]} a line), each in a folder of its own.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tool-search-proxy/internal/projection"
	"tool-search-proxy/internal/toolfile"
)

func main() {
	data := flag.String("data", "", "folder with one folder per set")
	flag.Parse()
	if err := run(*data, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench-search:", err)
		os.Exit(1)
	}
}

func run(data string, out io.Writer) error {
	entries, err := os.ReadDir(data)
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(out, "skipped: there are no sets at %q\n", data)
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "| set, kind | queries | ranker | hit@1 | hit@3 | hit@5 | recall@5 | MRR | nDCG@10 |\n|---|--:|---|--:|--:|--:|--:|--:|--:|\n")
	means := map[string]*quality{}
	var all []projection.Tool
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		s, err := readSet(filepath.Join(data, entry.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		all = append(all, s.tools...)
		measureQuality(out, entry.Name(), s, means)
	}
	for _, ranker := range rankerNames {
		if m := means[ranker]; m != nil {
			m.write(out, "mean over sets and kinds", ranker)
		}
	}
	measureSpeed(out, all)
	return nil
}

// set is a catalog with its queries.
type set struct {
	tools   []projection.Tool
	queries []query
}

type query struct {
	kind, text string
	relevant   map[string]bool
}

func readSet(folder string) (set, error) {
	var s set
	catalog, err := os.ReadFile(filepath.Join(folder, "catalog.jsonl"))
	if err != nil {
		return s, err
	}
	if s.tools, err = toolfile.Read(catalog); err != nil {
		return s, fmt.Errorf("read %s: %w", folder, err)
	}
	queries, err := os.ReadFile(filepath.Join(folder, "queries.jsonl"))
	if err != nil {
		return s, err
	}
	for line := range bytes.Lines(queries) {
		q := query{kind: gjson.GetBytes(line, "kind").String(), text: gjson.GetBytes(line, "query").String(), relevant: map[string]bool{}}
		for _, name := range gjson.GetBytes(line, "relevant").Array() {
			q.relevant[name.String()] = true
		}
		s.queries = append(s.queries, q)
	}
	return s, nil
}

// ranker returns the names of the best tools for a query.
type ranker func(query string, limit int) []string

const (
	ours      = "tool_search"
	bm25      = "BM25"
	substring = "substring"
)

var rankerNames = []string{ours, bm25, substring}

// quality sums up the results of many queries.
type quality struct {
	queries                             int
	hit1, hit3, hit5, recall, mrr, ndcg float64
}

func (q *quality) add(names []string, relevant map[string]bool) {
	q.queries++
	found, first, gain := 0, 0, 0.0
	for i, name := range names {
		if !relevant[name] {
			continue
		}
		if first == 0 {
			first = i + 1
		}
		if i < 5 {
			found++
		}
		gain += 1 / math.Log2(float64(i+2))
	}
	ideal := 0.0
	for i := range min(len(relevant), 10) {
		ideal += 1 / math.Log2(float64(i+2))
	}
	within := func(n int) float64 {
		if first > 0 && first <= n {
			return 1
		}
		return 0
	}
	q.hit1, q.hit3, q.hit5 = q.hit1+within(1), q.hit3+within(3), q.hit5+within(5)
	q.recall += float64(found) / float64(max(len(relevant), 1))
	q.ndcg += gain / max(ideal, 1e-9)
	if first > 0 {
		q.mrr += 1 / float64(first)
	}
}

// mean adds the means of another as one query.
func (q *quality) mean(o *quality) {
	n := float64(o.queries)
	q.queries++
	q.hit1, q.hit3, q.hit5 = q.hit1+o.hit1/n, q.hit3+o.hit3/n, q.hit5+o.hit5/n
	q.recall, q.mrr, q.ndcg = q.recall+o.recall/n, q.mrr+o.mrr/n, q.ndcg+o.ndcg/n
}

func (q *quality) write(out io.Writer, what, ranker string) {
	n := float64(q.queries)
	fmt.Fprintf(out, "| %s | %d | %s | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f |\n", what, q.queries, ranker, q.hit1/n, q.hit3/n,
		q.hit5/n, q.recall/n, q.mrr/n, q.ndcg/n)
}

func measureQuality(out io.Writer, name string, s set, means map[string]*quality) {
	index := projection.NewIndex(s.tools)
	rankers := map[string]ranker{
		ours: func(query string, limit int) []string {
			var names []string
			for _, hit := range index.Search(query, limit).Hits {
				names = append(names, hit.Name)
			}
			return names
		},
		bm25: newBM25(s.tools), substring: newSubstring(s.tools),
	}
	var kinds []string
	for _, q := range s.queries {
		if !slices.Contains(kinds, q.kind) {
			kinds = append(kinds, q.kind)
		}
	}
	slices.Sort(kinds)
	for _, kind := range kinds {
		for _, ranker := range rankerNames {
			var result quality
			for _, q := range s.queries {
				if q.kind == kind {
					result.add(rankers[ranker](q.text, 10), q.relevant)
				}
			}
			result.write(out, name+", "+kind, ranker)
			if means[ranker] == nil {
				means[ranker] = &quality{}
			}
			means[ranker].mean(&result)
		}
	}
}

// measureSpeed times searches over catalogs of several sizes, drawn from all sets.
func measureSpeed(out io.Writer, all []projection.Tool) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(out, "\n| tools | build µs/tool | heap KiB/tool | words | p50 µs | p99 µs |\n|--:|--:|--:|--:|--:|--:|\n")
	for _, size := range []int{100, 1000, 10000} {
		tools := make([]projection.Tool, size)
		for i := range tools {
			tools[i] = all[(i*7919)%len(all)]
			tools[i].Name = fmt.Sprintf("%s_%d", tools[i].Name, i/len(all))
			if i >= len(all) {
				tools[i].Name += "b"
			}
		}
		before := heap()
		start := time.Now()
		index := projection.NewIndex(tools)
		build := time.Since(start)
		bytes := heap() - before
		for _, words := range []int{1, 2, 4, 8, 12} {
			var times []time.Duration
			for i := range 3000 {
				var text []string
				for w := range words {
					description := strings.Fields(tools[(i*31+w*17)%size].Description)
					if len(description) > 0 {
						text = append(text, firstWord(description[(i+w)%len(description)]))
					}
				}
				query := strings.Join(text, " ")
				start := time.Now()
				index.Search(query, 5)
				times = append(times, time.Since(start))
			}
			slices.Sort(times)
			fmt.Fprintf(out, "| %d | %.1f | %.2f | %d | %.1f | %.1f |\n", size, float64(build.Microseconds())/float64(size),
				float64(bytes)/1024/float64(size), words, microseconds(times[len(times)/2]), microseconds(times[len(times)*99/100]))
		}
		runtime.KeepAlive(index)
	}
}

// firstWord cuts what stands between two blanks to a word: Chinese puts no blanks between its words.
func firstWord(text string) string {
	runes := []rune(text)
	if i := slices.IndexFunc(runes, func(r rune) bool { return r > 0x2e80 }); i >= 0 {
		return string(runes[:min(len(runes), i+4)])
	}
	return text
}

func microseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
