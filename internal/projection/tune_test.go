package projection

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
)

type tq struct {
	Kind, Query string
	Relevant    []string
}
type tset struct {
	name  string
	tools []Tool
	qs    []tq
}

func loadSet(dir, name string) tset {
	s := tset{name: name}
	read := func(f string, fn func([]byte)) {
		fh, err := os.Open(dir + "/" + name + "/" + f)
		if err != nil {
			panic(err)
		}
		defer fh.Close()
		sc := bufio.NewScanner(fh)
		sc.Buffer(nil, 64<<20)
		for sc.Scan() {
			fn(sc.Bytes())
		}
	}
	read("catalog.jsonl", func(b []byte) {
		var v struct {
			Function struct {
				Name, Description string
				Parameters        json.RawMessage
			}
		}
		if err := json.Unmarshal(b, &v); err != nil {
			panic(err)
		}
		s.tools = append(s.tools, Tool{v.Function.Name, v.Function.Description, v.Function.Parameters})
	})
	read("queries.jsonl", func(b []byte) { var q tq; json.Unmarshal(b, &q); s.qs = append(s.qs, q) })
	return s
}

// TUNE="a=1 b=2|c=3": several variants separated by |
func TestTune(t *testing.T) {
	dir := os.Getenv("BENCH_SEARCH_DIR")
	if dir == "" {
		t.Skip()
	}
	var sets []tset
	for _, n := range []string{"acebench_en", "acebench_zh", "apibank", "bfcl", "livemcp", "mcpproxy"} {
		sets = append(sets, loadSet(dir, n))
	}
	base := map[string]float64{}
	for k, v := range tune {
		base[k] = v
	}
	for _, variant := range strings.Split(os.Getenv("TUNE"), "|") {
		for k, v := range base {
			tune[k] = v
		}
		for _, kv := range strings.Fields(variant) {
			k, v, _ := strings.Cut(kv, "=")
			if _, ok := tune[k]; !ok {
				t.Fatal(k)
			}
			tune[k], _ = strconv.ParseFloat(v, 64)
		}
		type agg struct {
			n              int
			h1, h3, h5, r5 float64
		}
		res := map[string]*agg{}
		var mu sync.Mutex
		var wg sync.WaitGroup
		for _, s := range sets {
			wg.Add(1)
			go func() {
				defer wg.Done()
				x := NewIndex(s.tools)
				for _, q := range s.qs {
					m := x.Search(q.Query, 5)
					a := agg{n: 1}
					f := 0
					for i, h := range m.Hits {
						if slices.Contains(q.Relevant, h.Name) {
							f++
							if i == 0 {
								a.h1 = 1
							}
							if i < 3 {
								a.h3 = 1
							}
							a.h5 = 1
						}
					}
					a.r5 = float64(f) / float64(len(q.Relevant))
					mu.Lock()
					k := s.name + " " + q.Kind
					r := res[k]
					if r == nil {
						r = &agg{}
						res[k] = r
					}
					r.n++
					r.h1 += a.h1
					r.h3 += a.h3
					r.h5 += a.h5
					r.r5 += a.r5
					mu.Unlock()
				}
			}()
		}
		wg.Wait()
		var keys []string
		for k := range res {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		fmt.Printf("== %s\n", variant)
		var mh, mr float64
		line := ""
		for _, k := range keys {
			r := res[k]
			n := float64(r.n)
			mh += r.h5 / n
			mr += r.r5 / n
			if os.Getenv("BRIEF") == "" {
				fmt.Printf("%-22s n=%4d h1=%.3f h3=%.3f h5=%.3f r5=%.3f\n", k, r.n, r.h1/n, r.h3/n, r.h5/n, r.r5/n)
			}
			line += fmt.Sprintf(" %.3f", r.h5/n)
		}
		fmt.Printf("mean h5=%.4f r5=%.4f |%s\n", mh/float64(len(keys)), mr/float64(len(keys)), line)
	}
}
