package upstreamtest

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

const (
	eventStream = "text/event-stream"
	jsonContent = "application/json"
)

// Answer is the scripted answer to one request: either a Turn, rendered in the dialect and form that the request asks
// for, or the exact bytes of Body. The zero value is an empty 200.
type Answer struct {
	Status int         // 0 is 200
	Header http.Header // set over the default ones
	Turn   *Turn
	Body   []byte
	// ContentType of Body; empty is text/event-stream for a body that looks like one, else application/json.
	ContentType string
	Encoding    string // of the body: gzip, deflate, zstd or br; empty for none
	LineEnd     string // replaces every "\n" of the body; empty leaves it
	Pace        Pace
	// Refused says that the request must break a rule (RefusedBy; any if empty). It then gets the refusal of that rule,
	// and the test does not fail.
	Refused   bool
	RefusedBy string
}

// Pace is how the bytes of an answer leave.
type Pace struct {
	Before  time.Duration   // before the status line
	Between time.Duration   // between two writes
	Chunk   int             // bytes a write, each flushed; 0: all in one write; ByEvent: one event a write
	Gate    <-chan struct{} // if set, every write first waits for one value (or for the channel to be closed)
	End     End
	After   int // bytes of the body that leave before a Cut or a Stall
}

// ByEvent as Pace.Chunk writes one server-sent event at a time.
const ByEvent = -1

// End is how an answer ends.
type End int

// The ends of an answer.
const (
	Complete End = iota // the whole body, then the end of the response
	Cut                 // the connection breaks after Pace.After bytes
	Stall               // nothing comes after Pace.After bytes, until the other side leaves or the server closes
)

func (a Answer) apply(script *Script) { script.Answers = append(script.Answers, a) }

// Paced returns the answer with another pace.
func (a Answer) Paced(pace Pace) Answer {
	a.Pace = pace
	return a
}

// With returns the answer with a header set.
func (a Answer) With(name, value string) Answer {
	header := a.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set(name, value)
	a.Header = header
	return a
}

// SSE answers 200 with exactly these bytes as an event stream.
func SSE(body string) Answer { return Answer{Body: []byte(body), ContentType: eventStream} }

// JSON answers with a status and exactly these bytes as JSON.
func JSON(status int, body string) Answer {
	return Answer{Status: status, Body: []byte(body), ContentType: jsonContent}
}

// Refusal wants the request refused by the named rule ("" for any) and lets the refusal be the answer.
func Refusal(rule string) Answer { return Answer{Refused: true, RefusedBy: rule} }

// render gives the plain bytes of the answer and their content type.
func (a Answer) render(exchange *exchange) ([]byte, string) {
	if a.Turn != nil {
		return a.Turn.render(exchange)
	}
	if a.ContentType != "" {
		return a.Body, a.ContentType
	}
	for _, start := range []string{"data:", "event:", ":", "id:", "retry:"} {
		if bytes.HasPrefix(a.Body, []byte(start)) {
			return a.Body, eventStream
		}
	}
	return a.Body, jsonContent
}

func withLineEnds(body []byte, lineEnd string) []byte {
	if lineEnd == "" || lineEnd == "\n" {
		return body
	}
	return bytes.ReplaceAll(body, []byte("\n"), []byte(lineEnd))
}

// encode compresses a body by a Content-Encoding.
func encode(encoding string, body []byte) ([]byte, error) {
	var out bytes.Buffer
	var writer io.WriteCloser
	switch encoding {
	case "gzip":
		writer = gzip.NewWriter(&out)
	case "deflate":
		writer = zlib.NewWriter(&out)
	case "br":
		writer = brotli.NewWriter(&out)
	case "zstd":
		encoder, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return nil, fmt.Errorf("zstd: %w", err)
		}
		writer = encoder
	default:
		return nil, fmt.Errorf("content encoding %q is not one of gzip, deflate, br, zstd", encoding)
	}
	if _, err := writer.Write(body); err != nil {
		return nil, fmt.Errorf("%s: %w", encoding, err)
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("%s: %w", encoding, err)
	}
	return out.Bytes(), nil
}

// decode undoes encode; no encoding and "identity" leave the body.
func decode(encoding string, body []byte) ([]byte, error) {
	var reader io.Reader
	var err error
	switch encoding {
	case "", "identity":
		return body, nil
	case "gzip":
		reader, err = gzip.NewReader(bytes.NewReader(body))
	case "deflate":
		reader, err = zlib.NewReader(bytes.NewReader(body))
	case "br":
		reader = brotli.NewReader(bytes.NewReader(body))
	case "zstd":
		decoder, openErr := zstd.NewReader(bytes.NewReader(body), zstd.WithDecoderConcurrency(1))
		if openErr == nil {
			defer decoder.Close()
		}
		reader, err = decoder, openErr
	default:
		err = fmt.Errorf("content encoding %q is not one of gzip, deflate, br, zstd", encoding)
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}
