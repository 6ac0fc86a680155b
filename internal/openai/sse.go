package openai

import (
	"bytes"
	"errors"
	"io"
)

// Event is one event of a server-sent event stream (WHATWG HTML, 9.2). Its bytes are valid until the next call of Next.
type Event struct {
	// Raw are all bytes of the event with the blank line that ends it, as they came.
	Raw []byte
	// Name is the value of the event field, Data the data lines joined by line feeds. Data is nil for a comment.
	Name, Data []byte
	// HasID says that the event carries an id line.
	HasID bool

	dataAt int // where Data stands in Raw; -1 if it was joined from several lines
}

// appendWith appends the event with other data, its remaining lines as they came.
func (ev Event) appendWith(dst, data []byte) []byte {
	if ev.dataAt < 0 {
		return appendEvent(dst, string(ev.Name), data)
	}
	dst = append(dst, ev.Raw[:ev.dataAt]...)
	dst = append(dst, data...)
	return append(dst, ev.Raw[ev.dataAt+len(ev.Data):]...)
}

// ErrEventTooLong says that one event is longer than the reader's limit.
var ErrEventTooLong = errors.New("an event of the stream is longer than the limit")

// EventReader splits a stream into events. It knows all three line endings and recognises an event as soon as its last
// byte is there, however the bytes are cut.
type EventReader struct {
	from    io.Reader
	limit   int
	buffer  []byte
	start   int  // where the next event begins
	scanned int  // up to here no end of an event was found
	line    int  // where the line at scanned begins
	skipLF  bool // the last event ended with a CR whose LF may still come
	begun   bool
	err     error
	joined  []byte
}

const readSize = 4 << 10

// NewEventReader reads events of at most limit bytes each.
func NewEventReader(from io.Reader, limit int) *EventReader {
	return &EventReader{from: from, limit: limit}
}

// Next returns the next event. At the end of the stream it returns io.EOF. Some servers leave out the last blank line: an
// event that is whole without it is still returned, with the line ends added that it lacks; one that was cut is not.
func (r *EventReader) Next() (Event, error) {
	for {
		if end := r.findEnd(); end > 0 {
			return r.take(end), nil
		}
		if r.err != nil {
			if r.start < len(r.buffer) && r.err == io.EOF {
				r.buffer = append(r.buffer, "\n\n"...)
				if ev := r.take(len(r.buffer)); isWhole(ev.Data) {
					return ev, nil
				}
			}
			return Event{}, r.err
		}
		if len(r.buffer)-r.start > r.limit {
			r.err = ErrEventTooLong
			return Event{}, r.err
		}
		r.fill()
	}
}

// isWhole reports whether data that no blank line ends are all there.
func isWhole(data []byte) bool {
	return bytes.HasPrefix(data, []byte("[DONE]")) || len(data) > 0 && skipValue(data, 0) == len(data)
}

// Buffered reports whether a whole further event is there without reading on, so that a writer may put several into one
// write.
func (r *EventReader) Buffered() bool { return r.findEnd() > 0 }

func (r *EventReader) fill() {
	switch {
	case r.start == len(r.buffer) && cap(r.buffer) <= 16*readSize:
		r.buffer = r.buffer[:0]
		r.scanned, r.line, r.start = 0, 0, 0
	case r.start > 0:
		// A large buffer is given up once its event has gone.
		rest := r.buffer[r.start:]
		if cap(r.buffer) > 16*readSize && len(rest) < readSize {
			r.buffer = append(make([]byte, 0, 2*readSize), rest...)
		} else {
			r.buffer = r.buffer[:copy(r.buffer, rest)]
		}
		r.scanned -= r.start
		r.line -= r.start
		r.start = 0
	}
	if free := cap(r.buffer) - len(r.buffer); free < readSize/2 {
		grown := make([]byte, len(r.buffer), max(readSize, 2*cap(r.buffer)))
		copy(grown, r.buffer)
		r.buffer = grown
	}
	n, err := r.from.Read(r.buffer[len(r.buffer):cap(r.buffer)])
	r.buffer = r.buffer[:len(r.buffer)+n]
	if !r.begun && len(r.buffer) >= 3 {
		r.begun = true
		if bytes.HasPrefix(r.buffer, []byte("\xef\xbb\xbf")) {
			r.start, r.scanned, r.line = 3, 3, 3
		}
	}
	r.err = err
}

// findEnd returns the index behind the next event, 0 if it is not all there.
func (r *EventReader) findEnd() int {
	b := r.buffer
	if r.skipLF && r.start < len(b) {
		r.skipLF = false
		if b[r.start] == '\n' {
			// It ends no line, and stays with the bytes of the next event.
			r.scanned, r.line = max(r.scanned, r.start+1), max(r.line, r.start+1)
		}
	}
	for r.scanned < len(b) {
		i := indexLineEnd(b[r.scanned:])
		if i < 0 {
			r.scanned = len(b)
			return 0
		}
		end := r.scanned + i
		blank := end == r.line
		next := end + 1
		if b[end] == '\r' {
			switch {
			case next < len(b) && b[next] == '\n':
				next++
			case next == len(b) && !blank:
				// The line has ended; whether a line feed follows is seen with the next byte.
				r.scanned = end
				return 0
			}
		}
		if blank && !onlyBlank(b[r.start:end]) {
			r.skipLF = b[end] == '\r' && next == len(b)
			return next
		}
		// Blank lines in front of an event belong to nothing: they are part of the next event's bytes.
		r.scanned, r.line = next, next
	}
	return 0
}

func indexLineEnd(b []byte) int {
	lf := bytes.IndexByte(b, '\n')
	search := b
	if lf >= 0 {
		search = b[:lf]
	}
	if cr := bytes.IndexByte(search, '\r'); cr >= 0 {
		return cr
	}
	return lf
}

func onlyBlank(b []byte) bool {
	for _, c := range b {
		if c != '\n' && c != '\r' {
			return false
		}
	}
	return true
}

// take cuts off the event that ends at end and reads its fields.
func (r *EventReader) take(end int) Event {
	ev := Event{Raw: r.buffer[r.start:end]}
	r.start, r.scanned, r.line = end, end, end
	dataLines := 0
	for rest := ev.Raw; len(rest) > 0; {
		i := indexLineEnd(rest)
		line, lineAt := rest, len(ev.Raw)-len(rest)
		if i < 0 {
			rest = nil
		} else {
			line = rest[:i]
			if rest[i] == '\r' && i+1 < len(rest) && rest[i+1] == '\n' {
				i++
			}
			rest = rest[i+1:]
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		if len(value) > 0 && value[0] == ' ' {
			value = value[1:]
		}
		switch string(field) {
		case "data":
			dataLines++
			switch {
			case dataLines == 1:
				ev.Data, ev.dataAt = value, lineAt+len(line)-len(value)
				if ev.Data == nil {
					ev.Data = []byte{}
				}
			case dataLines == 2:
				r.joined = append(append(r.joined[:0], ev.Data...), '\n')
				r.joined = append(r.joined, value...)
				ev.Data, ev.dataAt = r.joined, -1
			default:
				r.joined = append(append(r.joined, '\n'), value...)
				ev.Data = r.joined
			}
		case "event":
			ev.Name = value
		case "id":
			ev.HasID = true
		}
	}
	return ev
}

// appendEvent appends an event of the proxy's own making: the name only where the dialect uses one. Data that came in several
// lines goes out in several lines.
func appendEvent(dst []byte, name string, data []byte) []byte {
	if name != "" {
		dst = append(append(append(dst, "event: "...), name...), '\n')
	}
	for more := true; more; {
		var line []byte
		line, data, more = bytes.Cut(data, []byte{'\n'})
		dst = append(append(append(dst, "data: "...), line...), '\n')
	}
	return append(dst, '\n')
}
