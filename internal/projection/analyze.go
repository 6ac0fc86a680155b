package projection

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
)

// field is a part of a tool in which words are found.
type field uint8

const (
	fieldName field = iota
	fieldDescription
	fieldParameter
	fieldParameterText
	fields = 4
)

func (f field) String() string {
	return [fields]string{"name", "description", "parameter", "parameter description"}[f]
}

// longestField bounds the text, in bytes, that is read of one field of one tool.
const longestField = 32 << 10

// toolWords is what search keeps of one tool: how often each word stands in each field. It is packed, for it is what a
// cache holds by the thousand: per word its length, its text, the set of fields, and a count for each of them.
type toolWords struct {
	packed  []byte
	lengths [fields]uint32
}

// analyzer takes tools apart. It may be used again, not concurrently.
type analyzer struct {
	tokens []token
	counts map[string]*[fields]uint16
	spare  []*[fields]uint16
	room   [fields]int
	result toolWords
}

func newAnalyzer() *analyzer { return &analyzer{counts: map[string]*[fields]uint16{}} }

// analyze returns the words of a tool.
func (a *analyzer) analyze(tool Tool) toolWords {
	for _, counts := range a.counts {
		*counts = [fields]uint16{}
		a.spare = append(a.spare, counts)
	}
	clear(a.counts)
	a.result = toolWords{}
	for f := range a.room {
		a.room[f] = longestField
	}
	a.add(fieldName, tool.Name)
	a.add(fieldDescription, tool.Description)
	schema := schemaReader{
		name: func(s string) { a.add(fieldParameter, s) },
		text: func(s string) { a.add(fieldParameterText, s) },
	}
	schema.read(tool.Parameters)
	return a.pack()
}

// add counts the words of text in field f.
func (a *analyzer) add(f field, text string) {
	if len(text) > a.room[f] {
		text = strings.ToValidUTF8(text[:a.room[f]], "")
	}
	a.room[f] -= len(text)
	a.tokens = tokens(a.tokens[:0], text)
	for i, t := range a.tokens {
		if t.han {
			grams(t.text, func(gram string) { a.count(f, gram) })
			continue
		}
		if stopWords()[t.text] && f != fieldName {
			continue
		}
		a.count(f, stem(t.text))
		// GitHub, mp3: what was split inside a word is found by the whole word too.
		if t.glued && !a.tokens[i-1].han && !(i+1 < len(a.tokens) && a.tokens[i+1].glued) && !(a.tokens[i-1].glued) {
			a.countOnly(f, stem(a.tokens[i-1].text+t.text))
		}
	}
}

func (a *analyzer) count(f field, word string) {
	a.countOnly(f, word)
	a.result.lengths[f]++
}

func (a *analyzer) countOnly(f field, word string) {
	counts := a.counts[word]
	if counts == nil {
		if n := len(a.spare); n > 0 {
			counts, a.spare = a.spare[n-1], a.spare[:n-1]
		} else {
			counts = new([fields]uint16)
		}
		a.counts[word] = counts
	}
	if counts[f] < math.MaxUint16 {
		counts[f]++
	}
}

func (a *analyzer) pack() toolWords {
	words := make([]string, 0, len(a.counts))
	size := 0
	for word := range a.counts {
		words = append(words, word)
		size += len(word) + 4
	}
	slices.Sort(words)
	packed := make([]byte, 0, size)
	for _, word := range words {
		packed = append(packed, byte(len(word)))
		packed = append(packed, word...)
		at := len(packed)
		packed = append(packed, 0)
		for f, n := range a.counts[word] {
			if n > 0 {
				packed[at] |= 1 << f
				packed = binary.AppendUvarint(packed, uint64(n))
			}
		}
	}
	a.result.packed = slices.Clip(packed)
	return a.result
}

// each calls yield with each word and its counts, in the words' order. The word's bytes are only lent.
func (t toolWords) each(yield func(word []byte, counts *[fields]uint16)) {
	var counts [fields]uint16
	for at := 0; at < len(t.packed); {
		end := at + 1 + int(t.packed[at])
		word, set := t.packed[at+1:end], t.packed[end]
		at = end + 1
		for f := range counts {
			counts[f] = 0
			if set&(1<<f) != 0 {
				n, size := binary.Uvarint(t.packed[at:])
				counts[f] = uint16(n)
				at += size
			}
		}
		yield(word, &counts)
	}
}
