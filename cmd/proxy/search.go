package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"tool-search-proxy/internal/openai"
	"tool-search-proxy/internal/projection"
	"tool-search-proxy/internal/toolfile"
)

// search tries queries on the tools of a file. Per query it prints one JSON line with the names and scores in rank order.
func search(_ context.Context, args []string, s streams) error {
	flags := newFlags("search", s)
	path := flags.String("tools", "", "file with a JSON array of tools, a request body, or one tool a line (required)")
	limit := flags.Int("max-results", 5, "most results of a query, at least 1")
	explain := flags.Bool("explain", false, "print for each result the matched words, the field and the points")
	const anyNumber = math.MaxInt
	if err := parse(flags, args, anyNumber); err != nil {
		return err
	}
	if *path == "" {
		return usageError{fmt.Errorf("--tools FILE is missing")}
	}
	if *limit < 1 {
		return usageError{fmt.Errorf("--max-results must be at least 1, not %d", *limit)}
	}
	file, err := os.ReadFile(*path)
	if err != nil {
		return fmt.Errorf("read the tools: %w", err)
	}
	tools, err := toolfile.Read(file)
	if err != nil {
		return fmt.Errorf("read the tools of %s: %w", *path, err)
	}
	index := projection.NewIndex(tools)
	answer := func(query string) error {
		if *explain {
			return writeExplanation(s.out, index, query, *limit)
		}
		_, err := s.out.Write(appendMatches(nil, query, index.Search(query, *limit)))
		return err
	}
	if flags.NArg() > 0 {
		return answer(strings.Join(flags.Args(), " ")) // quotes are easily forgotten
	}
	return eachLine(s.in, answer)
}

// eachLine calls do for each line, however long.
func eachLine(in io.Reader, do func(line string) error) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" || err == nil {
			if err := do(strings.TrimRight(line, "\r\n")); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the queries: %w", err)
		}
	}
}

func appendMatches(dst []byte, query string, m projection.Matches) []byte {
	dst = append(dst, `{"query":`...)
	dst = openai.AppendString(dst, query)
	dst = append(dst, `,"names":[`...)
	for i, hit := range m.Hits {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = openai.AppendString(dst, hit.Name)
	}
	dst = append(dst, `],"scores":[`...)
	for i, hit := range m.Hits {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendFloat(dst, hit.Score, 'f', -1, 64)
	}
	return append(dst, "]}\n"...)
}
