package projection

import (
	"slices"
	"strings"
)

// alternative is a word that may stand for a query word, with what it counts against the word itself.
type alternative struct {
	word   uint32
	weight float32
}

// slot is one query word. Of its alternatives the best counts, once.
type slot struct {
	text         string
	weight, idf  float32
	alternatives []alternative
	clause       int
}

// parsed is a keyword query made ready.
type parsed struct {
	slots    []slot
	required [][]uint32 // per required word the words of which one must occur
	within   []uint32   // the name space's tools, nil for all
	single   bool
}

func (x *Index) slotFor(q token, isStop bool) slot {
	s := slot{text: q.text, weight: 1}
	word := stem(q.text)
	number, known := x.numbers[word]
	if known {
		s.alternatives = append(s.alternatives, alternative{number, 1})
		s.idf = x.idf[number]
	}
	if len(q.text) >= 3 {
		from, _ := slices.BinarySearch(x.words, q.text)
		for i := from; i < len(x.words) && strings.HasPrefix(x.words[i], q.text); i++ {
			if x.words[i] != word && x.words[i] != q.text {
				s.alternatives = append(s.alternatives, alternative{uint32(i), float32(tune["prefix"])})
			}
		}
	}
	if !known && len(s.alternatives) == 0 {
		x.edits(&s, word)
		if len(s.alternatives) == 0 {
			for end := len(word) - 1; end >= 3; end-- {
				if n, ok := x.numbers[word[:end]]; ok {
					s.alternatives = append(s.alternatives, alternative{n, float32(tune["longest"])})
					break
				}
			}
		}
	}
	for _, other := range synonyms()[word] {
		if n, ok := x.numbers[other]; ok {
			s.alternatives = append(s.alternatives, alternative{n, float32(tune["syn"])})
		}
	}
	if tune["back"] > 0 {
		for _, chinese := range pairsBack()[word] {
			if n, ok := x.numbers[chinese]; ok {
				s.alternatives = append(s.alternatives, alternative{n, float32(tune["back"])})
			}
		}
	}
	if !known {
		for _, a := range s.alternatives {
			s.idf = max(s.idf, x.idf[a.word])
		}
	}
	return s
}

func (x *Index) edits(s *slot, word string) {
	if len(word) < 4 {
		return
	}
	try := func(b []byte) {
		if n, ok := x.numbers[string(b)]; ok {
			s.alternatives = append(s.alternatives, alternative{n, float32(tune["edit"])})
		}
	}
	b := make([]byte, 0, 64)
	for i := range len(word) {
		try(append(append(b[:0], word[:i]...), word[i+1:]...))
		if i+1 < len(word) {
			b = append(b[:0], word...)
			b[i], b[i+1] = b[i+1], b[i]
			try(b)
		}
		for c := byte('a'); c <= 'z'; c++ {
			b = append(b[:0], word...)
			b[i] = c
			try(b)
			try(append(append(append(b[:0], word[:i]...), c), word[i:]...))
		}
	}
	for c := byte('a'); c <= 'z'; c++ {
		try(append(append(b[:0], word...), c))
	}
}

func (x *Index) parse(query string) parsed {
	var p parsed
	list := tokens(nil, query)
	stops := stopWords()
	allStop := true
	clause := 0
	seen := map[string]int{}
	for _, t := range list {
		if t.han || !stops[t.text] {
			allStop = false
		}
	}
	for i, t := range list {
		if t.han && tune["pair"] > 0 {
			p.slots = x.hanSlots(p.slots, t.text)
			continue
		}
		if t.han {
			grams(t.text, func(g string) {
				s := slot{text: g, weight: 1}
				if n, ok := x.numbers[g]; ok {
					s.alternatives = []alternative{{n, 1}}
					s.idf = x.idf[n]
					p.slots = append(p.slots, s)
				}
			})
			continue
		}
		if stops[t.text] && !allStop {
			continue
		}
		s := x.slotFor(t, false)
		if t.clause && len(p.slots) > 0 {
			clause++
		}
		s.clause = clause
		key := stem(t.text)
		seen[key]++
		if seen[key] > 1 {
			s.weight = float32(tune["repeat"])
		}
		for _, j := range []int{i - 1, i} {
			if j >= 0 && j+1 < len(list) && !list[j].han && !list[j+1].han {
				if n, ok := x.numbers[stem(list[j].text+list[j+1].text)]; ok {
					s.alternatives = append(s.alternatives, alternative{n, float32(tune["join"])})
				}
			}
		}
		p.slots = append(p.slots, s)
	}
	return p
}

func (x *Index) rank(query string, limit int) ([]Hit, int) {
	p := x.parse(query)
	score := make([]float32, len(x.names))
	best := make([]float32, len(x.names))
	bestName := make([]float32, len(x.names))
	name := make([]float32, len(x.names))
	var all float32
	clauseAll := make([]float32, 1)
	clauseName := make([]float32, len(x.names))
	bonus := make([]float32, len(x.names))
	for i, s := range p.slots {
		all += s.idf * s.weight
		clauseAll[0] += s.idf
		for _, a := range s.alternatives {
			for _, post := range x.postings[x.first[a.word]:x.first[a.word+1]] {
				n := post.number()
				if v := post.points * a.weight; v > best[n] {
					best[n] = v
					bestName[n] = 0
					if post.in(fieldName) {
						bestName[n] = x.idf[a.word] * a.weight
					}
				}
			}
		}
		for n := range best {
			score[n] += best[n] * s.weight
			name[n] += bestName[n] * s.weight
			clauseName[n] += bestName[n]
			best[n], bestName[n] = 0, 0
		}
		if i+1 == len(p.slots) || p.slots[i+1].clause != s.clause {
			for n := range clauseName {
				if m := min(clauseName[n], x.nameWeight[n]); m > 0 {
					bonus[n] = max(bonus[n], m/x.nameWeight[n]*min(1, m/clauseAll[0]))
				}
				clauseName[n] = 0
			}
			clauseAll[0] = 0
		}
	}
	count := 0
	var hits []Hit
	order := make([]int, 0, len(x.names))
	for n := range score {
		if score[n] > 0 {
			if all > 0 && x.nameWeight[n] > 0 {
				m := min(name[n], x.nameWeight[n])
				score[n] *= 1 + float32(tune["boost"])*m/x.nameWeight[n]*min(1, m/all) + float32(tune["clause"])*bonus[n]
			}
			count++
			order = append(order, n)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case score[a] > score[b]:
			return -1
		case score[a] < score[b]:
			return 1
		}
		return 0
	})
	for _, n := range order[:min(limit, len(order))] {
		hits = append(hits, Hit{x.names[n], float64(score[n])})
	}
	return hits, count
}

// Explanation says why a tool stands where it stands.
type Explanation struct {
	Hit
}

// Explain explains a query's results.
func (x *Index) Explain(query string, limit int) []Explanation { return nil }

// Builder builds indexes.
type Builder struct{}

// NewBuilder returns a builder whose caches together stay below about maxBytes.
func NewBuilder(maxBytes int) *Builder { return &Builder{} }

// Index returns the index of a catalog.
func (b *Builder) Index(tools []Tool) *Index { return NewIndex(tools) }

func (x *Index) hanSlots(slots []slot, run string) []slot {
	first := len(slots)
	at := map[int]int{} // byte offset to slot
	previous := -1
	add := func(i, j int) {
		g := run[i:j]
		s := slot{text: g, weight: 1}
		if n, ok := x.numbers[g]; ok {
			w := 1.0
			if len([]rune(g)) == 1 {
				w = tune["char"]
			}
			s.alternatives = []alternative{{n, float32(w)}}
			s.idf = x.idf[n] * float32(w)
		}
		slots = append(slots, s)
	}
	for i, r := range run {
		end := i + len(string(r))
		if previous >= 0 {
			at[previous] = len(slots)
			add(previous, end)
		}
		previous = i
	}
	for i, r := range run {
		if _, ok := at[i]; !ok {
			at[i] = len(slots)
		}
		add(i, i+len(string(r)))
	}
	runes := []rune(run)
	offsets := make([]int, 0)
	for i := range run {
		offsets = append(offsets, i)
	}
	for i := 0; i < len(runes); {
		step := 1
		for n := min(4, len(runes)-i); n > 0; n-- {
			if list := pairs()[string(runes[i:i+n])]; list != nil {
				s := &slots[at[offsets[i]]]
				for _, english := range list {
					if w, ok := x.numbers[english]; ok {
						s.alternatives = append(s.alternatives, alternative{w, float32(tune["pair"])})
						s.idf = max(s.idf, x.idf[w]*float32(tune["pair"]))
					}
				}
				step = n
				break
			}
		}
		i += step
	}
	out := slots[:first]
	for _, s := range slots[first:] {
		if len(s.alternatives) > 0 {
			out = append(out, s)
		}
	}
	return out
}
