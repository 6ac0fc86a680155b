package projection

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Tool is one function tool as search sees it.
type Tool struct {
	// Name is the canonical name.
	Name string
	// Description is the tool's own description; it may be empty.
	Description string
	// Parameters is the raw JSON schema of the parameters. It may be empty, invalid, or no schema at all.
	Parameters []byte
}

// posting says what one word is worth in one tool.
type posting struct {
	tool   uint32 // the tool's number, with the set of fields in the top bits
	points float32
}

const toolBits = 28

func (p posting) number() uint32  { return p.tool & (1<<toolBits - 1) }
func (p posting) in(f field) bool { return p.tool>>(toolBits+uint32(f))&1 != 0 }

// Index answers searches over one catalog. It is immutable and safe for concurrent use.
type Index struct {
	// names are sorted by case-folded name, then by name. A tool's number is its place here, so that the lower number
	// wins a tie.
	names []string
	// nameWeight is, per tool, the sum of the idf of the words of its name.
	nameWeight []float32
	spaces     map[string][]uint32
	// words is sorted; a word's number is its place here.
	words   []string
	numbers map[string]uint32
	idf     []float32
	// idfUnknown is the weight of a query word that no tool holds.
	idfUnknown float32
	// postings of word w are postings[first[w]:first[w+1]], sorted by tool.
	first    []uint32
	postings []posting
}

func compareNames(a, b string) int {
	return cmp.Or(compareFold(a, b), cmp.Compare(a, b))
}

// compareFold compares a and b as if all letters were small.
func compareFold(a, b string) int {
	for a != "" && b != "" {
		r, n := utf8.DecodeRuneInString(a)
		s, m := utf8.DecodeRuneInString(b)
		if r != s {
			if c := cmp.Compare(unicode.ToLower(r), unicode.ToLower(s)); c != 0 {
				return c
			}
		}
		a, b = a[n:], b[m:]
	}
	return cmp.Compare(len(a), len(b))
}

// NewIndex compiles a catalog.
func NewIndex(tools []Tool) *Index {
	a := newAnalyzer()
	entries := make([]entry, 0, len(tools))
	for _, tool := range tools {
		entries = append(entries, entry{tool.Name, a.analyze(tool)})
	}
	return compile(entries)
}

type entry struct {
	name  string
	words toolWords
}

// Weights of the fields and of their lengths, and the saturation of a term (BM25F; Robertson & Zaragoza, The Probabilistic
// Relevance Framework: BM25 and Beyond, 2009).
var (
	fieldWeights = [fields]float64{fieldName: 3, fieldDescription: 1, fieldParameter: 1, fieldParameterText: 0.7}
	fieldLengths = [fields]float64{fieldName: 0.3, fieldDescription: 0.6, fieldParameter: 0.5, fieldParameterText: 0.6}
)

const saturation = 1.2

func compile(entries []entry) *Index {
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(compareNames(a.name, b.name), cmp.Compare(string(a.words.packed), string(b.words.packed)))
	})
	entries = slices.CompactFunc(entries, func(a, b entry) bool { return a.name == b.name })
	x := &Index{names: make([]string, len(entries)), nameWeight: make([]float32, len(entries)), numbers: map[string]uint32{}}
	var total [fields]uint64
	var found []uint32 // per word in order of appearance: its tools
	occurrences := 0
	for i, e := range entries {
		x.names[i] = e.name
		for f, n := range e.words.lengths {
			total[f] += uint64(n)
		}
		e.words.each(func(word []byte, _ *[fields]uint16) {
			number, ok := x.numbers[string(word)]
			if !ok {
				number = uint32(len(found))
				x.numbers[string(word)] = number
				found = append(found, 0)
			}
			found[number]++
			occurrences++
		})
	}
	x.words = make([]string, 0, len(found))
	for word := range x.numbers {
		x.words = append(x.words, word)
	}
	slices.Sort(x.words)
	x.idf = make([]float32, len(x.words))
	x.idfUnknown = float32(idf(len(entries), 0))
	x.first = make([]uint32, len(x.words)+1)
	for i, word := range x.words {
		n := found[x.numbers[word]]
		x.numbers[word] = uint32(i)
		x.idf[i] = float32(idf(len(entries), int(n)))
		x.first[i+1] = x.first[i] + n
	}
	next := slices.Clone(x.first)
	x.postings = make([]posting, occurrences)
	for i, e := range entries {
		var norm [fields]float64
		for f := range norm {
			if total[f] > 0 {
				average := float64(total[f]) / float64(len(entries))
				norm[f] = fieldWeights[f] / (1 - fieldLengths[f] + fieldLengths[f]*float64(e.words.lengths[f])/average)
			}
		}
		e.words.each(func(word []byte, counts *[fields]uint16) {
			number := x.numbers[string(word)]
			v := 0.0
			p := posting{tool: uint32(i)}
			for f, n := range counts {
				if n > 0 {
					v += norm[f] * float64(n)
					p.tool |= 1 << (toolBits + f)
				}
			}
			p.points = float32(float64(x.idf[number]) * v * (saturation + 1) / (saturation + v))
			x.postings[next[number]] = p
			next[number]++
			if counts[fieldName] > 0 {
				x.nameWeight[i] += x.idf[number]
			}
		})
	}
	x.spaces = nameSpaces(x.names)
	return x
}

// bytes estimates the memory that the index takes.
func (x *Index) bytes() int {
	n := 4*len(x.nameWeight) + 8*len(x.postings) + 4*len(x.first) + 4*len(x.idf)
	for _, name := range x.names {
		n += 16 + len(name)
	}
	for _, word := range x.words {
		n += 64 + len(word) // with its place in the map
	}
	for space, tools := range x.spaces {
		n += 64 + len(space) + 4*len(tools)
	}
	return n
}

// idf weighs a word that stands in n of total tools.
func idf(total, n int) float64 {
	return math.Log(1 + (float64(total-n)+0.5)/(float64(n)+0.5))
}

func nameSpaces(names []string) map[string][]uint32 {
	spaces := map[string][]uint32{}
	add := func(key string, number uint32) {
		list := spaces[key]
		if key != "" && (len(list) == 0 || list[len(list)-1] != number) {
			spaces[key] = append(list, number)
		}
	}
	for i, name := range names {
		parts := strings.FieldsFunc(strings.ReplaceAll(name, "__", "."), func(r rune) bool { return r == '.' || r == '/' || r == ':' })
		for j := range max(len(parts)-1, 0) {
			add(spaceKey(tokens(nil, parts[j])), uint32(i))
			if j > 0 {
				add(spaceKey(tokens(nil, strings.Join(parts[:j+1], " "))), uint32(i))
			}
		}
	}
	return spaces
}

// longestSpace bounds the words of a name space's name.
const longestSpace = 8

// spaceKey joins the words of a name space's name; it is empty for what is too long to be one.
func spaceKey(words []token) string {
	if len(words) > longestSpace {
		return ""
	}
	var b strings.Builder
	for i, t := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(t.text)
	}
	return b.String()
}

// Matches is the answer to one query.
type Matches struct {
	// Hits are the matching tools, best first.
	Hits []Hit
	// NotFound are the exact names that do not exist, or the query text where nothing matched.
	NotFound []string
	// Truncated says that there were more matches than the limit.
	Truncated bool
}

// Hit is one tool that matches a query.
type Hit struct {
	Name  string
	Score float64
}

// Search answers a query in the language of the virtual tool.
func (x *Index) Search(query string, limit int) Matches { return x.find(query, limit, "") }

func (x *Index) find(query string, limit int, virtualName string) Matches {
	query = strings.TrimSpace(query)
	limit = max(limit, 1)
	if selection, ok := cutSelect(query); ok {
		return x.choose(query, selection, limit, virtualName)
	}
	if name, ok := x.lookup(query, virtualName); ok {
		return Matches{Hits: []Hit{{name, exactScore}}}
	}
	hits, count := x.rank(query, limit)
	m := Matches{Hits: hits, Truncated: count > len(hits)}
	if len(hits) == 0 && query != "" {
		m.NotFound = []string{query}
	}
	return m
}

// exactScore is the score of a tool that was called by its full name.
const exactScore = 1

// cutSelect returns what follows "select:".
func cutSelect(query string) (selection string, ok bool) {
	const keyword = "select"
	if len(query) < len(keyword) || !strings.EqualFold(query[:len(keyword)], keyword) {
		return "", false
	}
	rest := strings.TrimLeftFunc(query[len(keyword):], unicode.IsSpace)
	for _, colon := range []string{":", "："} {
		if selection, ok = strings.CutPrefix(rest, colon); ok {
			return selection, true
		}
	}
	return "", false
}

// choose answers "select:".
func (x *Index) choose(query, selection string, limit int, virtualName string) Matches {
	var m Matches
	chosen := map[string]bool{}
	for name := range strings.FieldsFuncSeq(selection, func(r rune) bool { return r == ',' || r == '，' }) {
		name = strings.TrimFunc(name, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("`'\"", r) })
		if name == "" {
			continue
		}
		found, ok := x.lookup(name, virtualName)
		if !ok {
			found = name
		}
		switch {
		case chosen[found]:
		case !ok:
			m.NotFound = append(m.NotFound, name)
		case len(m.Hits) == limit:
			m.Truncated = true
		default:
			m.Hits = append(m.Hits, Hit{found, exactScore})
		}
		chosen[found] = true
	}
	if len(chosen) == 0 {
		m.NotFound = []string{query}
	}
	return m
}

// lookup finds a tool by its full name: as spelled, else with case ignored.
func (x *Index) lookup(name, virtualName string) (string, bool) {
	if i, ok := slices.BinarySearchFunc(x.names, name, compareNames); ok {
		return x.names[i], true
	}
	if virtualName != "" && name == virtualName {
		return virtualName, true
	}
	if i, ok := slices.BinarySearchFunc(x.names, name, compareFold); ok {
		return x.names[i], true
	}
	if virtualName != "" && compareFold(name, virtualName) == 0 {
		return virtualName, true
	}
	return "", false
}
