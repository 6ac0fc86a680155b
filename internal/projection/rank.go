package projection

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// What a word that stands for a query word counts against the word itself. The values were measured over public tool
// collections; docs/search.md tells how. The optimum is flat.
const (
	weightLonger     = 0.5 // a longer word that begins with the query word
	weightShorter    = 0.5 // the longest known beginning of a word that is not known itself
	weightEdit       = 0.6 // a word one edit away from a word that is not known itself
	weightSynonym    = 0.3
	weightTranslated = 0.5 // an English word for a Chinese one
	weightBack       = 0.4 // a Chinese word for an English one
	weightJoined     = 0.8 // two neighbouring query words written as one
	weightRepeated   = 0.5 // a query word that has come before
)

const (
	// nameBonus is how much more a tool counts whose whole name the query names.
	nameBonus = 0.6
	// leastCovered is what a tool must match at least, as a share of an average query word. What matches less was met by
	// chance: better no result than five random ones.
	leastCovered = 0.3
	// leastOfBest is the share of the best score that a result must reach.
	leastOfBest = 0.2
	// shortestPrefix and shortestEdit bound which words are guessed at, in bytes; mostLonger how many words a prefix may
	// stand for.
	shortestPrefix = 3
	shortestEdit   = 5
	mostLonger     = 64
)

// alternative is a word of the catalog that may stand for a query word, with what it counts against the word itself.
type alternative struct {
	word   uint32
	weight float32
}

// slot is one query word. Of its alternatives the best counts, once.
type slot struct {
	text         string
	weight       float32 // less than 1 for a word that has come before
	fragment     bool    // a single character out of a longer run: too little to show that a tool fits
	idf          float32
	alternatives []alternative
}

// parsed is a keyword query made ready.
type parsed struct {
	slots []slot
	// required are lists of tools; only a tool that stands in all of them is a result. They are not nil even if empty.
	required [][]uint32
	// single is the word of a query of one word; a tool that has it in its name goes before every tool that has not.
	single    uint32
	hasSingle bool
}

// parse reads a keyword query.
func (x *Index) parse(query string) parsed {
	var p parsed
	list := tokens(nil, query)
	if tools, ok := x.spaces[spaceKey(list)]; ok {
		p.required = append(p.required, tools)
	}
	for term := range strings.FieldsSeq(query) {
		if rest := strings.TrimLeft(term, "+"); rest != "" && rest != term {
			p.required = append(p.required, x.requirements(rest)...)
		}
	}
	stops := stopWords()
	if !slices.ContainsFunc(list, func(t token) bool { return t.han || !stops[t.text] }) {
		stops = nil // nothing but stop words: they must do
	}
	words := 0
	for i, t := range list {
		switch {
		case t.han:
			p.slots = x.unspacedSlots(p.slots, t.text)
			words += 2
		case !stops[t.text]:
			s := x.slotFor(t.text)
			if slices.ContainsFunc(list[:i], func(before token) bool { return stem(before.text) == stem(t.text) }) {
				s.weight = weightRepeated
			}
			x.addJoined(&s, list, i)
			p.slots = append(p.slots, s)
			words++
		}
	}
	if words == 1 {
		p.single, p.hasSingle = x.numbers[stem(p.slots[0].text)]
	}
	return p
}

// requirements returns, per word of a required term, the tools in which it occurs: itself, inflected, or as the beginning
// of a longer word.
func (x *Index) requirements(term string) [][]uint32 {
	var lists [][]uint32
	require := func(words []uint32) {
		tools := []uint32{}
		for _, word := range words {
			for _, post := range x.postingsOf(word) {
				tools = append(tools, post.number())
			}
		}
		slices.Sort(tools)
		lists = append(lists, slices.Compact(tools))
	}
	for _, t := range tokens(nil, term) {
		if !t.han {
			words := x.wordsFrom(t.text)
			if n, ok := x.numbers[stem(t.text)]; ok {
				words = append(words, n)
			}
			require(words)
			continue
		}
		single := utf8.RuneCountInString(t.text) == 1
		grams(t.text, func(gram string) {
			if single || utf8.RuneCountInString(gram) > 1 {
				n, ok := x.numbers[gram]
				if !ok {
					require(nil)
					return
				}
				require([]uint32{n})
			}
		})
	}
	return lists
}

// wordsFrom returns the words that begin with prefix and are longer, if it is long enough to tell.
func (x *Index) wordsFrom(prefix string) []uint32 {
	if len(prefix) < shortestPrefix {
		return nil
	}
	var words []uint32
	from, _ := slices.BinarySearch(x.words, prefix)
	for i := from; i < len(x.words) && strings.HasPrefix(x.words[i], prefix) && len(words) < mostLonger; i++ {
		if x.words[i] != prefix {
			words = append(words, uint32(i))
		}
	}
	return words
}

// slotFor returns the slot of a word of a spaced script.
func (x *Index) slotFor(text string) slot {
	s := slot{text: text, weight: 1}
	word := stem(text)
	number, known := x.numbers[word]
	if known {
		s.add(number, 1)
	}
	for _, longer := range x.wordsFrom(text) {
		if longer != number || !known {
			s.add(longer, weightLonger)
		}
	}
	if len(s.alternatives) == 0 {
		x.addEdits(&s, word)
	}
	if len(s.alternatives) == 0 {
		x.addShorter(&s, word)
	}
	for _, other := range synonyms()[word] {
		x.addWord(&s, other, weightSynonym)
	}
	for _, chinese := range pairsBack()[word] {
		x.addWord(&s, chinese, weightBack)
	}
	switch {
	case known:
		s.idf = x.idf[number]
	case len(s.alternatives) == 0:
		s.idf = x.idfUnknown
	default:
		for _, a := range s.alternatives {
			s.idf = max(s.idf, x.idf[a.word])
		}
	}
	return s
}

func (s *slot) add(word uint32, weight float32) {
	s.alternatives = append(s.alternatives, alternative{word, weight})
}

func (x *Index) addWord(s *slot, word string, weight float32) {
	if n, ok := x.numbers[word]; ok {
		s.add(n, weight)
	}
}

// addShorter adds the longest known word that a word begins with.
func (x *Index) addShorter(s *slot, word string) {
	for end := len(word) - 1; end >= shortestPrefix; end-- {
		if n, ok := x.numbers[word[:end]]; ok {
			s.add(n, weightShorter)
			return
		}
	}
}

// addJoined adds what a word gives together with a neighbour: "web hook" for "webhook".
func (x *Index) addJoined(s *slot, list []token, i int) {
	for _, left := range []int{i - 1, i} {
		if left >= 0 && left+1 < len(list) && !list[left].han && !list[left+1].han {
			x.addWord(s, stem(list[left].text+list[left+1].text), weightJoined)
		}
	}
}

// addEdits adds the words one edit away: a letter dropped, added, changed, or swapped with its neighbour.
func (x *Index) addEdits(s *slot, word string) {
	if len(word) < shortestEdit {
		return
	}
	b := make([]byte, 0, 2*longestWord)
	try := func() {
		if n, ok := x.numbers[string(b)]; ok {
			s.add(n, weightEdit)
		} else if last := len(b) - 1; b[last] == 's' {
			if n, ok := x.numbers[string(b[:last])]; ok { // the plural's ending was hidden by the slip
				s.add(n, weightEdit)
			}
		}
	}
	for i := range len(word) {
		b = append(append(b[:0], word[:i]...), word[i+1:]...)
		try()
		if i+1 < len(word) {
			b = append(b[:0], word...)
			b[i], b[i+1] = b[i+1], b[i]
			try()
		}
		for c := byte('a'); c <= 'z'; c++ {
			b = append(b[:0], word...)
			b[i] = c
			try()
			b = append(append(append(b[:0], word[:i]...), c), word[i:]...)
			try()
		}
	}
	for c := byte('a'); c <= 'z'; c++ {
		b = append(append(b[:0], word...), c)
		try()
	}
}

// longestPair bounds the Chinese words of the lexicon, in characters.
const longestPair = 4

// unspacedSlots adds the slots of a run without blanks: each character and each two neighbours, and on the slot where a
// word of the lexicon begins also its English words.
func (x *Index) unspacedSlots(slots []slot, run string) []slot {
	first := len(slots)
	runes := []rune(run)
	at := make([]int, len(runes)) // character to the slot that stands for what begins there
	for i := range runes {
		at[i] = len(slots)
		for n := min(2, len(runes)-i); n > 0; n-- {
			gram := string(runes[i : i+n])
			s := slot{text: gram, weight: 1, fragment: n == 1 && len(runes) > 1}
			if number, ok := x.numbers[gram]; ok {
				s.add(number, 1)
				s.idf = x.idf[number]
			}
			slots = append(slots, s)
		}
	}
	for i := 0; i < len(runes); {
		step := 1
		for n := min(longestPair, len(runes)-i); n > 0; n-- {
			english := pairs()[string(runes[i:i+n])]
			if english == nil {
				continue
			}
			s := &slots[at[i]]
			for _, word := range english {
				if number, ok := x.numbers[word]; ok {
					s.add(number, weightTranslated)
					s.idf = max(s.idf, x.idf[number]*weightTranslated)
				}
			}
			step = n
			break
		}
		i += step
	}
	return append(slots[:first], slices.DeleteFunc(slots[first:], func(s slot) bool { return len(s.alternatives) == 0 })...)
}

func (x *Index) postingsOf(word uint32) []posting { return x.postings[x.first[word]:x.first[word+1]] }

// scratch are the arrays of one search, a place for each tool. Between searches all of them are zero.
type scratch struct {
	score, name, covered   []float32 // over all slots
	best, bestName, weight []float32 // within one slot
	satisfied              []uint16  // how many of the required lists hold the tool
	named                  []bool    // has the single word in its name
	touched, met           []uint32
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

func (x *Index) borrowScratch() *scratch {
	s := scratches.Get().(*scratch)
	if n := len(x.names); len(s.score) < n {
		*s = scratch{
			score: make([]float32, n), name: make([]float32, n), covered: make([]float32, n), best: make([]float32, n),
			bestName: make([]float32, n), weight: make([]float32, n), satisfied: make([]uint16, n), named: make([]bool, n),
		}
	}
	return s
}

// rank scores all tools and returns the best of them, at most limit, and how many there are.
func (x *Index) rank(query string, limit int) ([]Hit, int) {
	p := x.parse(query)
	s := x.borrowScratch()
	defer scratches.Put(s)
	for i, tools := range p.required {
		for _, tool := range tools {
			if int(s.satisfied[tool]) == i {
				s.satisfied[tool]++
			}
		}
	}
	if p.hasSingle {
		for _, post := range x.postingsOf(p.single) {
			s.named[post.number()] = post.in(fieldName)
		}
	}
	var all, telling, words float32
	for i := range p.slots {
		slot := &p.slots[i]
		if len(slot.alternatives) > 0 {
			all += slot.idf * slot.weight
		}
		if !slot.fragment {
			telling += slot.idf * slot.weight
			words++
		}
		x.scoreSlot(s, slot)
	}
	least := leastCovered * telling / max(words, 1)
	best := make([]uint32, 0, min(limit, len(s.touched))+1)
	count := 0
	for _, tool := range s.touched {
		if int(s.satisfied[tool]) < len(p.required) || s.covered[tool] < least {
			continue
		}
		if most := x.nameWeight[tool]; most > 0 && all > 0 {
			named := min(s.name[tool], most)
			s.score[tool] *= 1 + nameBonus*named/most*min(1, named/all)
		}
		count++
		at := len(best)
		for at > 0 && s.before(tool, best[at-1]) {
			at--
		}
		if at < limit {
			best = slices.Insert(best, at, tool)
			best = best[:min(len(best), limit)]
		}
	}
	top := float32(0)
	for _, tool := range best {
		top = max(top, s.score[tool])
	}
	for n := len(best); n > 0 && s.score[best[n-1]] < leastOfBest*top && !s.named[best[n-1]]; n-- {
		best = best[:n-1]
		count = n - 1 // what was not kept is no better
	}
	hits := make([]Hit, len(best))
	for i, tool := range best {
		hits[i] = Hit{x.names[tool], float64(s.score[tool])}
	}
	s.clear(&p)
	return hits, count
}

// scoreSlot adds what one query word gives to each tool.
func (x *Index) scoreSlot(s *scratch, slot *slot) {
	s.met = s.met[:0]
	for _, a := range slot.alternatives {
		for _, post := range x.postingsOf(a.word) {
			tool := post.number()
			points := post.points * a.weight
			if points <= s.best[tool] {
				continue
			}
			if s.best[tool] == 0 {
				s.met = append(s.met, tool)
			}
			s.best[tool], s.weight[tool], s.bestName[tool] = points, a.weight, 0
			if post.in(fieldName) {
				s.bestName[tool] = x.idf[a.word] * a.weight
			}
		}
	}
	for _, tool := range s.met {
		if s.score[tool] == 0 {
			s.touched = append(s.touched, tool)
		}
		s.score[tool] += s.best[tool] * slot.weight
		s.name[tool] += s.bestName[tool] * slot.weight
		if !slot.fragment {
			s.covered[tool] += slot.idf * slot.weight * s.weight[tool]
		}
		s.best[tool] = 0
	}
}

// before reports whether a is a better result than b. Tools are numbered in the order of their names, so the lower number
// wins a tie.
func (s *scratch) before(a, b uint32) bool {
	switch {
	case s.named[a] != s.named[b]:
		return s.named[a]
	case s.score[a] != s.score[b]:
		return s.score[a] > s.score[b]
	}
	return a < b
}

// clear makes everything zero again that the search has written.
func (s *scratch) clear(p *parsed) {
	for _, tool := range s.touched {
		s.score[tool], s.name[tool], s.covered[tool], s.named[tool] = 0, 0, 0, false
	}
	for _, tools := range p.required {
		for _, tool := range tools {
			s.satisfied[tool] = 0
		}
	}
	s.touched = s.touched[:0]
}
