package openai

import (
	"strings"
	"testing"
)

func TestCallAnchor(t *testing.T) {
	anchor := func(id, name, arguments string) string {
		return CallAnchor(Call{ID: id, Name: name, Arguments: []byte(arguments)})
	}
	first := anchor("c1", "a", `{"x":1,"y":"a b"}`)
	if !strings.HasPrefix(first, "call:c1#") {
		t.Errorf("got %s", first)
	}
	if got := anchor("c1", "a", "{ \"x\" : 1,\n\"y\":\"a b\" }"); got != first {
		t.Error("white space in the arguments makes another anchor")
	}
	for name, other := range map[string]string{
		"id": anchor("c2", "a", `{"x":1,"y":"a b"}`), "name": anchor("c1", "b", `{"x":1,"y":"a b"}`),
		"arguments": anchor("c1", "a", `{"x":2,"y":"a b"}`), "white space in a string": anchor("c1", "a",
			`{"x":1,"y":"ab"}`),
	} {
		if other == first {
			t.Errorf("another %s makes the same anchor", name)
		}
	}
	// The client's history leads to the anchor of the answer, however it writes the arguments.
	for _, written := range []string{`"{\"x\":1,\"y\":\"a b\"}"`, `"{\"x\": 1, \"y\": \"a\u0020b\"}"`,
		`{"x":1,"y":"a b"}`} {
		v := chatView(t, `{"tools":[{"type":"function","function":{"name":"a"}}],"messages":[{"role":"assistant",`+
			`"tool_calls":[{"id":"c1","type":"function",`+
			`"function":{"name":"a","arguments":`+written+`}}]}]}`)
		if got := v.Anchor(v.Items[0].Calls[0]); got != first {
			t.Errorf("arguments written as %s make the anchor %s, want %s", written, got, first)
		}
	}
	for _, written := range []string{`""`, `null`} {
		v := chatView(t, `{"tools":[{"type":"function","function":{"name":"a"}}],"messages":[{"role":"assistant",`+
			`"tool_calls":[{"id":"c#1",`+
			`"function":{"name":"a","arguments":`+written+`}}]}]}`)
		if got := v.Anchor(v.Items[0].Calls[0]); got != anchor("c#1", "a", "") {
			t.Errorf("arguments written as %s make the anchor %s", written, got)
		}
	}
}

func TestContentText(t *testing.T) {
	body := []byte(`["a",{"text":"b"},{"type":"image"},{"text":"c"}]`)
	if got := contentText(body, Range{0, len(body)}); got != "bc" {
		t.Errorf("the text of the parts is %q", got)
	}
}

func FuzzCallAnchor(f *testing.F) {
	f.Add("c", "n", []byte(`{"a": "\"`))
	f.Fuzz(func(t *testing.T, id, name string, arguments []byte) {
		before := string(arguments)
		first := CallAnchor(Call{ID: id, Name: name, Arguments: arguments})
		if first != CallAnchor(Call{ID: id, Name: name, Arguments: []byte(before)}) || string(arguments) != before {
			t.Fatal("the anchor of a call changes, or the call")
		}
		if got := anchoredCall(first); got != id {
			t.Fatalf("the id %q is not found in %q but %q", id, first, got)
		}
	})
}

func BenchmarkCallAnchor(b *testing.B) {
	c := Call{ID: "call_abc", Name: "read_file", Arguments: []byte(`{"path": "a.txt", "text": "` +
		strings.Repeat("word ", 200) + `"}`)}
	b.ReportAllocs()
	for b.Loop() {
		CallAnchor(c)
	}
}
