package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"tool-search-proxy/internal/turn"
	"tool-search-proxy/internal/upstream"
)

// tooLarge says that a body is larger than the limit.
type tooLarge struct{ limit int64 }

func (e *tooLarge) Error() string {
	return fmt.Sprintf("the request body is larger than the limit of %d bytes ([server] max_body_bytes)", e.limit)
}

// bodyTime is how long a client may send nothing in the middle of a body.
const bodyTime = time.Minute

// readBody reads a body whole and decodes it. A coding that is not known, or a body that its coding does not fit, is no
// error: the body is passed on as it came. The error is *tooLarge, or says that the body did not come whole.
func (s *server) readBody(w http.ResponseWriter, r *http.Request) (turn.Body, error) {
	if r.ContentLength > s.MaxBodyBytes {
		return turn.Body{}, &tooLarge{s.MaxBodyBytes}
	}
	patient := &patientReader{body: r.Body, control: http.NewResponseController(w)}
	raw, err := readAll(patient, borrow(r.ContentLength), s.MaxBodyBytes)
	patient.done()
	var large *tooLarge
	switch {
	case errors.As(err, &large):
		return turn.Body{}, err
	case err != nil:
		return turn.Body{}, fmt.Errorf("the request body did not come whole: %w", err)
	}
	body := turn.Body{Raw: raw, JSON: raw}
	encoding := strings.Join(r.Header.Values("Content-Encoding"), ",")
	if encoding == "" {
		body.Release = func() { giveBack(raw) }
		return body, nil
	}
	const maxWindow = 8 << 20 // what RFC 9659 lets senders expect
	decoder, err := upstream.NewDecoder(bytes.NewReader(raw), encoding, maxWindow)
	if err != nil {
		body.Unclear = err.Error()
		return body, nil
	}
	defer decoder.Close()
	switch body.JSON, err = readAll(decoder, borrow(-1), s.MaxBodyBytes); {
	case errors.As(err, &large):
		return turn.Body{}, err
	case err != nil:
		body.Unclear = "the body is not what its Content-Encoding says"
	}
	return body, nil
}

// A few buffers are used again. Without them most of the proxy's work is to clear memory and to collect it; with many of
// them, many requests at once would leave their memory behind.
const (
	keptBuffers = 8
	keptBytes   = 8 << 20 // of all of them
)

// buffers are those that wait to be used again, the one given back last at the end.
var buffers struct {
	sync.Mutex
	list  [][]byte
	bytes int
}

// borrow returns an empty buffer for a body whose size is said to be this; -1 is not known. No more than a megabyte is
// believed beforehand.
func borrow(size int64) []byte {
	const (
		unknown = 8 << 10
		trusted = 1 << 20
		spare   = 1 // room for the read that meets the end
		page    = 4 << 10
	)
	if size < 0 {
		size = unknown
	}
	size = (min(size, trusted) + spare + page - 1) / page * page
	if kept := takeKept(size); kept != nil {
		return kept
	}
	return make([]byte, 0, size)
}

// takeKept returns a buffer of at least this size out of those that are kept, nil if there is none.
func takeKept(size int64) []byte {
	buffers.Lock()
	defer buffers.Unlock()
	for i := len(buffers.list) - 1; i >= 0; i-- {
		if buffer := buffers.list[i]; int64(cap(buffer)) >= size {
			buffers.list = slices.Delete(buffers.list, i, i+1)
			buffers.bytes -= cap(buffer)
			return buffer
		}
	}
	return nil
}

// giveBack keeps a buffer for later. Where there is no room, those given back first make room for it.
func giveBack(buffer []byte) {
	if cap(buffer) > keptBytes {
		return
	}
	buffers.Lock()
	defer buffers.Unlock()
	for len(buffers.list) >= keptBuffers || buffers.bytes+cap(buffer) > keptBytes {
		buffers.bytes -= cap(buffers.list[0])
		buffers.list = slices.Delete(buffers.list, 0, 1)
	}
	buffers.list = append(buffers.list, buffer[:0])
	buffers.bytes += cap(buffer)
}

// readAll reads everything into a buffer, or into a larger one.
func readAll(from io.Reader, buffer []byte, limit int64) ([]byte, error) {
	const spare = 1
	for {
		if len(buffer) == cap(buffer) {
			grown := make([]byte, len(buffer), min(2*int64(cap(buffer)), limit+1)+spare)
			copy(grown, buffer)
			buffer = grown
		}
		n, err := from.Read(buffer[len(buffer):cap(buffer)])
		buffer = buffer[:len(buffer)+n]
		if int64(len(buffer)) > limit {
			return nil, &tooLarge{limit}
		}
		if err == io.EOF {
			return buffer, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// patientReader reads a body for as long as something comes.
type patientReader struct {
	body     io.Reader
	control  *http.ResponseController
	deadline time.Time
}

func (p *patientReader) Read(b []byte) (int, error) {
	if now := time.Now(); p.deadline.Sub(now) < bodyTime/2 {
		p.deadline = now.Add(bodyTime)
		_ = p.control.SetReadDeadline(p.deadline)
	}
	return p.body.Read(b)
}

// done takes the deadline away: whether the client is still there is watched without one.
func (p *patientReader) done() { _ = p.control.SetReadDeadline(time.Time{}) }
