package main

import (
	"io"

	"tool-search-proxy/internal/projection"
)

func writeExplanation(w io.Writer, index *projection.Index, query string, limit int) error {
	_, err := w.Write(appendMatches(nil, query, index.Search(query, limit)))
	return err
}
