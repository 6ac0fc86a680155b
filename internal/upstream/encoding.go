package upstream

import (
	"bufio"
	"compress/flate"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// ErrEncoding says that an answer came in a content coding that cannot be decoded.
var ErrEncoding = errors.New("unknown content coding")

// readable are the content codings that NewDecoder knows.
const readable = "gzip, deflate, br, zstd"

// acceptReadable narrows what the client accepts to what can be decoded here. A client that accepts no coding gets none:
// some upstreams then do not hold back the events of a stream.
func acceptReadable(h http.Header) {
	values := h.Values("Accept-Encoding")
	if len(values) == 0 {
		h.Set("Accept-Encoding", "identity")
		return
	}
	var kept []string
	for coding := range strings.SplitSeq(strings.Join(values, ","), ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(coding), ";")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "gzip", "deflate", "br", "zstd", "identity":
			kept = append(kept, strings.TrimSpace(coding))
		case "*":
			for name := range strings.SplitSeq(readable, ", ") {
				if weight != "" {
					name += ";" + weight // which may be 0: none of them
				}
				kept = append(kept, name)
			}
		}
	}
	if len(kept) == 0 {
		kept = []string{"identity"}
	}
	h.Set("Accept-Encoding", strings.Join(kept, ", "))
}

// decodeBody makes the body of an answer readable, and its headers agree.
func decodeBody(resp *http.Response) error {
	codings := resp.Header.Values("Content-Encoding")
	if len(codings) == 0 || resp.ContentLength == 0 {
		return nil
	}
	body, err := NewDecoder(resp.Body, strings.Join(codings, ","), 0)
	if err != nil {
		_ = resp.Body.Close()
		return err
	}
	resp.Body = &decoded{body, resp.Body}
	resp.Header.Del("Content-Encoding")
	resp.Header.Del("Content-Length")
	resp.ContentLength = -1
	return nil
}

// decoded reads decoded bytes and closes what they come from.
type decoded struct {
	io.ReadCloser
	source io.Closer
}

func (d *decoded) Close() error {
	return errors.Join(d.ReadCloser.Close(), d.source.Close())
}

// maxCodings bounds how many codings may be stacked.
const maxCodings = 4

// NewDecoder returns a reader of the bytes behind a Content-Encoding, however many codings are stacked. maxWindow bounds
// the memory of one zstd decoder; 0 is its default. The error is ErrEncoding for a coding that is not known.
func NewDecoder(body io.Reader, encoding string, maxWindow uint64) (io.ReadCloser, error) {
	var codings []string
	for coding := range strings.SplitSeq(encoding, ",") {
		coding = strings.ToLower(strings.TrimSpace(coding))
		if coding != "" && coding != "identity" {
			codings = append(codings, coding)
		}
	}
	if len(codings) > maxCodings {
		return nil, fmt.Errorf("%w: %d codings in a row, at most %d", ErrEncoding, len(codings), maxCodings)
	}
	out := io.NopCloser(body)
	for i := len(codings) - 1; i >= 0; i-- {
		source := out
		switch codings[i] {
		case "gzip", "x-gzip":
			out = &lazy{open: func() (io.ReadCloser, error) { return gzip.NewReader(source) }}
		case "deflate":
			out = &lazy{open: func() (io.ReadCloser, error) { return newDeflate(source) }}
		case "br":
			out = io.NopCloser(brotli.NewReader(source))
		case "zstd":
			out = &lazy{open: func() (io.ReadCloser, error) { return newZstd(source, maxWindow) }}
		default:
			return nil, fmt.Errorf("%w %q, known are %s", ErrEncoding, codings[i], readable)
		}
	}
	return out, nil
}

// lazy opens a decoder at the first read: opening reads a header, which may take as long as the answer itself.
type lazy struct {
	open func() (io.ReadCloser, error)
	from io.ReadCloser
	err  error
}

func (l *lazy) Read(p []byte) (int, error) {
	if l.from == nil && l.err == nil {
		from, err := l.open() // io.EOF for a body without a byte
		if err != nil {
			l.err = err // from may be a nil pointer of the decoder's type, which must not be closed
		} else {
			l.from = from
		}
	}
	if l.err != nil {
		return 0, l.err
	}
	return l.from.Read(p)
}

func (l *lazy) Close() error {
	if l.from == nil {
		return nil
	}
	return l.from.Close()
}

// newDeflate reads both forms that are sent as deflate: zlib, as RFC 9110 says, and raw.
func newDeflate(source io.Reader) (io.ReadCloser, error) {
	buffered := bufio.NewReaderSize(source, 512)
	head, err := buffered.Peek(2)
	if err != nil && len(head) < 2 {
		return nil, err
	}
	if head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		return zlib.NewReader(buffered)
	}
	return flate.NewReader(buffered), nil
}

func newZstd(source io.Reader, maxWindow uint64) (io.ReadCloser, error) {
	options := []zstd.DOption{zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true)}
	if maxWindow > 0 {
		options = append(options, zstd.WithDecoderMaxWindow(maxWindow))
	}
	decoder, err := zstd.NewReader(source, options...)
	if err != nil {
		return nil, err
	}
	return decoder.IOReadCloser(), nil
}
