package openai

import (
	"bytes"
	"strconv"

	"github.com/tidwall/gjson"
)

// chatAnswer builds the one answer of a Chat Completions request: one id, one role, one finish reason, one usage chunk.
type chatAnswer struct {
	view    *View
	options AnswerOptions
	names   Names

	// The identity of the streamed answer, as raw JSON values: those of the first chunk that the client gets.
	id, created, model []byte
	roleGiven          bool
	opened             bool   // the client has got something
	held               []byte // what shows nothing and waits for something that does
	nextIndex          int    // visible calls so far
	passed             lookalike

	rounds int // begun so far
	round  *chatRound
	// Of the hidden rounds before this one:
	usages   [][]byte
	usageOwn []byte   // the last chunk that held nothing but a usage
	messages [][]byte // raw messages of whole answers
	logprobs merged   // of whole answers: what stands beside the texts of messages
}

// chatRound is what is known of the running round.
type chatRound struct {
	message  merged
	calls    []*chatStreamCall
	finish   []byte // the chunk that holds the finish reason, which waits for the end of the round
	emptied  bool   // that chunk's delta has been shown already
	reason   string // finish reason
	usage    []byte
	usageOwn []byte // the chunk that holds nothing but the usage
	done     bool   // [DONE]
	refused  bool
	failure  *Failure
	whole    []byte // body of an answer that is not streamed
	at       wholeRanges
	written  []TextCall
	prefix   *TextCallPrefix
	waiting  []byte // chunks whose text may still become text calls
	base     []byte // the first of them, as it came
}

// chatStreamCall is one call of the running round, as far as it has come.
type chatStreamCall struct {
	label     string // raw index as the upstream counts, "" if it does not
	id, name  string
	custom    bool
	settled   bool // the name is known
	class     Class
	index     int // among the visible calls, from 1 on; 0 while it has none
	shown     bool
	arguments []byte // inner bytes of the string, or the raw object
	object    bool
	extra     merged // what else the call holds, and its function
	bodyExtra merged
	waiting   []heldEntry
	raw       []byte  // whole answers: the call as it came
	bundle    *bundle // what it asks for, if it is a bundle with hidden calls
}

// heldEntry is a piece of a call whose name is not settled yet.
type heldEntry struct {
	data  []byte // the chunk
	entry Range
}

func (chat) NewAnswer(v *View, o AnswerOptions) Answer { return &chatAnswer{view: v, options: o} }

func (a *chatAnswer) Begin(names Names) {
	if r := a.round; r != nil {
		a.usages = append(a.usages, r.usage)
		if r.usageOwn != nil {
			a.usageOwn = r.usageOwn
		}
		if r.whole != nil {
			message := r.at.message.Of(r.whole)
			if content := find(message, 0, "content"); len(r.written) > 0 {
				message = applyEdits(nil, message, []Edit{{content, []byte("null")}}) // calls are no text
			}
			a.messages = append(a.messages, message)
			if startsWith(r.whole, r.at.logprobs, '{') {
				a.logprobs.addAll(r.whole, r.at.logprobs)
			}
		}
	}
	if !a.opened {
		// The round before left no trace: this one supplies id and role.
		a.id, a.created, a.model, a.held, a.roleGiven, a.nextIndex = nil, nil, nil, nil, false, 0
	}
	a.names = names
	a.rounds++
	a.round = &chatRound{}
	a.passed.known = false
	if a.options.TextCalls {
		a.round.prefix = &TextCallPrefix{}
	}
}

// chunk records where things stand in one chunk of a stream.
type chunk struct {
	data                              []byte
	id, created, model, usage, err    Range
	choices, delta, finish, scrambled Range
	logprobs                          Range
	members                           []member // of the delta
	role, calls, content              Range
	substance                         bool // the delta shows something, calls aside
}

// read takes a chunk apart; false if it is no object.
func (c *chunk) read(data []byte) bool {
	members := c.members[:0]
	*c = chunk{data: data}
	end := eachMember(data, skipSpace(data, 0), func(key []byte, _, start int) int {
		end := skipValue(data, start)
		value := Range{start, end}
		switch string(key) {
		case "id":
			c.id = value
		case "created":
			c.created = value
		case "model":
			c.model = value
		case "usage":
			c.usage = value
		case "error":
			c.err = value
		case "choices":
			c.choices = value
		case "obfuscation":
			c.scrambled = value
		}
		return end
	})
	if end < 0 {
		return false
	}
	if !startsWith(data, c.choices, '[') {
		return true
	}
	first := skipSpace(data, c.choices.Start+1)
	eachMember(data, first, func(key []byte, _, start int) int {
		end := skipValue(data, start)
		switch string(key) {
		case "delta":
			c.delta = Range{start, end}
		case "finish_reason":
			c.finish = Range{start, end}
		case "logprobs":
			c.logprobs = Range{start, end}
		}
		return end
	})
	if !startsWith(data, c.delta, '{') {
		return true
	}
	c.members, _ = appendMembers(members, data, c.delta.Start)
	for _, m := range c.members {
		switch string(m.Key) {
		case "role":
			if isString(data, m.Value) {
				c.role = m.Value
			}
			continue
		case "tool_calls":
			c.calls = m.Value
			continue
		case "content":
			c.content = m.Value
		}
		c.substance = c.substance || !isEmptyValue(data, m.Value)
	}
	return true
}

// beside reports whether the delta shows something beside its content and its calls.
func (c *chunk) beside() bool {
	for _, m := range c.members {
		switch string(m.Key) {
		case "role", "tool_calls", "content":
		default:
			if !isEmptyValue(c.data, m.Value) {
				return true
			}
		}
	}
	return false
}

// isEmptyValue reports whether a value shows nothing: null, "", [] or {}.
func isEmptyValue(b []byte, v Range) bool {
	switch string(v.Of(b)) {
	case "null", `""`, "[]", "{}":
		return true
	}
	return false
}

func (a *chatAnswer) Event(dst []byte, ev Event) []byte {
	r := a.round
	switch {
	case r.done || r.failure != nil:
		return dst // what follows the end is nobody's
	case ev.Data == nil:
		if a.opened {
			dst = append(dst, ev.Raw...)
		}
		return dst
	case bytes.HasPrefix(ev.Data, []byte("[DONE]")):
		r.done = true
		return dst
	}
	if text, ok := a.passed.text(ev.Raw); ok {
		r.message.add(ev.Raw, []byte("content"), text)
		return append(dst, ev.Raw...)
	}
	c := chunkPool.Get().(*chunk)
	defer chunkPool.Put(c)
	if !c.read(ev.Data) {
		return a.show(dst, ev.Raw, false)
	}
	if isError(c.data, c.err) {
		r.failure = readFailure(c.data)
		r.failure.Event = bytes.Clone(ev.Raw)
		return dst
	}
	if !isNull(c.data, c.usage) {
		r.usage = bytes.Clone(c.usage.Of(c.data))
	}
	if !startsWith(c.data, c.choices, '[') || emptyArray(c.data, c.choices) {
		if r.usage != nil && !isNull(c.data, c.usage) {
			r.usageOwn = bytes.Clone(c.data)
			return dst
		}
		return a.show(dst, ev.Raw, false)
	}
	if c.delta.Absent() && !isString(c.data, c.finish) && (r.reason == "" || isNull(c.data, c.usage)) {
		return a.show(dst, ev.Raw, false)
	}
	return a.delta(dst, ev, c)
}

// isError reports whether the member error of a chunk is one; some servers always send it.
func isError(b []byte, at Range) bool {
	return !at.Absent() && !isEmptyValue(b, at) && string(at.Of(b)) != "false"
}

// Progress implements Answer.
func (a *chatAnswer) Progress() Progress {
	switch r := a.round; {
	case r.done || r.failure != nil:
		return Over
	case r.reason != "":
		return Ending
	}
	return Running
}

// delta takes a chunk that carries a delta or a finish reason.
func (a *chatAnswer) delta(dst []byte, ev Event, c *chunk) []byte {
	r := a.round
	a.accumulate(c)
	if r.reason != "" && !c.substance && !hasElements(c.data, c.calls) && !isNull(c.data, c.usage) {
		r.usageOwn = bytes.Clone(c.data) // a usage chunk with a choice that says nothing
		return dst
	}
	finishes := isString(c.data, c.finish) && c.finish.End-c.finish.Start > 2
	if finishes && r.reason != "" {
		finishes = false // a second finish contradicts what the client has seen
		if !c.substance && !hasElements(c.data, c.calls) {
			return dst
		}
	}
	calls := hasElements(c.data, c.calls)
	if finishes {
		r.reason = text(c.data, c.finish)
		r.finish = bytes.Clone(c.data)
		r.emptied = c.substance || calls
	}
	if r.prefix != nil {
		switch {
		case calls || !a.mayBecomeCalls(c):
			r.prefix = nil
			dst = a.show(dst, r.waiting, true)
			r.waiting = nil
		case !c.content.Absent() && !isEmptyValue(c.data, c.content):
			return a.holdText(dst, ev, c)
		}
	}
	switch {
	case finishes && !r.emptied:
		return dst
	case !finishes && !calls && !c.substance && a.roleGiven && !c.role.Absent() && isNull(c.data, c.usage):
		return dst // the opening of a later round
	}
	if !calls {
		if finishes || a.edited(c) {
			return a.showChunk(dst, ev, c, shape{noFinish: finishes || !isNull(c.data, c.finish)}, c.substance)
		}
		a.pin(c)
		dst = a.show(dst, ev.Raw, c.substance)
		if a.opened && len(c.members) == 1 && isNull(c.data, c.usage) {
			a.passed.learn(ev, c)
		}
		return dst
	}
	return a.calls(dst, ev, c, finishes)
}

func hasElements(b []byte, array Range) bool {
	return startsWith(b, array, '[') && !emptyArray(b, array)
}

// mayBecomeCalls feeds the text of a chunk to the recogniser of text calls.
func (a *chatAnswer) mayBecomeCalls(c *chunk) bool {
	if isString(c.data, c.content) {
		return a.round.prefix.Feed(unescaped(c.data[c.content.Start+1 : c.content.End-1]))
	}
	return isNull(c.data, c.content)
}

// holdText keeps the text of a chunk, which may still become text calls, and shows what stands beside it.
func (a *chatAnswer) holdText(dst []byte, ev Event, c *chunk) []byte {
	r := a.round
	if r.base == nil {
		r.base = bytes.Clone(c.data)
	}
	if beside := c.beside(); beside || !c.role.Absent() && !a.roleGiven {
		dst = a.showChunk(dst, ev, c, shape{noFinish: true, noContent: true}, beside)
	}
	r.waiting = a.write(r.waiting, c, shape{noFinish: true, onlyContent: true})
	return dst
}

// accumulate keeps what a hidden round must replay. Once a call is the client's, the round is not going to be hidden and
// the rest of its text need not be kept.
func (a *chatAnswer) accumulate(c *chunk) {
	for _, m := range c.members {
		switch string(m.Key) {
		case "role", "tool_calls":
			continue
		case "refusal":
			a.round.refused = a.round.refused || !isEmptyValue(c.data, m.Value)
		}
		if m.Value.End > m.Value.Start {
			a.round.message.add(c.data, m.Key, m.Value)
		}
	}
}

// shape says how a chunk is to be rewritten beyond the answer's identity.
type shape struct {
	noFinish    bool     // the finish reason comes later
	noDelta     bool     // the delta has been shown
	split       bool     // the calls of the delta are given apart
	onlyCalls   bool     // leave out what the delta holds beside the calls
	onlyContent bool     // leave out what the delta holds beside the content
	noContent   bool     // leave out the content
	usage       []byte   // takes the place of the usage
	calls       [][]byte // the calls that remain of the delta, when split
}

// edited reports whether the chunk must differ from how it came, calls aside.
func (a *chatAnswer) edited(c *chunk) bool {
	if a.roleGiven && !c.role.Absent() || !isNull(c.data, c.finish) {
		return true
	}
	if a.id == nil {
		return false
	}
	return differs(c.data, c.id, a.id) && c.id.End-c.id.Start > 2 || differs(c.data, c.created, a.created) ||
		differs(c.data, c.model, a.model) || len(a.usages) > 0 && !isNull(c.data, c.usage)
}

func differs(b []byte, at Range, pinned []byte) bool {
	return !at.Absent() && pinned != nil && !bytes.Equal(at.Of(b), pinned)
}

// pin takes the identity of the answer from the first chunk that names one.
func (a *chatAnswer) pin(c *chunk) {
	a.roleGiven = a.roleGiven || !c.role.Absent()
	if a.id != nil || c.id.End-c.id.Start <= 2 {
		return
	}
	a.id = bytes.Clone(c.id.Of(c.data))
	if !c.created.Absent() {
		a.created = bytes.Clone(c.created.Of(c.data))
	}
	if !c.model.Absent() {
		a.model = bytes.Clone(c.model.Of(c.data))
	}
}

// write appends the rewritten chunk as an event.
func (a *chatAnswer) write(dst []byte, c *chunk, s shape) []byte {
	return appendEvent(dst, "", a.rewrite(c, s))
}

// rewrite returns the chunk's data with the answer's identity and in the given shape.
func (a *chatAnswer) rewrite(c *chunk, s shape) []byte {
	var edits []Edit
	replace := func(at Range, with []byte) {
		if !at.Absent() && with != nil {
			edits = append(edits, Edit{at, with})
		}
	}
	if a.id != nil && c.id.End-c.id.Start > 2 {
		replace(c.id, a.id)
		replace(c.created, a.created)
		replace(c.model, a.model)
	}
	stripRole := a.roleGiven
	a.pin(c)
	if s.noFinish && !isNull(c.data, c.finish) {
		replace(c.finish, []byte("null"))
	}
	if !isNull(c.data, c.usage) {
		switch {
		case s.usage != nil:
			replace(c.usage, s.usage)
		case s.noFinish:
			replace(c.usage, []byte("null"))
		case len(a.usages) > 0:
			replace(c.usage, sumUsage(c.usage.Of(c.data), a.usages, a.rounds, a.options))
		}
	}
	if s.noDelta || s.onlyCalls || s.noContent {
		replace(c.logprobs, []byte("null")) // they stay with the text
	}
	parted := s.split || s.noContent || s.onlyContent
	switch {
	case s.noDelta:
		replace(c.delta, []byte("{}"))
	case parted || stripRole && !c.role.Absent():
		delta := []byte{'{'}
		add := func(raw []byte) {
			if len(delta) > 1 {
				delta = append(delta, ',')
			}
			delta = append(delta, raw...)
		}
		for _, m := range c.members {
			switch string(m.Key) {
			case "role":
				if !stripRole && !s.onlyContent {
					add(m.Whole.Of(c.data))
				}
			case "tool_calls":
				if !parted {
					add(m.Whole.Of(c.data))
				} else if len(s.calls) > 0 {
					add(append(append([]byte(`"tool_calls":[`), bytes.Join(s.calls, []byte{','})...), ']'))
				}
			case "content":
				if !s.onlyCalls && !s.noContent {
					add(m.Whole.Of(c.data))
				}
			default:
				if !s.onlyCalls && !s.onlyContent {
					add(m.Whole.Of(c.data))
				}
			}
		}
		replace(c.delta, append(delta, '}'))
		if parted && isString(c.data, c.scrambled) {
			replace(c.scrambled, []byte(`""`))
		}
	}
	return applyEdits(nil, c.data, edits)
}

// showChunk shows the chunk in the given shape in the frame in which it came.
func (a *chatAnswer) showChunk(dst []byte, ev Event, c *chunk, s shape, substance bool) []byte {
	return a.show(dst, ev.appendWith(nil, a.rewrite(c, s)), substance)
}

// show gives bytes to the client. What shows nothing waits until something does, so that until then an error can still be
// told by its status.
func (a *chatAnswer) show(dst, raw []byte, substance bool) []byte {
	switch {
	case a.opened:
		return append(dst, raw...)
	case substance && len(raw) > 0:
		a.opened = true
		dst = append(append(dst, a.held...), raw...)
		a.held = nil
		return dst
	}
	a.held = append(a.held, raw...)
	return dst
}

// calls takes a chunk with pieces of calls. Pieces of visible calls flow, those of hidden calls are kept, and those of
// calls whose name is not settled wait.
func (a *chatAnswer) calls(dst []byte, ev Event, c *chunk, finishes bool) []byte {
	type piece struct {
		call  *chatStreamCall
		entry Range
	}
	var pieces []piece
	asItCame := !a.edited(c) && !finishes
	for _, at := range elements(c.data, c.calls.Start) {
		if !startsWith(c.data, at, '{') {
			continue
		}
		var e callEntry
		e.read(c.data, at)
		call := a.callOf(&e)
		a.take(call, c.data, &e)
		asItCame = asItCame && call.settled && !call.class.Hidden() && len(call.waiting) == 0 &&
			e.index == strconv.Itoa(a.indexOf(call)) && a.options.Decode == nil
		pieces = append(pieces, piece{call, at})
	}
	// A new call may have settled the names of those before it: they go first.
	for _, call := range a.round.calls {
		if call.settled && !call.class.Hidden() {
			dst = a.showWaiting(dst, call)
		}
	}
	if asItCame {
		for _, p := range pieces {
			p.call.shown = true
		}
		a.pin(c)
		return a.show(dst, ev.Raw, true)
	}
	if c.substance {
		dst = a.show(dst, ev.appendWith(nil, a.rewrite(c, shape{noFinish: true, split: true})), true)
	}
	var kept []byte // one copy of the chunk for all pieces that wait
	for _, p := range pieces {
		if !p.call.settled && kept == nil {
			kept = bytes.Clone(c.data)
		}
	}
	var now [][]byte
	var shown []*chatStreamCall
	for _, p := range pieces {
		switch {
		case p.call.settled && p.call.class.Hidden():
			p.call.waiting = nil
		case p.call.settled:
			now = append(now, a.visibleEntry(p.call, c.data, p.entry))
			shown = append(shown, p.call)
		default:
			p.call.waiting = append(p.call.waiting, heldEntry{kept, p.entry})
		}
	}
	if len(now) > 0 {
		for _, call := range shown {
			call.shown = true
		}
		s := shape{noFinish: true, split: true, onlyCalls: true, calls: now}
		dst = a.show(dst, appendEvent(nil, "", a.rewrite(c, s)), true)
	} else if !c.substance && !c.role.Absent() && !a.roleGiven {
		dst = a.showChunk(dst, ev, c, shape{noFinish: true, split: true}, false)
	}
	return dst
}

// callEntry is one element of a delta's tool_calls.
type callEntry struct {
	index          string // raw, "" if absent
	id, name       string
	custom         bool
	arguments      Range // value of arguments or input
	nameAt         Range
	indexAt        Range
	hasBody        bool     // a function or custom member is there
	argues         bool     // there is something of the arguments
	extra          []member // of the call
	bodyExtra      []member // of its function
	at, bodyObject Range
}

func (e *callEntry) read(b []byte, at Range) {
	e.at = at
	eachMember(b, at.Start, func(key []byte, keyStart, start int) int {
		end := skipValue(b, start)
		if end < 0 {
			return failed
		}
		value := Range{start, end}
		switch string(key) {
		case "index":
			if !isNull(b, value) {
				e.index, e.indexAt = string(value.Of(b)), value
			}
		case "id":
			e.id = text(b, value)
		case "type":
			e.custom = e.custom || text(b, value) == "custom"
		case "function", "custom":
			if startsWith(b, value, '{') {
				e.hasBody, e.bodyObject = true, value
				e.custom = e.custom || string(key) == "custom"
				eachMember(b, start, func(key []byte, keyStart, start int) int {
					end := skipValue(b, start)
					if end < 0 {
						return failed
					}
					switch value := (Range{start, end}); string(key) {
					case "name":
						e.nameAt = value
					case "arguments", "input":
						e.arguments = value
					default:
						e.bodyExtra = append(e.bodyExtra, member{bytes.Clone(key), Range{keyStart, end}, value})
					}
					return end
				})
				e.name = text(b, e.nameAt)
				e.argues = isString(b, e.arguments) && e.arguments.End-e.arguments.Start > 2 || startsWith(b, e.arguments, '{')
			}
		default:
			e.extra = append(e.extra, member{bytes.Clone(key), Range{keyStart, end}, value})
		}
		return end
	})
}

// callOf finds the call that a piece belongs to, or opens a new one. Servers label calls in many ways: not at all, all
// with 0, from 1 on; a new id, or a name behind complete arguments, always opens a call.
func (a *chatAnswer) callOf(e *callEntry) *chatStreamCall {
	r := a.round
	var call *chatStreamCall
	for i := len(r.calls) - 1; i >= 0 && call == nil; i-- {
		if e.index != "" && r.calls[i].label == e.index || e.index == "" && e.id != "" && r.calls[i].id == e.id {
			call = r.calls[i]
		}
	}
	if n := len(r.calls); n > 0 && call == nil && e.id == "" && e.name == "" {
		call = r.calls[n-1]
	}
	if call != nil && e.id != "" && call.id != "" && call.id != e.id {
		call = nil
	}
	if call != nil && e.id == "" && e.name != "" && (e.name != call.name || e.argues) && call.closed() {
		call = nil
	}
	if call == nil {
		// A new call settles the names of those before it.
		for _, earlier := range r.calls {
			a.settle(earlier)
		}
		call = &chatStreamCall{label: e.index, custom: e.custom}
		r.calls = append(r.calls, call)
	}
	return call
}

// closed reports whether the arguments are a whole object, so that nothing can follow them.
func (call *chatStreamCall) closed() bool {
	n := len(call.arguments)
	return n > 0 && call.arguments[n-1] == '}' && jsonObject(trimSpace(call.text()))
}

// take adds a piece to its call and settles the name when it can be known.
func (a *chatAnswer) take(call *chatStreamCall, b []byte, e *callEntry) {
	if call.id == "" {
		call.id = e.id
	}
	call.custom = call.custom || e.custom
	if e.name != "" && e.name != call.name && len(call.arguments) == 0 {
		call.name += e.name // it may go on after it was settled: nothing that begins so is hidden
	}
	switch {
	case isString(b, e.arguments):
		call.arguments = append(call.arguments, b[e.arguments.Start+1:e.arguments.End-1]...)
	case startsWith(b, e.arguments, '{'):
		call.object = true
		call.arguments = append(call.arguments[:0], e.arguments.Of(b)...)
	}
	for _, m := range e.extra {
		call.extra.add(b, m.Key, m.Value)
	}
	for _, m := range e.bodyExtra {
		call.bodyExtra.add(b, m.Key, m.Value)
	}
	if call.settled || call.name == "" {
		return
	}
	name := a.canonical(call.name)
	switch {
	case a.mayBeBundle(name) && !call.custom:
		// What a bundle is, its arguments say; a name that goes on differently is settled with the next piece.
		if name != bundleName && (e.argues || e.hasBody && e.name == "") {
			a.settle(call)
		}
	case e.argues || e.hasBody && e.name == "" || call.custom || a.options.Decode == nil && a.isVisible(name):
		// A hidden name may go on and be a visible one; an encoded name is decoded once it is whole.
		a.settle(call)
	}
}

// isVisible reports whether every name that begins so is the client's.
func (a *chatAnswer) isVisible(prefix string) bool {
	return !a.names.MayBeHidden(prefix) && !a.names.Classify(prefix).Hidden()
}

func (a *chatAnswer) canonical(name string) string {
	if a.options.Decode != nil {
		return a.options.Decode(name)
	}
	return name
}

// settle fixes the name of a call, and with it whose call it is.
func (a *chatAnswer) settle(call *chatStreamCall) {
	if call.settled {
		return
	}
	call.settled = true
	switch name := a.canonical(call.name); {
	case call.custom:
		// Some models call the virtual tool so; it is never the client's.
		if class := a.names.Classify(name); class == Virtual {
			call.class = class
		}
	default:
		call.class = a.names.Classify(name)
		if name == bundleName && a.mayBeBundle(name) {
			if call.bundle = a.readBundle(call); call.bundle != nil {
				call.class = Virtual
			}
		}
	}
	if !call.class.Hidden() {
		a.indexOf(call)
	}
}

// indexOf gives a visible call its place among the visible calls of the answer.
func (a *chatAnswer) indexOf(call *chatStreamCall) int {
	if call.index == 0 {
		a.nextIndex++
		call.index = a.nextIndex
	}
	return call.index - 1
}

// text returns the JSON text of the arguments as far as it has come.
func (call *chatStreamCall) text() []byte {
	if call.object {
		return call.arguments
	}
	return unescaped(call.arguments)
}

// showWaiting shows the pieces of a call that waited for its name.
func (a *chatAnswer) showWaiting(dst []byte, call *chatStreamCall) []byte {
	for _, held := range call.waiting {
		var c chunk
		c.read(held.data)
		entry := a.visibleEntry(call, held.data, held.entry)
		call.shown = true
		s := shape{noFinish: true, split: true, onlyCalls: true, calls: [][]byte{entry}}
		dst = a.show(dst, appendEvent(nil, "", a.rewrite(&c, s)), true)
	}
	call.waiting = nil
	return dst
}

// visibleEntry returns a piece of a call with the index, and where names are encoded the name, that the client expects.
func (a *chatAnswer) visibleEntry(call *chatStreamCall, b []byte, at Range) []byte {
	var e callEntry
	e.read(b, at)
	var edits []Edit
	index := strconv.AppendInt(nil, int64(a.indexOf(call)), 10)
	if e.indexAt.Absent() {
		edits = append(edits, insert(at.Start+1, append(append([]byte(`"index":`), index...), ',')))
	} else {
		edits = append(edits, Edit{e.indexAt, index})
	}
	if a.options.Decode != nil && e.name != "" {
		// The whole name was put together while the pieces waited: the first one carries it.
		name := ""
		if !call.shown {
			name = a.canonical(call.name)
		}
		edits = append(edits, Edit{e.nameAt, AppendString(nil, name)})
	}
	for i := range edits {
		edits[i].At.Start -= at.Start
		edits[i].At.End -= at.Start
	}
	return applyEdits(nil, at.Of(b), edits)
}

// wholeRanges says where things stand in a whole answer.
type wholeRanges struct{ choice, reason, message, logprobs, usage, err Range }

// read finds the parts of a body; what is not there, or not of its kind, stays absent.
func (w *wholeRanges) read(b []byte) {
	var choices Range
	eachValue(b, skipSpace(b, 0), func(key []byte, value Range) {
		switch string(key) {
		case "choices":
			choices = value
		case "usage":
			w.usage = value
		case "error":
			w.err = value
		}
	})
	if !startsWith(b, choices, '[') || emptyArray(b, choices) {
		return
	}
	start := skipSpace(b, choices.Start+1)
	w.choice = Range{start, skipValue(b, start)}
	eachValue(b, start, func(key []byte, value Range) {
		switch string(key) {
		case "finish_reason":
			w.reason = value
		case "message":
			w.message = value
		case "logprobs":
			w.logprobs = value
		}
	})
	if !startsWith(b, w.message, '{') {
		w.message = Range{}
	}
}

func (a *chatAnswer) Whole(body []byte) {
	r := a.round
	r.whole = body
	r.at.read(body)
	if !isNull(body, r.at.usage) {
		r.usage = r.at.usage.Of(body)
	}
	if !isNull(body, r.at.err) {
		r.failure = readFailure(body)
		return
	}
	r.reason = text(body, r.at.reason)
	r.done = !r.at.choice.Absent()
	if r.at.message.Absent() {
		return
	}
	var calls Range
	eachValue(body, r.at.message.Start, func(key []byte, value Range) {
		switch string(key) {
		case "role":
		case "tool_calls":
			calls = value
		case "refusal":
			r.refused = text(body, value) != ""
			fallthrough
		default:
			r.message.add(body, key, value)
		}
	})
	if startsWith(body, calls, '[') {
		for _, at := range elements(body, calls.Start) {
			a.wholeCall(at.Of(body))
		}
	}
	if a.options.TextCalls && len(r.calls) == 0 {
		a.readTextCalls()
	}
}

// wholeCall takes one call of a whole answer.
func (a *chatAnswer) wholeCall(raw []byte) {
	if raw[0] != '{' {
		return
	}
	var e callEntry
	e.read(raw, Range{0, len(raw)})
	call := &chatStreamCall{custom: e.custom, raw: raw}
	a.round.calls = append(a.round.calls, call)
	a.take(call, raw, &e)
	a.settle(call)
}

// readTextCalls looks for calls that the model wrote as text.
func (a *chatAnswer) readTextCalls() {
	r := a.round
	content, ok := r.message.text("content")
	if !ok || r.reason == "length" || r.reason == "content_filter" {
		return
	}
	written, err := ParseTextCalls([]byte(content), func(name string) bool {
		return a.options.Known != nil && a.options.Known(a.canonical(name))
	})
	if err != nil && a.options.Unread != nil {
		a.options.Unread(err, len(content))
	}
	for _, w := range written {
		call := &chatStreamCall{id: textCallID(w), name: w.Name, arguments: w.Arguments, object: true}
		a.settle(call)
		r.calls = append(r.calls, call)
	}
	r.written = written
}

func (a *chatAnswer) End() Round {
	r := a.round
	for _, call := range r.calls {
		a.settle(call)
	}
	if r.prefix != nil && len(r.calls) == 0 && r.whole == nil {
		a.readTextCalls()
	}
	out := Round{
		Complete: r.done || r.reason != "",
		Failure:  r.failure,
		Usage:    r.usage,
		Stopped:  r.reason == "length" || r.reason == "content_filter" || r.refused,
	}
	for _, call := range r.calls {
		if call.bundle != nil {
			out.Calls = append(out.Calls, call.bundle.calls...)
			continue
		}
		out.Calls = append(out.Calls, Call{
			ID: call.id, Name: a.canonical(call.name), Arguments: call.text(), Class: call.class, raw: call.history(),
		})
	}
	for _, m := range r.message.members {
		switch {
		case m.name == "content" && len(r.written) > 0:
		case m.kind == '"' && len(m.text) > 0:
			out.texts = append(out.texts, MemberText{m.name, string(unescaped(m.text))})
		case m.kind == '[' && m.name == "content":
			parts := m.appendValue(nil)
			out.texts = append(out.texts, MemberText{m.name, contentText(parts, Range{0, len(parts)})})
		}
	}
	if hidden, _ := out.Hidden(); len(hidden) > 0 {
		out.items = a.replay()
	}
	return out
}

// replay returns the assistant message of the round as the next request must hold it: everything that came, in its order.
func (a *chatAnswer) replay() []byte {
	r := a.round
	message := []byte(`{"role":"assistant"`)
	hasContent := false
	for i := range r.message.members {
		hasContent = hasContent || r.message.members[i].name == "content"
	}
	if r.whole != nil && len(r.written) == 0 {
		// A whole message goes back as it came, but for arguments that would be refused.
		raw := r.at.message.Of(r.whole)
		calls := find(raw, 0, "tool_calls")
		return applyEdits(nil, raw, []Edit{{calls, r.rawCalls()}})
	}
	if !hasContent || len(r.written) > 0 {
		message = append(message, `,"content":null`...)
	}
	if members := r.message.appendMembers(nil, func(name string) bool {
		return name == "content" && len(r.written) > 0
	}); len(members) > 0 {
		message = append(append(message, ','), members...)
	}
	message = append(message, `,"tool_calls":`...)
	return append(append(message, r.rawCalls()...), '}')
}

func (r *chatRound) rawCalls() []byte {
	out := []byte{'['}
	for i, call := range r.calls {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, call.history()...)
	}
	return append(out, ']')
}

// history returns the call as raw JSON for the history: its arguments are a string with valid JSON.
func (call *chatStreamCall) history() []byte {
	arguments := call.text()
	if !call.custom && !jsonObject(trimSpace(arguments)) {
		arguments = []byte("{}")
	}
	if call.raw != nil {
		var e callEntry
		e.read(call.raw, Range{0, len(call.raw)})
		switch {
		case call.custom || isString(call.raw, e.arguments) && bytes.Equal(arguments, call.text()):
			return call.raw
		case e.arguments.Absent() && e.hasBody:
			with := append([]byte(`"arguments":"{}"`), ',')
			return applyEdits(nil, call.raw, []Edit{insert(e.bodyObject.Start+1, with)})
		case e.hasBody:
			return applyEdits(nil, call.raw, []Edit{{e.arguments, AppendString(nil, string(arguments))}})
		}
	}
	dst := AppendString([]byte(`{"id":`), call.id)
	kind, body := "function", "arguments"
	if call.custom {
		kind, body = "custom", "input"
	}
	dst = append(append(append(dst, `,"type":"`...), kind...), `","`...)
	dst = append(append(dst, kind...), `":{"name":`...)
	dst = AppendString(dst, call.name)
	dst = append(append(append(dst, `,"`...), body...), `":`...)
	dst = AppendString(dst, string(arguments))
	if extra := call.bodyExtra.appendMembers(nil, nil); len(extra) > 0 {
		dst = append(append(dst, ','), extra...)
	}
	dst = append(dst, '}')
	if extra := call.extra.appendMembers(nil, nil); len(extra) > 0 {
		dst = append(append(dst, ','), extra...)
	}
	return append(dst, '}')
}

func (a *chatAnswer) Release(dst []byte) []byte {
	if !a.opened {
		a.opened = true
		dst = append(dst, a.held...)
		a.held = nil
	}
	return dst
}

// Finish appends what was held to the end: text that turned out to be no call, text calls as calls, the one finish reason,
// the usage if the client asked for it, and [DONE].
func (a *chatAnswer) Finish(dst []byte) []byte {
	r := a.round
	dst = a.Release(dst)
	if len(r.written) == 0 {
		dst = append(dst, r.waiting...)
	} else {
		dst = a.showWritten(dst)
	}
	for _, call := range r.calls {
		if !call.class.Hidden() {
			dst = a.showWaiting(dst, call)
		}
	}
	if r.finish != nil {
		var c chunk
		c.read(r.finish)
		data := a.rewrite(&c, shape{noDelta: r.emptied})
		if reason := a.finishReason(); reason != r.reason {
			c.read(data)
			data = applyEdits(nil, data, []Edit{{c.finish, AppendString(nil, reason)}})
		}
		dst = appendEvent(dst, "", data)
	}
	if own := r.usageOwn; a.view.UsageAsked && (own != nil || r.usage == nil && a.usageOwn != nil) {
		if own == nil {
			own = a.usageOwn // this round gave none, those before it did
		}
		var c chunk
		c.read(own)
		usage := sumUsage(r.usage, a.usages, a.rounds, a.options)
		dst = appendEvent(dst, "", a.rewrite(&c, shape{noFinish: true, usage: usage}))
	}
	if r.done || r.reason != "" {
		dst = appendEvent(dst, "", []byte("[DONE]"))
	}
	return dst
}

// finishReason is the upstream's, unless the calls that it announces are not the client's to see, or were written as text.
func (a *chatAnswer) finishReason() string {
	r := a.round
	visible := 0
	for _, call := range r.calls {
		if !call.class.Hidden() {
			visible++
		}
	}
	switch {
	case visible == 0 && len(r.calls) > 0 && r.reason == "tool_calls":
		return "stop"
	case visible > 0 && len(r.written) > 0:
		return "tool_calls"
	}
	return r.reason
}

// showWritten shows visible text calls as a chunk of calls.
func (a *chatAnswer) showWritten(dst []byte) []byte {
	r := a.round
	var calls [][]byte
	for _, call := range r.calls {
		if call.class.Hidden() {
			continue
		}
		shown := *call
		shown.name = a.canonical(call.name)
		index := strconv.AppendInt([]byte(`{"index":`), int64(a.indexOf(call)), 10)
		calls = append(calls, append(append(index, ','), shown.history()[1:]...))
	}
	if len(calls) == 0 {
		return dst
	}
	var c chunk
	c.read(r.base)
	delta := []byte(`{"tool_calls":[`)
	if !a.roleGiven {
		a.roleGiven = true
		delta = []byte(`{"role":"assistant","content":null,"tool_calls":[`)
	}
	delta = append(append(delta, bytes.Join(calls, []byte{','})...), `]}`...)
	data := a.rewrite(&c, shape{noFinish: true, noDelta: true})
	c.read(data)
	return appendEvent(dst, "", applyEdits(nil, data, []Edit{{c.delta, delta}}))
}

// Body returns the last round's body with the texts of the hidden rounds in front of its own, without hidden calls, and
// with the usage of all rounds. An answer that needs none of this goes out as it came.
func (a *chatAnswer) Body() []byte {
	r := a.round
	hidden := false
	for _, call := range r.calls {
		hidden = hidden || call.class.Hidden()
	}
	if !hidden && a.rounds == 1 && len(r.written) == 0 && a.options.Decode == nil || r.at.message.Absent() {
		return r.whole
	}
	edits := []Edit{{r.at.message, a.joinMessages(gjson.ParseBytes(r.at.message.Of(r.whole)))}}
	if reason := a.finishReason(); reason != r.reason {
		if !r.at.reason.Absent() {
			edits = append(edits, Edit{r.at.reason, AppendString(nil, reason)})
		} else {
			with := append(AppendString([]byte(`"finish_reason":`), reason), ',')
			edits = append(edits, insert(r.at.choice.Start+1, with))
		}
	}
	if len(a.logprobs.members) > 0 && !a.view.JSONFormat {
		if startsWith(r.whole, r.at.logprobs, '{') {
			a.logprobs.addAll(r.whole, r.at.logprobs)
		}
		joined := append(a.logprobs.appendMembers([]byte{'{'}, nil), '}')
		if !r.at.logprobs.Absent() {
			edits = append(edits, Edit{r.at.logprobs, joined})
		} else {
			edits = append(edits, insert(r.at.choice.Start+1, append(append([]byte(`"logprobs":`), joined...), ',')))
		}
	}
	if usage := sumUsage(r.usage, a.usages, a.rounds, a.options); usage != nil {
		if !r.at.usage.Absent() {
			edits = append(edits, Edit{r.at.usage, usage})
		} else {
			end := bytes.LastIndexByte(r.whole, '}')
			edits = append(edits, insert(end, append([]byte(`,"usage":`), usage...)))
		}
	}
	return applyEdits(nil, r.whole, edits)
}

// joinMessages returns the last round's message, joined to what the hidden rounds said.
func (a *chatAnswer) joinMessages(last gjson.Result) []byte {
	r := a.round
	joined := &merged{}
	for _, raw := range a.messages {
		members, _ := appendMembers(nil, raw, 0)
		for _, m := range members {
			switch string(m.Key) {
			case "role", "tool_calls", "audio":
				continue
			case "content":
				if a.view.JSONFormat {
					continue // a preamble in front of JSON would not be JSON
				}
			}
			joined.add(raw, m.Key, m.Value)
		}
	}
	before, _ := joined.text("content")
	dst := []byte{'{'}
	add := func(name string, value []byte) {
		if len(dst) > 1 {
			dst = append(dst, ',')
		}
		dst = append(append(AppendString(dst, name), ':'), value...)
	}
	known := map[string]bool{}
	last.ForEach(func(key, value gjson.Result) bool {
		name := key.String()
		known[name] = true
		switch {
		case name == "tool_calls":
			if calls := r.visibleCalls(a); calls != nil {
				add(name, calls)
			}
		case name == "role" || !joined.has(name):
			if name == "content" && len(r.written) > 0 {
				add(name, []byte("null"))
				return true
			}
			add(name, []byte(value.Raw))
		default:
			one := &merged{members: []mergedMember{*joined.member(name)}}
			if value.IsArray() && name == "annotations" {
				own := &merged{}
				own.add([]byte(value.Raw), []byte(name), Range{0, len(value.Raw)})
				own.members[0].shiftOffsets(len([]rune(before)))
				one.members[0].elements = append(one.members[0].elements, own.members[0].elements...)
			} else if value.Type != gjson.Null && (name != "content" || len(r.written) == 0) {
				one.add([]byte(value.Raw), []byte(name), Range{0, len(value.Raw)})
			}
			add(name, one.members[0].appendValue(nil))
		}
		return true
	})
	for i := range joined.members {
		if m := &joined.members[i]; !known[m.name] {
			add(m.name, m.appendValue(nil))
		}
	}
	if !known["tool_calls"] && len(r.written) > 0 {
		if calls := r.visibleCalls(a); calls != nil {
			add("tool_calls", calls)
		}
	}
	return append(dst, '}')
}

// visibleCalls returns the client's calls of a whole round, nil if there are none.
func (r *chatRound) visibleCalls(a *chatAnswer) []byte {
	out := []byte{'['}
	for _, call := range r.calls {
		if call.class.Hidden() {
			continue
		}
		raw := call.raw
		if raw == nil {
			raw = call.history()
		}
		if name := a.canonical(call.name); name != call.name {
			var e callEntry
			e.read(raw, Range{0, len(raw)})
			raw = applyEdits(nil, raw, []Edit{{e.nameAt, AppendString(nil, name)}})
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, raw...)
	}
	if len(out) == 1 {
		return nil
	}
	return append(out, ']')
}

// Fail appends the error as the one chunk that clients raise on. Nothing follows it: no finish reason, no [DONE].
func (a *chatAnswer) Fail(dst []byte, f Failure) []byte {
	dst = a.Release(dst)
	if f.Event != nil {
		return append(dst, f.Event...)
	}
	return appendEvent(dst, "", ErrorBody(f.Message, f.Type, f.Code))
}
