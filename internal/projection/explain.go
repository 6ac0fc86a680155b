package projection

import "slices"

// Explanation says why a tool stands where it stands.
type Explanation struct {
	Hit
	// Matches are the query words that the tool matches, in the query's order.
	Matches []Match
	// NameBonus is the factor by which the sum of the points was raised, since the query names the tool; 1 is not at all.
	NameBonus float64
}

// Match is a query word that a tool matches.
type Match struct {
	// Query is the word of the query, Word the stem in the tool that counted for it.
	Query, Word string
	// Fields are the parts of the tool that hold the word: name, description, parameter, parameter description.
	Fields []string
	Points float64
}

// Explain explains the results of a keyword query. Tools that were called by their names have no matches.
func (x *Index) Explain(query string, limit int) []Explanation {
	hits := x.Search(query, limit).Hits
	out := make([]Explanation, len(hits))
	p := x.parse(query)
	for i, hit := range hits {
		out[i] = Explanation{Hit: hit, NameBonus: 1}
		if hit.Score == exactScore {
			continue
		}
		number, _ := slices.BinarySearchFunc(x.names, hit.Name, compareNames)
		sum := 0.0
		for _, slot := range p.slots {
			if m, ok := x.matchOf(slot, uint32(number)); ok {
				out[i].Matches = append(out[i].Matches, m)
				sum += m.Points
			}
		}
		if sum > 0 {
			out[i].NameBonus = hit.Score / sum
		}
	}
	return out
}

// matchOf returns what one query word gives to one tool.
func (x *Index) matchOf(s slot, tool uint32) (best Match, ok bool) {
	for _, a := range s.alternatives {
		list := x.postingsOf(a.word)
		at, found := slices.BinarySearchFunc(list, tool, func(p posting, n uint32) int { return int(p.number()) - int(n) })
		if !found {
			continue
		}
		points := float64(list[at].points * a.weight * s.weight)
		if points <= best.Points {
			continue
		}
		best, ok = Match{Query: s.text, Word: x.words[a.word], Points: points}, true
		for f := field(0); f < fields; f++ {
			if list[at].in(f) {
				best.Fields = append(best.Fields, f.String())
			}
		}
	}
	return best, ok
}
