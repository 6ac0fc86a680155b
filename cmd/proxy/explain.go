package main

import (
	"fmt"
	"io"
	"strings"

	"tool-search-proxy/internal/projection"
)

// writeExplanation prints what a query finds, and why, for people to read.
func writeExplanation(w io.Writer, index *projection.Index, query string, limit int) error {
	found := index.Search(query, limit)
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n", query)
	for _, e := range index.Explain(query, limit) {
		fmt.Fprintf(&text, "  %-40s %8.3f", e.Name, e.Score)
		if len(e.Matches) == 0 {
			text.WriteString("  called by its name")
		} else if e.NameBonus > 1.001 {
			fmt.Fprintf(&text, "  x%.2f because the query names it", e.NameBonus)
		}
		text.WriteByte('\n')
		for _, m := range e.Matches {
			fmt.Fprintf(&text, "    %-20s %-20s %8.3f  in %s\n", m.Query, m.Word, m.Points, strings.Join(m.Fields, ", "))
		}
	}
	for _, name := range found.NotFound {
		fmt.Fprintf(&text, "  not found: %s\n", name)
	}
	if found.Truncated {
		text.WriteString("  there are more matches than the limit\n")
	}
	_, err := io.WriteString(w, text.String())
	return err
}
