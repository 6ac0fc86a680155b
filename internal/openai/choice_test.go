package openai

import (
	"reflect"
	"testing"
)

func TestScanChoice(t *testing.T) {
	allowed := Choice{Form: AllowedTools, Mode: "required", Allowed: []AllowedTool{{"function", "a"}, {"custom",
		"c"}, {"mcp", "docs"}, {"function", "mail.send"}}}
	cases := []struct {
		text string
		want Choice
	}{
		{``, Choice{}}, {`null`, Choice{}}, {`"auto"`, Choice{}}, {`"unheard of"`, Choice{}}, {`7`, Choice{}},
		{`{"type":"file_search"}`, Choice{}},
		{`"none"`, Choice{Form: ChoiceNone}}, {`"required"`, Choice{Form: ChoiceRequired}}, {`"any"`,
			Choice{Form: ChoiceRequired}},
		{`{"type":"function","function":{"name":"a\u0062"}}`, Choice{Form: ChoiceFunction, Function: "ab"}},
		{`{"type":"function","name":"a"}`, Choice{Form: ChoiceFunction, Function: "a"}},
		{`{"type":"function","name":"send","namespace":"mail"}`, Choice{Form: ChoiceFunction, Function: "mail.send"}},
		{`{"type":"custom","custom":{"name":"a"}}`, Choice{}},
		{`{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function",` +
			`"function":{"name":"a"}},` +
			`{"type":"custom","custom":{"name":"c"}},{"type":"mcp","server_label":"docs"},{"type":"function",` +
			`"namespace":"mail","name":"send"},3]}}`, allowed},
		{`{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"a"},{"type":"custom",` +
			`"name":"c"},{"type":"mcp","server_label":"docs"},` +
			`{"type":"function","name":"send","namespace":"mail"}]}`, allowed},
		{`{"type":"allowed_tools","tools":[]}`, Choice{Form: AllowedTools, Mode: "auto"}},
		{`{"type":"allowed_tools","tools":{}}`, Choice{Form: AllowedTools, Mode: "auto"}},
	}
	for _, c := range cases {
		if got := scanChoice([]byte(c.text), Range{0, len(c.text)}); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s was read as %+v, want %+v", c.text, got, c.want)
		}
	}
	if !allowed.Allows("a") || allowed.Allows("b") || allowed.Allows("c") || allowed.Allows("send") ||
		!allowed.Allows("mail.send") {
		t.Error("the wrong functions are allowed")
	}
	if none := (Choice{}); !none.Allows("b") {
		t.Error("without a restriction a function is not allowed")
	}
}
