package openai

import "slices"

// readTextCalls looks for calls that the model wrote as text, in the last message of a round without structured calls.
func (a *responsesAnswer) readTextCalls() {
	r := a.round
	at := len(r.items) - 1
	for at >= 0 && r.items[at].kind == reasoningOutput {
		at--
	}
	if at < 0 || r.items[at].kind != messageOutput || r.items[at].state != waits {
		return
	}
	message := r.items[at]
	raw := message.raw()
	content := contentText(raw, find(raw, 0, "content"))
	known := func(name string) bool { return a.options.Known != nil && a.options.Known(a.canonical("", name)) }
	written, err := ParseTextCalls([]byte(content), known)
	if err != nil && a.options.Unread != nil {
		a.options.Unread(err, len(content))
	}
	if err != nil || len(written) == 0 {
		return
	}
	message.hide()
	message.replaced = true
	var calls []*outputItem
	for _, w := range written {
		calls = append(calls, a.writtenCall(w))
	}
	r.items = slices.Insert(r.items, at+1, calls...)
	for _, call := range calls {
		if call.class.Hidden() {
			a.hideCall(call)
		} else {
			a.showLate(call)
		}
	}
}

// writtenCall makes a function call of one that was written as text. The upstream never gave it an id, so it goes back
// without one.
func (a *responsesAnswer) writtenCall(w TextCall) *outputItem {
	id := textCallID(w)
	item := &outputItem{kind: functionOutput, place: -1, id: "fc_" + id, named: true, written: true, name: a.canonical("", w.Name)}
	item.class = a.names.Classify(item.name)
	group, name := a.view.split(item.name)
	members := AppendString([]byte(`"call_id":`), id)
	if group != "" {
		members = AppendString(append(members, `,"namespace":`...), group)
	}
	upstream := name
	if group == "" {
		upstream = w.Name
	}
	rest := AppendString(append([]byte(nil), `,"arguments":`...), string(w.Arguments))
	item.replay = append([]byte(`{"type":"function_call",`), members...)
	item.replay = AppendString(append(item.replay, `,"name":`...), upstream)
	item.replay = append(append(item.replay, rest...), '}')
	item.own = AppendString([]byte(`{"type":"function_call","id":`), item.id)
	item.own = append(append(item.own, `,"status":"completed",`...), members...)
	item.own = AppendString(append(item.own, `,"name":`...), name)
	item.own = append(append(item.own, rest...), '}')
	item.added, item.done = item.own, item.own
	return item
}

// split returns the namespace and the name of a tool of the request.
func (v *View) split(canonical string) (group, name string) {
	if v.Tools != nil {
		for i := range v.Tools.Functions {
			if f := &v.Tools.Functions[i]; f.group > 0 && f.Name == canonical {
				name = text(v.Tools.Raw, f.nameAt)
				return canonical[:len(canonical)-len(name)-1], name
			}
		}
	}
	return "", canonical
}

// synthesize sends a shown item of which no event has come, in the shortest legal order.
func (a *responsesAnswer) synthesize(dst []byte, item *outputItem) []byte {
	item.unsent = false
	raw := a.clientItem(item)
	event := func(kind string, members string, value []byte) {
		data := AppendString([]byte(`{"type":`), kind)
		data = append(append(data, `,"sequence_number":0,"output_index":0`...), members...)
		ev := ownEvent(kind, append(append(data, value...), '}'))
		var e responsesEvent
		e.read(ev)
		dst = a.emit(dst, ev, &e, item)
	}
	announced := raw
	arguments := find(raw, 0, "arguments")
	call := item.kind == functionOutput && isString(raw, arguments)
	if call {
		edits := []Edit{{arguments, []byte(`""`)}}
		if status := find(raw, 0, "status"); !status.Absent() {
			edits = append(edits, Edit{status, []byte(`"in_progress"`)})
		}
		announced = applyEdits(nil, raw, edits)
	}
	event("response.output_item.added", `,"item":`, announced)
	if call {
		id := string(AppendString(nil, item.id))
		if arguments.End-arguments.Start > 2 {
			event("response.function_call_arguments.delta", `,"item_id":`+id+`,"delta":`, arguments.Of(raw))
		}
		event("response.function_call_arguments.done", `,"item_id":`+id+`,"arguments":`, arguments.Of(raw))
	}
	event("response.output_item.done", `,"item":`, raw)
	return dst
}
