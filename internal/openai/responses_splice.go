package openai

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// A splice of Responses tells of one whole answer. Its anchors name the items that the client saw, each with the item's
// place among them:
//
//	N>call:ID#DIGEST, N>item:ID, N>encrypted:DIGEST   the N-th visible item
//	response:ID                                       a response of the answer, the last one or an earlier one
//	conversation:ID                                   the conversation that the request named
//
// Within holds the runs of hidden items, each with the number of visible items in front of it as its Position; a run
// with a Result is a hidden call of a mixed turn, whose result stands beside those of the client. The Position -1 is that of
// calls that the model wrote as text: where state at the upstream holds that text, they go in front of their results. Before
// is the id of the last response as a JSON string: it takes the place of an earlier one, whose hidden call is still open.

const (
	responseAnchor     = "response:"
	conversationAnchor = "conversation:"
)

// Splices implements Dialect.
func (responses) Splices(v *View, rounds []Round, results [][]Result, last Round) []Splice {
	s := Splice{At: len(v.Items)}
	visible := 0
	show := func(r Round, item *outputItem) {
		for _, anchor := range item.anchors(r) {
			s.Anchors = append(s.Anchors, strconv.Itoa(visible)+">"+anchor)
		}
		visible++
	}
	hide := func(raw []byte) {
		if n := len(s.Within); n > 0 && s.Within[n-1].Position == visible {
			s.Within[n-1].Call = append(append(s.Within[n-1].Call, ','), raw...)
			return
		}
		s.Within = append(s.Within, HiddenCall{Position: visible, Call: bytes.Clone(raw)})
	}
	for i, round := range rounds {
		for _, item := range round.outputItems() {
			switch {
			case item.visible():
				show(round, item)
			case item.replay != nil:
				hide(item.replay)
			}
		}
		if len(results[i]) > 0 {
			hide(appendOutputs(nil, round, results[i]))
		}
	}
	var given []Result
	if len(results) > len(rounds) {
		given = unbundled(last.Calls, results[len(rounds)])
	}
	var reasoning []byte // in front of a hidden call
	if written := last.writtenCalls(); len(written) > 0 {
		s.Within = append(s.Within, HiddenCall{Position: -1, Call: written})
	}
	for _, item := range last.outputItems() {
		switch {
		case item.visible():
			show(last, item)
			reasoning = nil
		case item.kind == reasoningOutput && item.replay != nil:
			reasoning = append(append(reasoning, item.replay...), ',')
		case item.kind == functionOutput:
			id := callID(item.raw())
			if n := slices.IndexFunc(given, func(r Result) bool { return r.CallID == id }); n >= 0 {
				call := append(reasoning, item.replay...)
				s.Within = append(s.Within, HiddenCall{visible, call, appendOutput(nil, last, given[n])})
			}
			reasoning = nil
		}
	}
	if len(s.Within) == 0 {
		return nil
	}
	for _, round := range append(slices.Clone(rounds), last) {
		if round.ResponseID != "" {
			s.Anchors = append(s.Anchors, responseAnchor+round.ResponseID)
		}
	}
	if v.Conversation != "" {
		s.Anchors = append(s.Anchors, conversationAnchor+v.Conversation)
	}
	if last.ResponseID != "" {
		s.Before = AppendString(nil, last.ResponseID)
	}
	if len(s.Anchors) == 0 {
		return nil
	}
	return []Splice{s}
}

// writtenCalls returns the calls that the model wrote as text, as raw, comma-separated items.
func (r Round) writtenCalls() (calls []byte) {
	for _, item := range r.outputItems() {
		if item.written {
			calls = joined(calls, item.replay)
		}
	}
	return calls
}

func (r Round) outputItems() []*outputItem {
	items, _ := r.shape.([]*outputItem)
	return items
}

// anchors returns the names under which the client may bring the item back.
func (item *outputItem) anchors(r Round) []string {
	raw := item.raw()
	if item.own != nil {
		raw = item.own
	}
	var out []string
	if id := text(raw, find(raw, 0, "id")); id != "" {
		out = append(out, itemAnchor(id))
	}
	switch item.kind {
	case functionOutput, clientCallOutput:
		id := callID(raw)
		for _, c := range r.Calls {
			if c.ID == id {
				return append(out, CallAnchor(c))
			}
		}
	case reasoningOutput:
		if encrypted := text(raw, find(raw, 0, "encrypted_content")); encrypted != "" {
			return append(out, encryptedAnchor(encrypted))
		}
	}
	return out
}

// OutputAnchors returns anchors of the newest visible items of the round that are no calls, at most so many of them.
func (r Round) OutputAnchors(most int) []string {
	var out []string
	items := r.outputItems()
	for i := len(items) - 1; i >= 0 && most > 0; i-- {
		if item := items[i]; item.visible() && item.kind != functionOutput && item.kind != clientCallOutput {
			most--
			out = append(out, item.anchors(r)...)
		}
	}
	return out
}

// currentResponse returns the id, as a JSON string, of the response that takes the place of the one which the request
// names; nil if that is the one to name.
func (responses) currentResponse(v *View, splices []Splice) []byte {
	if v.PreviousResponse == "" {
		return nil
	}
	for i := len(splices) - 1; i >= 0; i-- {
		s := splices[i]
		if len(s.Before) > 0 && slices.Contains(s.Anchors, responseAnchor+v.PreviousResponse) {
			if bytes.Equal(s.Before, v.previous.Of(v.Body)) {
				return nil
			}
			return s.Before
		}
	}
	return nil
}

// spliceEdits puts hidden items back where the visible items of their answers stand, and the results of hidden calls
// beside the client's where the calls are at the upstream.
func (responses) spliceEdits(v *View, splices []Splice) []Edit {
	if len(splices) == 0 || !startsWith(v.Body, v.items, '[') {
		return nil
	}
	aligned := alignAnswers(v, splices)
	nameless := v.nameless(aligned)
	var edits []Edit
	for n, s := range splices {
		if len(s.Within) == 0 {
			continue
		}
		if len(aligned[n]) > 0 {
			edits = append(edits, v.runEdits(s, aligned[n], nameless)...)
			edits = append(edits, v.resultEdits(s, aligned[n][len(aligned[n])-1].item)...)
			continue
		}
		state := responseAnchor + v.PreviousResponse
		if v.Conversation != "" {
			state = conversationAnchor + v.Conversation
		}
		if slices.Contains(s.Anchors, state) {
			edits = append(edits, v.writtenEdits(s)...)
			edits = append(edits, v.resultEdits(s, -1)...)
		}
	}
	return edits
}

// alignment says which item of the request is which visible item of an answer.
type alignment struct{ position, item int }

// anchoredItem is a visible item of an answer that a request may hold.
type anchoredItem struct {
	splice, position int
	index            int // among the client's items, when the answer was given
	id               string
	found            bool
}

// alignAnswers finds the visible items of answers in the request, for each splice in their order. An item at the very place
// that it had when the answer was given counts first, then the newest answers are matched from the end of the request: on
// servers that repeat ids they are the ones that are remembered.
func alignAnswers(v *View, splices []Splice) [][]alignment {
	byAnchor := make(map[string][]*anchoredItem)
	callIDs := make(map[string]bool) // most calls of a history need no digest
	encrypted := false
	for n, s := range splices {
		var at *anchoredItem
		for _, a := range s.Anchors {
			number, anchor, ok := strings.Cut(a, ">")
			position, err := strconv.Atoi(number)
			if !ok || err != nil {
				continue
			}
			if at == nil || at.position != position {
				at = &anchoredItem{splice: n, position: position, index: s.At + position}
			}
			switch kind, rest, _ := strings.Cut(anchor, ":"); kind {
			case "item":
				at.id = rest
			case "call":
				callIDs[anchoredCall(anchor)] = true
			case "encrypted":
				encrypted = true
			}
			byAnchor[anchor] = append(byAnchor[anchor], at)
		}
	}
	find := func(i int, inPlace bool) *anchoredItem {
		item := v.Items[i]
		var at *anchoredItem
		if item.ID != "" {
			at = newest(byAnchor[itemAnchor(item.ID)], item.ID, i, inPlace)
		}
		if at == nil && len(item.Calls) > 0 && callIDs[item.Calls[0].ID] {
			at = newest(byAnchor[v.Anchor(item.Calls[0])], item.ID, i, inPlace)
		}
		if at == nil && encrypted && item.ID == "" && item.Kind == KindAssistant {
			at = newest(byAnchor[v.outputAnchor(i)], "", i, inPlace)
		}
		return at
	}
	aligned := make([][]alignment, len(splices))
	taken := make(map[int]bool)
	for _, inPlace := range []bool{true, false} {
		for i := len(v.Items) - 1; i >= 0; i-- {
			if kind := v.Items[i].Kind; kind != KindAssistant && kind != KindCall || taken[i] {
				continue
			}
			if at := find(i, inPlace); at != nil {
				at.found, taken[i] = true, true
				aligned[at.splice] = append(aligned[at.splice], alignment{at.position, i})
			}
		}
	}
	for _, list := range aligned {
		slices.SortFunc(list, func(a, b alignment) int { return a.position - b.position })
	}
	return aligned
}

// newest returns the newest candidate that is not found yet, that does not bear another id, and that was at the item's
// index, if only that counts.
func newest(candidates []*anchoredItem, id string, index int, inPlace bool) *anchoredItem {
	for i := len(candidates) - 1; i >= 0; i-- {
		if c := candidates[i]; !c.found && (id == "" || c.id == "" || c.id == id) && (!inPlace || c.index == index) {
			return c
		}
	}
	return nil
}

// runEdits puts the hidden runs of an answer between its visible items. Where the client has left out the item that a run
// stood before, or given it no name, the run is placed by the nearest item that it kept.
func (v *View) runEdits(s Splice, aligned []alignment, nameless func(int) bool) []Edit {
	var edits []Edit
	for _, run := range s.Within {
		if run.Position < 0 {
			continue
		}
		if next := slices.IndexFunc(aligned, func(a alignment) bool { return a.position >= run.Position }); next >= 0 {
			at := aligned[next].item
			for steps := aligned[next].position - run.Position; steps > 0 && nameless(at-1); steps-- {
				at--
			}
			edits = append(edits, insert(v.Items[at].Start, append(bytes.Clone(run.Call), ',')))
			continue
		}
		last := aligned[len(aligned)-1]
		at := last.item
		for steps := run.Position - last.position - 1; steps > 0 && nameless(at+1); steps-- {
			at++
		}
		edits = append(edits, insert(v.Items[at].End, append([]byte{','}, run.Call...)))
	}
	return edits
}

// writtenEdits puts the calls that the model wrote as text in front of the results that the client gives for them.
func (v *View) writtenEdits(s Splice) []Edit {
	first := slices.IndexFunc(v.Items, func(item Item) bool { return item.Kind == KindResult && s.answers(item.ResultOf) })
	written := slices.IndexFunc(s.Within, func(run HiddenCall) bool { return run.Position < 0 })
	if first < 0 || written < 0 {
		return nil
	}
	return []Edit{insert(v.Items[first].Start, append(bytes.Clone(s.Within[written].Call), ','))}
}

// nameless returns a function that reports whether the item at an index is an output item that is not found to belong to
// an answer.
func (v *View) nameless(aligned [][]alignment) func(int) bool {
	found := make(map[int]bool)
	for _, list := range aligned {
		for _, a := range list {
			found[a.item] = true
		}
	}
	return func(i int) bool {
		return i >= 0 && i < len(v.Items) && v.Items[i].Kind == KindAssistant && !found[i]
	}
}

// resultEdits puts the results of hidden calls behind those that the client gives for its own calls of the same turn;
// without any, behind the item at this index, if there is one. Behind the next call the turn is over: its results are
// another's, whatever their ids.
func (v *View) resultEdits(s Splice, after int) []Edit {
	for i := after + 1; i < len(v.Items) && v.Items[i].Kind != KindCall; i++ {
		if v.Items[i].Kind == KindResult && s.answers(v.Items[i].ResultOf) {
			after = i
		}
	}
	if after < 0 {
		return nil
	}
	var edits []Edit
	for _, run := range s.Within {
		if len(run.Result) > 0 {
			edits = append(edits, insert(v.Items[after].End, append([]byte{','}, run.Result...)))
		}
	}
	return edits
}

// answers reports whether an id is that of a visible call of the answer.
func (s Splice) answers(id string) bool {
	return id != "" && slices.ContainsFunc(s.Anchors, func(a string) bool {
		_, anchor, _ := strings.Cut(a, ">")
		return strings.HasPrefix(anchor, "call:") && anchoredCall(anchor) == id
	})
}
