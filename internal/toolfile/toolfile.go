// Package toolfile reads tools from a file, for the commands that try things out: whatever people have at hand, a tools
// array, a whole request, or one tool a line.
package toolfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tidwall/gjson"

	"tool-search-proxy/internal/projection"
)

// ErrNoTools says that a file holds no function tool.
var ErrNoTools = errors.New("no function tool found: want a JSON array of tools, a request body with \"tools\", or one tool a line")

// Read returns the function tools of a file, in its order. A tool may be written as in Chat Completions, as in Responses
// (namespace groups too), or as an MCP server lists it. Tools of other kinds are left out. A name that comes again is kept
// once.
func Read(file []byte) ([]projection.Tool, error) {
	file = bytes.TrimSpace(bytes.TrimPrefix(file, []byte("\ufeff")))
	var r reader
	if gjson.ValidBytes(file) {
		all := gjson.ParseBytes(file)
		if tools := all.Get("tools"); all.IsObject() && tools.IsArray() && !isGroup(all) {
			all = tools
		}
		r.read(all, "")
	} else if err := r.lines(file); err != nil {
		return nil, err
	}
	if len(r.tools) == 0 {
		return nil, ErrNoTools
	}
	return r.tools, nil
}

type reader struct {
	tools []projection.Tool
	known map[string]bool
}

func (r *reader) lines(file []byte) error {
	whole := file
	for number := 1; len(file) > 0; number++ {
		line, rest, _ := bytes.Cut(file, []byte("\n"))
		file = rest
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		if !gjson.ValidBytes(line) {
			if number == 1 {
				return fmt.Errorf("neither the file nor its first line is valid JSON: %w", syntaxError(whole))
			}
			return fmt.Errorf("line %d is not valid JSON: %w", number, syntaxError(line))
		}
		r.read(gjson.ParseBytes(line), "")
	}
	return nil
}

// syntaxError says where text stops being JSON.
func syntaxError(text []byte) error {
	var any json.RawMessage
	err := json.Unmarshal(text, &any)
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return err
	}
	before := text[:min(int(syntax.Offset), len(text))]
	line := bytes.Count(before, []byte("\n")) + 1
	return fmt.Errorf("line %d, column %d: %w", line, len(before)-bytes.LastIndexByte(before, '\n')-1, err)
}

func isGroup(v gjson.Result) bool { return v.Get("type").String() == "namespace" }

// read takes a tool, a group of tools or an array of them; group is the name of the namespace around it.
func (r *reader) read(v gjson.Result, group string) {
	switch {
	case v.IsArray():
		v.ForEach(func(_, element gjson.Result) bool {
			r.read(element, group)
			return true
		})
		return
	case !v.IsObject():
		return
	case isGroup(v):
		r.read(v.Get("tools"), v.Get("name").String())
		return
	}
	kind := v.Get("type")
	if kind.Exists() && kind.String() != "function" {
		return
	}
	if function := v.Get("function"); function.IsObject() {
		v = function
	}
	name := v.Get("name").String()
	if name == "" {
		return
	}
	if group != "" {
		name = group + "." + name
	}
	if r.known[name] {
		return
	}
	if r.known == nil {
		r.known = make(map[string]bool)
	}
	r.known[name] = true
	parameters := v.Get("parameters")
	for _, other := range []string{"inputSchema", "input_schema"} {
		if !parameters.Exists() {
			parameters = v.Get(other)
		}
	}
	r.tools = append(r.tools, projection.Tool{
		Name: name, Description: v.Get("description").String(), Parameters: []byte(parameters.Raw),
	})
}
