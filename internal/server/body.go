package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
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
	raw, err := readAll(patient, r.ContentLength, s.MaxBodyBytes)
	patient.done()
	var large *tooLarge
	switch {
	case errors.As(err, &large):
		return turn.Body{}, err
	case err != nil:
		return turn.Body{}, fmt.Errorf("the request body did not come whole: %w", err)
	}
	body := turn.Body{Raw: raw, JSON: raw, Received: int64(len(raw))}
	encoding := strings.Join(r.Header.Values("Content-Encoding"), ",")
	if encoding == "" {
		return body, nil
	}
	const maxWindow = 8 << 20 // what RFC 9659 lets senders expect
	decoder, err := upstream.NewDecoder(bytes.NewReader(raw), encoding, maxWindow)
	if err != nil {
		body.Unclear = err.Error()
		return body, nil
	}
	defer decoder.Close()
	switch body.JSON, err = readAll(decoder, -1, s.MaxBodyBytes); {
	case errors.As(err, &large):
		return turn.Body{}, err
	case err != nil:
		body.Unclear = "the body is not what its Content-Encoding says"
	}
	return body, nil
}

// readAll reads everything into one buffer. size is how much is expected, -1 if that is not known; it is not trusted with
// more than a megabyte beforehand.
func readAll(from io.Reader, size, limit int64) ([]byte, error) {
	const (
		trusted = 1 << 20
		spare   = 1 // room for the read that meets the end
	)
	if size < 0 {
		size = 8 << 10
	}
	buffer := make([]byte, 0, min(size, trusted)+spare)
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
