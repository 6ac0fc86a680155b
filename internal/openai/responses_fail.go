package openai

// Fail appends an error event and the failed response, in this order, as the real API does. What the upstream itself said
// is passed on as it came.
func (a *responsesAnswer) Fail(dst []byte, f Failure) []byte {
	dst = a.Release(dst)
	r := a.round
	own := f.Event == nil && !(r != nil && r.failure != nil)
	failedFollows := !own && r.status == "failed"
	switch {
	case own:
		dst = a.emitOwn(dst, "error", errorEvent(f))
	case r.errorEvent.Data != nil:
		var e responsesEvent
		e.read(r.errorEvent)
		dst = a.emit(dst, r.errorEvent, &e, nil)
	}
	switch {
	case failedFollows:
		return a.end(dst)
	case a.snapshot != nil:
		return a.emitOwn(dst, "response.failed", a.failedEvent(f))
	}
	return dst
}

// emitOwn appends an event of the proxy's own making.
func (a *responsesAnswer) emitOwn(dst []byte, kind string, data []byte) []byte {
	ev := ownEvent(kind, data)
	var e responsesEvent
	e.read(ev)
	return a.emit(dst, ev, &e, nil)
}

func errorEvent(f Failure) []byte {
	data := AppendString([]byte(`{"type":"error","error":{"type":`), f.Type)
	data = AppendString(append(data, `,"code":`...), f.Code)
	data = AppendString(append(data, `,"message":`...), f.Message)
	return append(data, `,"param":null},"sequence_number":0}`...)
}

// failedEvent makes a failed response of the last one that the client was told of.
func (a *responsesAnswer) failedEvent(f Failure) []byte {
	b := a.snapshot
	var object responseObject
	data := []byte(`{"type":"response.failed","sequence_number":0,"response":`)
	object.read(b, Range{0, len(b)})
	failure := AppendString([]byte(`{"code":`), f.Code)
	failure = append(AppendString(append(failure, `,"message":`...), f.Message), '}')
	var edits []Edit
	set := func(name string, at Range, value []byte) {
		if at.Absent() {
			edits = append(edits, insert(1, append(append(append(AppendString(nil, name), ':'), value...), ',')))
		} else {
			edits = append(edits, Edit{at, value})
		}
	}
	set("status", object.status, []byte(`"failed"`))
	set("error", object.err, failure)
	var finished []*outputItem
	for _, item := range a.output {
		if item.done != nil {
			finished = append(finished, item)
		}
	}
	set("output", object.output, a.appendItems(nil, finished))
	return append(applyEdits(data, b, edits), '}')
}
