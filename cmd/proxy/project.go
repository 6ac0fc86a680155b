package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/tidwall/gjson"

	"tool-search-proxy/internal/app"
	"tool-search-proxy/internal/openai"
	"tool-search-proxy/internal/telemetry"
	"tool-search-proxy/internal/turn"
)

// project prints the projected request on standard output, and what it saves on standard error.
func project(_ context.Context, args []string, s streams) error {
	flags := newFlags("project", s)
	path := flags.String("request", "", "file with a request body, \"-\" for standard input (required)")
	dialect := flags.String("dialect", "", "chat or responses; found out from the body if it is not given")
	c, err := load(flags, args)
	if err != nil {
		return err
	}
	if *path == "" {
		return usageError{errors.New("--request FILE is missing")}
	}
	body, err := readInput(*path, s.in)
	if err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	if trimmed := bytes.TrimSpace(body); len(trimmed) == 0 || trimmed[0] != '{' {
		return fmt.Errorf("%s is no request body: want a JSON object with model, messages or input, and tools", *path)
	}
	if *dialect == "" {
		*dialect = guessDialect(body)
	}
	d := openai.ByName(*dialect)
	if d == nil {
		return usageError{fmt.Errorf("--dialect is %q; allowed: chat, responses", *dialect)}
	}
	projected, err := turn.Project(d, app.Policy(c), body)
	if err != nil {
		return fmt.Errorf("project %s: %w", *path, err)
	}
	if _, err := s.out.Write(append(projected.Body, '\n')); err != nil {
		return err
	}
	if projected.Reason != "" {
		fmt.Fprintf(s.err, "passes through unprojected: %s\n", projected.Reason)
		return nil
	}
	before, after := len(body), len(projected.Body)
	fmt.Fprintf(s.err, "%d tools deferred\n", len(projected.Deferred))
	fmt.Fprintf(s.err, "tools      %8d → %8d bytes, and a directory of %d bytes\n", projected.ToolsBefore, projected.ToolsAfter,
		projected.Directory)
	fmt.Fprintf(s.err, "request    %8d → %8d bytes (%.1f %% less)\n", before, after, 100*float64(before-after)/float64(before))
	tokensBefore, tokensAfter := telemetry.CountTokens(body), telemetry.CountTokens(projected.Body)
	fmt.Fprintf(s.err, "tokens     %8d → %8d (%.1f %% less; estimated: o200k_base over the JSON)\n", tokensBefore, tokensAfter,
		100*float64(tokensBefore-tokensAfter)/float64(tokensBefore))
	return nil
}

func readInput(path string, in io.Reader) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(in)
	}
	return os.ReadFile(path)
}

// guessDialect tells a body's dialect by the member that only one of them has.
func guessDialect(body []byte) string {
	if gjson.GetBytes(body, "messages").Exists() {
		return openai.Chat.Name()
	}
	return openai.Responses.Name()
}
