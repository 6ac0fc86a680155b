package main

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"

	"tool-search-proxy/internal/projection"
)

// words splits a text as simple rankers do: lower case, at everything that is neither letter nor digit; Chinese by character.
func words(text string) []string {
	var out []string
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		runes := []rune(word)
		if !slices.ContainsFunc(runes, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
			out = append(out, word)
			continue
		}
		for _, r := range runes {
			out = append(out, string(r))
		}
	}
	return out
}

func textOf(t projection.Tool) string {
	return t.Name + " " + t.Description + " " + string(t.Parameters)
}

// best returns the names of the tools with the highest positive scores.
func best(tools []projection.Tool, scores []float64, limit int) []string {
	var order []int
	for i, score := range scores {
		if score > 0 {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(scores[b], scores[a]), strings.Compare(tools[a].Name, tools[b].Name))
	})
	var names []string
	for _, i := range order[:min(limit, len(order))] {
		names = append(names, tools[i].Name)
	}
	return names
}

// newBM25 is BM25 as it is in the books (k1 1.2, b 0.75) over name, description and parameters as one text.
func newBM25(tools []projection.Tool) ranker {
	const k1, b = 1.2, 0.75
	counts, length, documents := make([]map[string]float64, len(tools)), make([]float64, len(tools)), map[string]float64{}
	total := 0.0
	for i, tool := range tools {
		counts[i] = map[string]float64{}
		for _, word := range words(textOf(tool)) {
			if counts[i][word] == 0 {
				documents[word]++
			}
			counts[i][word]++
			length[i]++
		}
		total += length[i]
	}
	average, n := total/float64(len(tools)), float64(len(tools))
	return func(query string, limit int) []string {
		scores := make([]float64, len(tools))
		for _, word := range words(query) {
			idf := math.Log(1 + (n-documents[word]+0.5)/(documents[word]+0.5))
			for i := range tools {
				if f := counts[i][word]; f > 0 {
					scores[i] += idf * f * (k1 + 1) / (f + k1*(1-b+b*length[i]/average))
				}
			}
		}
		return best(tools, scores, limit)
	}
}

// newSubstring is what many hand-made searches do: points for each query word that stands somewhere in a field.
func newSubstring(tools []projection.Tool) ranker {
	type fields struct{ name, description, parameters string }
	lower := make([]fields, len(tools))
	for i, tool := range tools {
		lower[i] = fields{strings.ToLower(tool.Name), strings.ToLower(tool.Description), strings.ToLower(string(tool.Parameters))}
	}
	return func(query string, limit int) []string {
		scores := make([]float64, len(tools))
		for _, word := range words(query) {
			for i, f := range lower {
				if strings.Contains(f.name, word) {
					scores[i] += 3
				}
				if strings.Contains(f.description, word) {
					scores[i]++
				}
				if strings.Contains(f.parameters, word) {
					scores[i] += 0.5
				}
			}
		}
		return best(tools, scores, limit)
	}
}
