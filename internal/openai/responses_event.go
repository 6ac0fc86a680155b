package openai

import (
	"bytes"
	"strconv"
)

// responsesEvent records where things stand in one event of a Responses stream. Every range is absent where the event has
// no such member: events are told apart by the members that they have, so that unknown types pass.
type responsesEvent struct {
	data     []byte
	kind     []byte // type
	sequence Range
	index    Range // output_index
	itemID   Range
	item     Range
	response Range
	delta    Range
	text     Range
	name     Range
	err      Range // error
}

// read takes an event apart; false if its data is no complete object.
func (e *responsesEvent) read(ev Event) bool {
	data := ev.Data
	*e = responsesEvent{data: data, kind: ev.Name}
	end := eachMember(data, skipSpace(data, 0), func(key []byte, _, start int) int {
		end := skipValue(data, start)
		value := Range{start, end}
		switch string(key) {
		case "type":
			if isString(data, value) {
				e.kind = data[start+1 : end-1]
			}
		case "sequence_number":
			e.sequence = value
		case "output_index":
			e.index = value
		case "item_id":
			e.itemID = value
		case "item":
			e.item = value
		case "response":
			e.response = value
		case "delta":
			e.delta = value
		case "text":
			e.text = value
		case "name":
			e.name = value
		case "error":
			e.err = value
		}
		return end
	})
	return end >= 0
}

// outputIndex returns the place that the upstream gives the item of the event, -1 if it gives none.
func (e *responsesEvent) outputIndex() int {
	if e.index.Absent() {
		return -1
	}
	n, err := strconv.Atoi(string(e.index.Of(e.data)))
	if err != nil {
		return -1
	}
	return n
}

// shows reports whether the event carries text that a reader would see.
func (e *responsesEvent) shows() bool {
	for _, at := range []Range{e.delta, e.text} {
		if isString(e.data, at) && at.End-at.Start > 2 {
			return true
		}
	}
	return false
}

// clone returns the event with bytes of its own.
func (ev Event) clone() Event {
	ev.Raw, ev.Name = bytes.Clone(ev.Raw), bytes.Clone(ev.Name)
	if ev.dataAt >= 0 {
		ev.Data = ev.Raw[ev.dataAt : ev.dataAt+len(ev.Data)]
	} else {
		ev.Data = bytes.Clone(ev.Data)
	}
	return ev
}

// ownEvent returns an event of the proxy's own making.
func ownEvent(kind string, data []byte) Event {
	return Event{Name: []byte(kind), Data: data, dataAt: -1}
}

// responseObject records where things stand in a response object.
type responseObject struct {
	at                                               Range
	id, status, createdAt, usage, output, err, store Range
	tools, choice, instructions, previous            Range
}

// read takes the object at the range apart; false if it is none, or empty.
func (r *responseObject) read(b []byte, at Range) bool {
	*r = responseObject{}
	if !startsWith(b, at, '{') || skipSpace(b, at.Start+1) == at.End-1 {
		return false
	}
	r.at = at
	end := eachMember(b, at.Start, func(key []byte, _, start int) int {
		end := skipValue(b, start)
		value := Range{start, end}
		switch string(key) {
		case "id":
			r.id = value
		case "status":
			r.status = value
		case "created_at":
			r.createdAt = value
		case "usage":
			r.usage = value
		case "output":
			r.output = value
		case "error":
			r.err = value
		case "store":
			r.store = value
		case "tools":
			r.tools = value
		case "tool_choice":
			r.choice = value
		case "instructions":
			r.instructions = value
		case "previous_response_id":
			r.previous = value
		}
		return end
	})
	if end < 0 {
		*r = responseObject{}
	}
	return end >= 0
}

// echo appends the edits that give the response object the client's own words where the proxy's differed from them. What
// the upstream leaves out is left out.
func (r *responseObject) echo(edits []Edit, v *View) []Edit {
	replace := func(at, own Range) {
		if !at.Absent() && !own.Absent() {
			edits = append(edits, Edit{at, own.Of(v.Body)})
		}
	}
	if !r.tools.Absent() && v.Tools != nil {
		edits = append(edits, Edit{r.tools, v.Tools.Raw})
	}
	replace(r.choice, v.choice)
	replace(r.previous, v.previous)
	switch {
	case r.instructions.Absent():
	case v.instructions.Absent():
		edits = append(edits, Edit{r.instructions, []byte("null")})
	default:
		replace(r.instructions, v.instructions)
	}
	return edits
}
