package openai

import (
	"slices"
	"strings"
)

// ChoiceForm tells the forms of tool_choice apart.
type ChoiceForm uint8

// Forms of tool_choice.
const (
	ChoiceDefault ChoiceForm = iota // absent, "auto", or a form that the proxy need not know
	ChoiceNone                      // "none"
	ChoiceRequired
	ChoiceFunction // one function is forced
	AllowedTools   // the choice is restricted to some of the tools
)

// Choice is what tool_choice says.
type Choice struct {
	Form ChoiceForm
	// Function is the canonical name of a forced function.
	Function string
	// Allowed are the tools of an allowed_tools choice, Mode is its mode ("auto" or "required").
	Allowed []AllowedTool
	Mode    string
}

// AllowedTool is one entry of an allowed_tools choice: a tool's type with its name or server label, if it has one.
type AllowedTool struct{ Type, Label string }

// Allows reports whether the choice leaves the function of this canonical name to the model.
func (c *Choice) Allows(function string) bool {
	return c.Form != AllowedTools || c.allows(AllowedTool{"function", function})
}

// allows reports whether an allowed_tools choice names the tool: by itself, by its type, or by its group.
func (c *Choice) allows(tool AllowedTool) bool {
	return slices.ContainsFunc(c.Allowed, func(a AllowedTool) bool {
		switch {
		case a == tool, a.Type == tool.Type && a.Label == "" && a.Type != "function":
			return true
		case a.Type == "namespace":
			return strings.HasPrefix(tool.Label, a.Label+".")
		}
		group, member, ok := strings.Cut(tool.Label, ".")
		return ok && group != "" && a.Type == tool.Type && a.Type != "function" && a.Label == member
	})
}

// scanChoice reads the value of tool_choice. Chat nests names within "function" and "custom", and the list within
// "allowed_tools"; Responses has all of it flat. Both are understood in both.
func scanChoice(b []byte, at Range) Choice {
	switch {
	case isString(b, at):
		switch text(b, at) {
		case "none":
			return Choice{Form: ChoiceNone}
		case "required", "any":
			return Choice{Form: ChoiceRequired}
		}
	case startsWith(b, at, '{'):
		switch kind := text(b, find(b, at.Start, "type")); kind {
		case "function":
			return Choice{Form: ChoiceFunction, Function: toolLabel(b, at, kind)}
		case "allowed_tools":
			list := at
			if inner := find(b, at.Start, "allowed_tools"); startsWith(b, inner, '{') {
				list = inner
			}
			c := Choice{Form: AllowedTools, Mode: text(b, find(b, list.Start, "mode"))}
			if c.Mode == "" {
				c.Mode = "auto"
			}
			if tools := find(b, list.Start, "tools"); startsWith(b, tools, '[') {
				for _, tool := range elements(b, tools.Start) {
					if startsWith(b, tool, '{') {
						kind := text(b, find(b, tool.Start, "type"))
						c.Allowed = append(c.Allowed, AllowedTool{kind, toolLabel(b, tool, kind)})
					}
				}
			}
			return c
		}
	}
	return Choice{}
}

// toolLabel returns the name, with its namespace if it has one, or the server label of a reference to a tool.
func toolLabel(b []byte, at Range, kind string) string {
	if inner := find(b, at.Start, kind); startsWith(b, inner, '{') {
		at = inner
	}
	name := text(b, find(b, at.Start, "name"))
	if name == "" {
		return text(b, find(b, at.Start, "server_label"))
	}
	if space := text(b, find(b, at.Start, "namespace")); space != "" {
		return space + "." + name
	}
	return name
}
