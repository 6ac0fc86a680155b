package openai

import (
	"bytes"
	"strconv"
)

// responsesAnswer builds the one answer of a Responses request: one lifecycle, rising sequence numbers, dense output
// indexes, and a final output that equals what was streamed.
type responsesAnswer struct {
	view    *View
	options AnswerOptions
	names   Names

	opened    bool    // the client has got something
	openedIn  int     // the round whose lifecycle events the client got
	held      []Event // what shows nothing and waits for something that does
	snapshot  []byte  // the last response object of the lifecycle that the client got or would get
	createdAt []byte  // raw JSON, pinned by the first event that carries it
	id        []byte  // likewise, where one id is kept in all events
	sequence  int64   // of the next event
	output    []*outputItem

	rounds int // begun so far
	round  *responsesRound
	usages [][]byte // of the rounds before this one

	edits           []Edit // scratch
	scratch, digits []byte // scratch
}

// responsesRound is what is known of the running round.
type responsesRound struct {
	items      []*outputItem // in the order in which they came
	begun      bool          // a lifecycle event has come
	called     bool          // a structured call has come
	over       bool
	whole      bool   // the round is not streamed
	id         string // of the response
	final      Event  // the event that ended the stream, or a whole body as its Data
	object     responseObject
	status     string
	usage      []byte
	failure    *Failure
	errorEvent Event
}

func (responses) NewAnswer(v *View, o AnswerOptions) Answer {
	return &responsesAnswer{view: v, options: o}
}

func (a *responsesAnswer) Begin(names Names) {
	if r := a.round; r != nil {
		a.usages = append(a.usages, r.usage)
		for _, item := range r.items {
			if item.due {
				a.place(item)
			}
		}
		if r.whole && a.view.JSONFormat {
			a.hideMessages(r) // a preamble in front of JSON would not be JSON
		}
	}
	a.names = names
	a.rounds++
	a.round = &responsesRound{}
}

func (a *responsesAnswer) hideMessages(r *responsesRound) {
	for _, item := range r.items {
		if item.kind == messageOutput {
			item.state = hidden
		}
	}
	kept := a.output[:0]
	for _, item := range a.output {
		if item.state != hidden {
			item.index = len(kept)
			kept = append(kept, item)
		}
	}
	a.output = kept
}

func (a *responsesAnswer) Event(dst []byte, ev Event) []byte {
	r := a.round
	switch {
	case r.over:
		return dst // what follows the end is nobody's
	case ev.Data == nil:
		if a.opened {
			dst = append(dst, ev.Raw...)
		}
		return dst
	case bytes.HasPrefix(ev.Data, []byte("[DONE]")):
		r.over = true
		return dst
	}
	var e responsesEvent
	if !e.read(ev) {
		return dst // cut off
	}
	switch string(e.kind) {
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		a.terminal(ev, &e)
		return dst
	case "response.created", "response.queued", "response.in_progress":
		return a.lifecycle(dst, ev, &e)
	case "error", "":
		if string(e.kind) == "error" || !isNull(e.data, e.err) {
			r.errorEvent = ev.clone()
			r.failure = readFailure(e.data)
			return dst
		}
	case "keepalive":
		if !a.opened {
			return dst
		}
	}
	if r.failure != nil {
		return dst
	}
	switch string(e.kind) {
	case "response.output_item.added":
		return a.itemAdded(dst, ev, &e)
	case "response.output_item.done":
		return a.itemDone(dst, ev, &e)
	}
	return a.detail(dst, ev, &e)
}

// Progress implements Answer. An error event is mostly followed by the failed response.
func (a *responsesAnswer) Progress() Progress {
	switch r := a.round; {
	case r.over:
		return Over
	case r.failure != nil:
		return Ending
	}
	return Running
}

// lifecycle takes an event that tells how the response stands. The client gets those of one round only.
func (a *responsesAnswer) lifecycle(dst []byte, ev Event, e *responsesEvent) []byte {
	r := a.round
	var object responseObject
	known := object.read(e.data, e.response)
	if known {
		r.id = text(e.data, object.id)
	}
	if a.opened && a.openedIn != a.rounds {
		return dst
	}
	if !a.opened && !r.begun {
		a.held = nil // the round before left no trace
	}
	r.begun = true
	if known {
		a.snapshot = bytes.Clone(e.response.Of(e.data))
	}
	if a.opened {
		return a.emit(dst, ev, e, nil)
	}
	a.held = append(a.held, ev.clone())
	return dst
}

// terminal keeps the end of the round, which waits until it is known whether it is the end of the answer.
func (a *responsesAnswer) terminal(ev Event, e *responsesEvent) {
	r := a.round
	r.over = true
	r.final = ev.clone()
	r.status = string(bytes.TrimPrefix(e.kind, []byte("response.")))
	a.readFinal(e.response)
	if r.status == "failed" && r.failure == nil {
		r.failure = readFailure(r.final.Data)
	}
}

// readFinal reads the response object that ends a round.
func (a *responsesAnswer) readFinal(at Range) {
	r := a.round
	b := r.final.Data
	if !r.object.read(b, at) {
		return
	}
	if id := text(b, r.object.id); id != "" {
		r.id = id
	}
	if !isNull(b, r.object.usage) {
		r.usage = r.object.usage.Of(b)
	}
}

func (a *responsesAnswer) itemAdded(dst []byte, ev Event, e *responsesEvent) []byte {
	if !startsWith(e.data, e.item, '{') {
		return a.detail(dst, ev, e)
	}
	item := newOutputItem(e.item.Of(e.data), e.outputIndex())
	dst = a.arrive(dst, item)
	return a.pass(dst, ev, e, item)
}

// arrive puts a new item in its place and decides as far as it can whether the client sees it.
func (a *responsesAnswer) arrive(dst []byte, item *outputItem) []byte {
	r := a.round
	r.items = append(r.items, item)
	switch item.kind {
	case reasoningOutput:
		for _, before := range r.items {
			if before.partnered && before.state == waits && !before.due {
				before.hide()
			}
		}
	case messageOutput:
		if a.options.TextCalls && !r.called {
			item.prefix = &TextCallPrefix{}
			return dst
		}
		return a.reveal(dst, item)
	case functionOutput:
		dst = a.structured(dst)
		return a.settle(dst, item)
	case clientCallOutput:
		dst = a.structured(dst)
		item.name = item.callName()
		return a.reveal(dst, item)
	default:
		return a.reveal(dst, item)
	}
	return dst
}

// structured notes that a structured call has come: texts that wait since they might be calls are texts.
func (a *responsesAnswer) structured(dst []byte) []byte {
	a.round.called = true
	for _, item := range a.round.items {
		if item.prefix != nil && item.state == waits {
			dst = a.reveal(dst, item)
		}
	}
	return dst
}

// settle decides whose a function call is, if its name is known.
func (a *responsesAnswer) settle(dst []byte, item *outputItem) []byte {
	if !a.classify(item) {
		return dst
	}
	if !item.class.Hidden() {
		return a.reveal(dst, item)
	}
	a.hideCall(item)
	return dst
}

// classify says whose a function call is; false if that cannot be known yet. What a bundle of calls is, its arguments say.
func (a *responsesAnswer) classify(item *outputItem) bool {
	raw := item.raw()
	group, name := text(raw, find(raw, 0, "namespace")), text(raw, find(raw, 0, "name"))
	bundled := group == "" && name == bundleName && a.view.mayBeBundle(name)
	if name == "" || bundled && item.done == nil {
		return false
	}
	item.named, item.name = true, a.canonical(group, name)
	item.class = a.names.Classify(item.name)
	if bundled {
		call := Call{ID: callID(raw), Arguments: argumentsOf(raw, find(raw, 0, "arguments")), raw: replayedCall(raw)}
		item.bundle = readBundle(call, a.names, func(name string) string { return a.canonical("", name) })
		if item.bundle != nil {
			item.class = Unexposed
		}
	}
	return true
}

// hideCall hides a call; reasoning in front of it may be the call's.
func (a *responsesAnswer) hideCall(item *outputItem) {
	item.hide()
	for _, before := range a.round.items {
		if before == item {
			return
		}
		if before.kind == reasoningOutput && before.state == waits {
			before.partnered = true
		}
	}
}

// canonical returns the canonical name of a called tool.
func (a *responsesAnswer) canonical(group, name string) string {
	if group == "" && a.options.Decode != nil {
		return a.options.Decode(name)
	}
	return qualified(group, name)
}

// reveal shows an item, and before it what waits in front of it.
func (a *responsesAnswer) reveal(dst []byte, item *outputItem) []byte {
	for _, before := range a.round.items {
		if before == item {
			break
		}
		if before.state == waits && before.kind != functionOutput {
			dst = a.release(dst, before)
		}
	}
	return a.release(dst, item)
}

// release gives an item its place in the client's output, and sends what waits of it.
func (a *responsesAnswer) release(dst []byte, item *outputItem) []byte {
	if a.round.whole {
		a.place(item)
		return dst
	}
	dst = a.Release(dst)
	late := item.due && len(item.waiting) == 0
	a.place(item)
	if late {
		return a.sendUnsent(dst)
	}
	item.unsent = false
	for _, ev := range item.waiting {
		var e responsesEvent
		e.read(ev)
		dst = a.emit(dst, ev, &e, item)
	}
	item.waiting = nil
	return dst
}

// place gives an item its place in the client's output.
func (a *responsesAnswer) place(item *outputItem) {
	item.state, item.due, item.prefix, item.unsent = shown, false, nil, true
	item.index = len(a.output)
	a.output = append(a.output, item)
}

// sendUnsent sends the items of which no event has come, in a stream that has begun as streams do.
func (a *responsesAnswer) sendUnsent(dst []byte) []byte {
	for _, item := range a.output {
		if item.unsent && a.snapshot != nil {
			dst = a.synthesize(dst, item)
		}
	}
	return dst
}

// pass sends an event of an item, or lets it wait with it.
func (a *responsesAnswer) pass(dst []byte, ev Event, e *responsesEvent, item *outputItem) []byte {
	switch item.state {
	case shown:
		return a.emit(dst, ev, e, item)
	case waits:
		item.waiting = append(item.waiting, ev.clone())
	}
	return dst
}

func (a *responsesAnswer) itemDone(dst []byte, ev Event, e *responsesEvent) []byte {
	if !startsWith(e.data, e.item, '{') {
		return a.detail(dst, ev, e)
	}
	raw := e.item.Of(e.data)
	item := a.round.find(e.outputIndex(), text(raw, find(raw, 0, "id")))
	if item == nil || item.done != nil {
		// It was never announced.
		item = newOutputItem(raw, e.outputIndex())
		item.done = item.added
		dst = a.arrive(dst, item)
		return a.pass(dst, ev, e, item)
	}
	item.done = bytes.Clone(raw)
	if item.kind == functionOutput && !item.named {
		dst = a.settle(dst, item)
	}
	return a.pass(dst, ev, e, item)
}

// find returns the item at the upstream's output index; where the upstream gives no index, the item of this id. Ids are
// no more than that: some gateways give every event a fresh one.
func (r *responsesRound) find(place int, id string) *outputItem {
	for i := len(r.items) - 1; i >= 0; i-- {
		item := r.items[i]
		if place >= 0 && item.place == place || place < 0 && id != "" && item.id == id {
			return item
		}
	}
	return nil
}

// detail takes an event of an item that is neither its beginning nor its end, or one that belongs to none.
func (a *responsesAnswer) detail(dst []byte, ev Event, e *responsesEvent) []byte {
	place := e.outputIndex()
	id := ""
	if place < 0 {
		id = text(e.data, e.itemID)
	}
	item := a.round.find(place, id)
	switch {
	case item == nil && bytes.HasPrefix(e.kind, []byte("response.function_call_arguments.")):
		// A call that was not announced: whose it is will be known at its end.
		item = newOutputItem([]byte(`{"type":"function_call"}`), place)
		item.id = text(e.data, e.itemID)
		dst = a.arrive(dst, item)
	case item == nil && a.opened:
		return a.emit(dst, ev, e, nil)
	case item == nil:
		a.held = append(a.held, ev.clone())
		return dst
	case item.state == waits && item.kind == reasoningOutput && e.shows():
		dst = a.reveal(dst, item)
	case item.state == waits && item.prefix != nil && !item.mayBecomeCalls(e):
		dst = a.reveal(dst, item)
	}
	return a.pass(dst, ev, e, item)
}

// emit appends an event with the answer's own numbers, names and echo, in the frame in which it came.
func (a *responsesAnswer) emit(dst []byte, ev Event, e *responsesEvent, item *outputItem) []byte {
	return a.write(dst, ev, e, a.numbered(e, item))
}

// numbered begins the edits of an event: its sequence number, its output index, the name of a call.
func (a *responsesAnswer) numbered(e *responsesEvent, item *outputItem) []Edit {
	edits := a.edits[:0]
	digits := a.digits[:0]
	if !e.sequence.Absent() {
		digits = strconv.AppendInt(digits, a.sequence, 10)
		a.sequence++
		if !bytes.Equal(e.sequence.Of(e.data), digits) {
			edits = append(edits, Edit{e.sequence, digits})
		}
	}
	n := len(digits)
	if item != nil && !e.index.Absent() {
		digits = strconv.AppendInt(digits, int64(item.index), 10)
		if !bytes.Equal(e.index.Of(e.data), digits[n:]) {
			edits = append(edits, Edit{e.index, digits[n:]})
		}
	}
	a.digits = digits
	if item != nil && item.kind == functionOutput && a.options.Decode != nil {
		switch {
		case startsWith(e.data, e.item, '{'):
			edits = a.decodeName(edits, e.data, e.item)
		case isString(e.data, e.name):
			if name := text(e.data, e.name); a.options.Decode(name) != name {
				edits = append(edits, Edit{e.name, AppendString(nil, a.options.Decode(name))})
			}
		}
	}
	return edits
}

// decodeName appends the edit that gives the call at the range its canonical name.
func (a *responsesAnswer) decodeName(edits []Edit, b []byte, call Range) []Edit {
	at := find(b, call.Start, "name")
	name := text(b, at)
	if a.options.Decode == nil || name == "" || text(b, find(b, call.Start, "namespace")) != "" {
		return edits
	}
	if canonical := a.options.Decode(name); canonical != name {
		edits = append(edits, Edit{at, AppendString(nil, canonical)})
	}
	return edits
}

// write appends an event with the edits, and with the client's echo if it carries a response object.
func (a *responsesAnswer) write(dst []byte, ev Event, e *responsesEvent, edits []Edit) []byte {
	var object responseObject
	if !e.response.Absent() && object.read(e.data, e.response) {
		edits = object.echo(edits, a.view)
		edits = a.pin(edits, e.data, &object)
	}
	a.edits = edits
	if len(edits) == 0 && ev.Raw != nil {
		return append(dst, ev.Raw...)
	}
	a.scratch = applyEdits(a.scratch[:0], e.data, edits)
	return ev.appendWith(dst, a.scratch)
}

// pin keeps created_at what the first event said, and the id too where the operator wants one id in all events.
func (a *responsesAnswer) pin(edits []Edit, b []byte, object *responseObject) []Edit {
	keep := func(pinned *[]byte, at Range) {
		if at.Absent() {
			return
		}
		if *pinned == nil {
			*pinned = bytes.Clone(at.Of(b))
		}
		edits = append(edits, Edit{at, *pinned})
	}
	keep(&a.createdAt, object.createdAt)
	if a.options.KeepResponseID {
		keep(&a.id, object.id)
	}
	return edits
}

func (a *responsesAnswer) Release(dst []byte) []byte {
	if !a.opened {
		a.opened, a.openedIn = true, a.rounds
		for _, ev := range a.held {
			var e responsesEvent
			e.read(ev)
			dst = a.emit(dst, ev, &e, nil)
		}
		a.held = nil
	}
	return a.sendUnsent(dst)
}

func (a *responsesAnswer) Whole(body []byte) {
	r := a.round
	r.whole, r.over = true, true
	r.final = Event{Data: body}
	if start := skipSpace(body, 0); start < len(body) {
		a.readFinal(Range{start, skipValue(body, start)})
	}
	r.status = text(body, r.object.status)
	if !isNull(body, r.object.err) || r.status == "failed" {
		r.failure = readFailure(body)
	}
	for place, at := range r.output() {
		item := newOutputItem(at.Of(body), place)
		item.done = item.added
		a.arrive(nil, item)
		if item.kind == reasoningOutput && hasText(item.done) {
			a.reveal(nil, item)
		}
	}
}

// output returns the ranges of the items in the response object that ended the round.
func (r *responsesRound) output() []Range {
	b := r.final.Data
	if !startsWith(b, r.object.output, '[') {
		return nil
	}
	var out []Range
	for _, at := range elements(b, r.object.output.Start) {
		if startsWith(b, at, '{') {
			out = append(out, at)
		}
	}
	return out
}

func (a *responsesAnswer) End() Round {
	r := a.round
	a.readFinalItems()
	if a.options.TextCalls && !r.called {
		a.readTextCalls()
	}
	out := Round{
		Complete:   r.complete(),
		Stopped:    r.status != "completed" && !(r.whole && r.status == ""),
		Failure:    r.failure,
		ResponseID: r.id,
		Usage:      r.usage,
		shape:      r.items,
	}
	hiddenCalls := 0
	for _, item := range r.items {
		if item.state == hidden && item.kind == functionOutput {
			hiddenCalls++
		}
	}
	for _, item := range r.items {
		switch {
		case item.state != waits || item.due:
		case item.kind == reasoningOutput && hiddenCalls > 0:
			item.hide() // no item that the client sees belongs to it
		default:
			item.due = true
		}
	}
	if hiddenCalls > 0 || a.rounds > 1 {
		r.prepareReplay(a.view.unstored || isFalse(r.final.Data, r.object.store))
	}
	for _, item := range r.items {
		out.Calls = append(out.Calls, r.calls(item)...)
		out.Stopped = out.Stopped || item.kind == messageOutput && refuses(item.raw())
	}
	if hiddenCalls > 0 {
		for _, item := range r.items {
			if item.replay != nil {
				if len(out.items) > 0 {
					out.items = append(out.items, ',')
				}
				out.items = append(out.items, item.replay...)
			}
		}
	}
	return out
}

// complete reports whether the round has come to an end of its own; a whole body may tell of one that still runs.
func (r *responsesRound) complete() bool {
	if r.whole {
		return !r.object.output.Absent() && r.status != "queued" && r.status != "in_progress"
	}
	return r.final.Data != nil
}

func isFalse(b []byte, r Range) bool { return !r.Absent() && string(r.Of(b)) == "false" }

// readFinalItems adds what only the final response object tells: items that no event announced, and the ends of those
// that no event ended.
func (a *responsesAnswer) readFinalItems() {
	r := a.round
	if !r.whole {
		streamed, matched := len(r.items), 0
		for i, at := range r.output() {
			raw := at.Of(r.final.Data)
			switch item := r.match(raw, i); {
			case item != nil:
				matched++
				if item.done == nil {
					item.done = bytes.Clone(raw)
				}
			case matched == streamed:
				item = newOutputItem(raw, i)
				item.done = item.added
				a.arriveLate(item)
			}
		}
	}
	for _, item := range r.items {
		if item.kind == functionOutput && !item.named && item.state == waits {
			a.settleLate(item)
		}
	}
}

// match returns the streamed item that an item of the final output is.
func (r *responsesRound) match(raw []byte, place int) *outputItem {
	id := callID(raw)
	for _, item := range r.items {
		if b := item.raw(); id != "" && callID(b) == id || bytes.Equal(b, raw) {
			return item
		}
	}
	if place < len(r.items) && r.items[place].done == nil && r.items[place].kind == newOutputItem(raw, place).kind {
		return r.items[place]
	}
	return nil
}

// arriveLate takes an item that no event told of. It can be shown with the end of the answer only.
func (a *responsesAnswer) arriveLate(item *outputItem) {
	r := a.round
	r.items = append(r.items, item)
	switch item.kind {
	case reasoningOutput:
	case functionOutput:
		r.called = true
		a.settleLate(item)
	case clientCallOutput:
		r.called = true
		item.name = item.callName()
		a.showLate(item)
	default:
		a.showLate(item)
	}
}

func (a *responsesAnswer) settleLate(item *outputItem) {
	if a.classify(item) && item.class.Hidden() {
		a.hideCall(item)
		return
	}
	a.showLate(item)
}

// showLate marks an item, and what waits in front of it, to be shown with the end of the answer.
func (a *responsesAnswer) showLate(item *outputItem) {
	for _, before := range a.round.items {
		if before.state == waits && (before == item || before.kind != functionOutput) {
			before.due = true
		}
		if before == item {
			return
		}
	}
}

// Finish shows what waits although nothing followed it, and the one terminal event.
func (a *responsesAnswer) Finish(dst []byte) []byte {
	dst = a.Release(dst)
	dst = a.releaseDue(dst)
	if a.round.final.Data != nil {
		dst = a.end(dst)
	}
	return dst
}

func (a *responsesAnswer) releaseDue(dst []byte) []byte {
	for _, item := range a.round.items {
		if item.due {
			dst = a.release(dst, item)
		}
	}
	return dst
}

// end appends the terminal event.
func (a *responsesAnswer) end(dst []byte) []byte {
	r := a.round
	var e responsesEvent
	e.read(r.final)
	edits := a.numbered(&e, nil)
	if r.object.at.Absent() {
		return a.write(dst, r.final, &e, edits)
	}
	output := a.appendItems(nil, a.output)
	if r.object.output.Absent() {
		if len(a.output) > 0 {
			edits = append(edits, insert(r.object.at.Start+1, append(append([]byte(`"output":`), output...), ',')))
		}
	} else {
		edits = append(edits, Edit{r.object.output, output})
	}
	return a.write(dst, r.final, &e, a.usageEdit(edits))
}

// usageEdit appends the edit that gives the final response object the usage of all rounds.
func (a *responsesAnswer) usageEdit(edits []Edit) []Edit {
	r := a.round
	if a.rounds < 2 {
		return edits
	}
	usage := sumUsage(r.usage, a.usages, a.rounds, a.options)
	switch {
	case usage == nil:
	case r.object.usage.Absent():
		edits = append(edits, insert(r.object.at.Start+1, append(append([]byte(`"usage":`), usage...), ',')))
	default:
		edits = append(edits, Edit{r.object.usage, usage})
	}
	return edits
}

// appendItems appends an output array of items as the client gets them.
func (a *responsesAnswer) appendItems(dst []byte, items []*outputItem) []byte {
	dst = append(dst, '[')
	for i, item := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, a.clientItem(item)...)
	}
	return append(dst, ']')
}

// clientItem returns an item as the client gets it.
func (a *responsesAnswer) clientItem(item *outputItem) []byte {
	if item.own != nil {
		return item.own
	}
	raw := item.raw()
	if item.kind == functionOutput {
		if edits := a.decodeName(nil, raw, Range{0, len(raw)}); len(edits) > 0 {
			return applyEdits(nil, raw, edits)
		}
	}
	return raw
}

// Body returns the last round's body with the visible items of all rounds, their usage, and the client's echo.
func (a *responsesAnswer) Body() []byte {
	r := a.round
	body := r.final.Data
	if r.object.output.Absent() {
		return body // an error, or nothing of the dialect
	}
	a.releaseDue(nil)
	edits := r.object.echo(nil, a.view)
	same := a.rounds == 1 && len(a.output) == len(r.output()) && a.options.Decode == nil
	for _, item := range a.output {
		same = same && item.own == nil
	}
	if !same {
		edits = append(edits, Edit{r.object.output, a.appendItems(nil, a.output)})
	}
	return applyEdits(nil, body, a.usageEdit(edits))
}
