package upstreamtest

import (
	"bytes"
	"sort"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// AccumulateChat returns the assistant message of choice 0 that a client ends up with, as JSON, from a whole answer or
// an event stream. Streamed strings are joined, numbers and null replaced, arrays merged by the index of their entries
// (entries without one are appended), as the SDKs do; the delta's index members are left out of calls.
// It returns nil for an answer without a message.
func AccumulateChat(body []byte) []byte {
	if trimmed := bytes.TrimSpace(body); bytes.HasPrefix(trimmed, []byte("{")) {
		if message := gjson.GetBytes(trimmed, "choices.0.message"); message.IsObject() {
			return []byte(message.Raw)
		}
		return nil
	}
	list, _ := events(body)
	var message *node
	for _, next := range list {
		for _, choice := range gjson.Get(next.data, "choices").Array() {
			delta := choice.Get("delta")
			if choice.Get("index").Int() != 0 || !delta.IsObject() {
				continue
			}
			if message == nil {
				message = &node{}
			}
			message.merge(delta)
		}
	}
	if message == nil {
		return nil
	}
	text := message.json()
	for i := range gjson.Get(text, "tool_calls").Array() {
		text, _ = sjson.Delete(text, "tool_calls."+strconv.Itoa(i)+".index") // valid JSON and a plain path: no error
	}
	return []byte(text)
}

// AccumulateResponses returns the output array that a client ends up with, as JSON, from a whole answer or an event
// stream: what output_item.done events said, in the order of output_index. It returns nil for an answer without output.
func AccumulateResponses(body []byte) []byte {
	if trimmed := bytes.TrimSpace(body); bytes.HasPrefix(trimmed, []byte("{")) {
		if output := gjson.GetBytes(trimmed, "output"); output.IsArray() {
			return []byte(output.Raw)
		}
		return nil
	}
	list, _ := events(body)
	items := map[int]string{}
	var order []int
	seen := false
	for _, next := range list {
		data := gjson.Parse(next.data)
		seen = seen || data.Get("response").IsObject()
		if data.Get("type").String() != "response.output_item.done" {
			continue
		}
		index := int(data.Get("output_index").Int())
		if _, twice := items[index]; !twice {
			order = append(order, index)
		}
		items[index] = data.Get("item").Raw
	}
	if !seen {
		return nil
	}
	sort.Ints(order)
	values := make([]string, len(order))
	for i, index := range order {
		values[i] = items[index]
	}
	return []byte(array(values))
}

// node is a JSON value that grows by deltas.
type node struct {
	scalar  string // raw JSON of a value that is replaced
	text    *string
	keys    []string
	members map[string]*node
	list    []*node
	isList  bool
}

func (n *node) merge(delta gjson.Result) {
	switch {
	case delta.Type == gjson.String:
		if n.text == nil {
			n.text = new(string)
		}
		*n.text += delta.String()
	case delta.IsObject():
		if n.members == nil {
			n.members = map[string]*node{}
		}
		delta.ForEach(func(key, value gjson.Result) bool {
			member, known := n.members[key.String()]
			if !known {
				member = &node{}
				n.members[key.String()] = member
				n.keys = append(n.keys, key.String())
			}
			if value.Type == gjson.String && (key.String() == "type" || key.String() == "index") {
				member.text = nil // the SDKs assign these
			}
			member.merge(value)
			return true
		})
	case delta.IsArray():
		n.isList = true
		for _, entry := range delta.Array() {
			n.entry(entry).merge(entry)
		}
	default:
		if n.text == nil && n.members == nil && !n.isList {
			n.scalar = delta.Raw
		}
	}
}

// entry finds the list entry that a delta's entry continues.
func (n *node) entry(delta gjson.Result) *node {
	if index := delta.Get("index"); index.Type == gjson.Number {
		for _, known := range n.list {
			if place := known.members["index"]; place != nil && place.scalar == index.Raw {
				return known
			}
		}
	}
	n.list = append(n.list, &node{})
	return n.list[len(n.list)-1]
}

func (n *node) json() string {
	switch {
	case n.text != nil:
		return quote(*n.text)
	case n.members != nil:
		pairs := make([]string, 0, 2*len(n.keys))
		for _, key := range n.keys {
			pairs = append(pairs, key, n.members[key].json())
		}
		return object(pairs...)
	case n.isList:
		values := make([]string, len(n.list))
		for i, entry := range n.list {
			values[i] = entry.json()
		}
		return array(values)
	}
	return strings.TrimSpace(n.scalar)
}
