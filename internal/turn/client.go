package turn

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"tool-search-proxy/internal/openai"
)

// client is the one answer on its way to the client: its status, its headers and its bytes. A heartbeat may write beside
// the engine, so every write goes through the lock.
type client struct {
	w         http.ResponseWriter
	control   *http.ResponseController
	heartbeat time.Duration

	mu       sync.Mutex
	status   int
	opened   bool // status and headers are out
	streamed bool // the answer is a stream of events
	hasID    bool // the upstream's stream has carried id lines
	finished bool // all of the answer is out
	err      error
	written  int64
	first    time.Time
	beat     *time.Timer
	beating  bool
	front    []byte // comments that the stream will begin with
	deadline time.Time
}

// writeTime is how long one write to the client may take; a reader that is slower than that is gone.
const writeTime = 5 * time.Minute

func newClient(w http.ResponseWriter, heartbeat time.Duration) *client {
	return &client{w: w, control: http.NewResponseController(w), heartbeat: heartbeat}
}

// isOpen reports whether status and headers are out.
func (c *client) isOpen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.opened
}

// head sets the headers of the upstream's response, and those that further adds, while nothing is out yet. Hop-by-hop
// headers were dropped when it came in; length and encoding are the body's as it was then.
func (c *client) head(h http.Header, further func(http.Header)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.headLocked(h, further)
}

func (c *client) headLocked(h http.Header, further func(http.Header)) {
	if c.opened {
		return
	}
	for name, values := range h {
		switch name {
		case "Content-Length", "Content-Encoding":
		default:
			c.w.Header()[name] = values
		}
	}
	further(c.w.Header())
}

// openStream sends status and headers of a stream of events.
func (c *client) openStream(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.openStreamLocked(status)
}

func (c *client) openStreamLocked(status int) {
	if c.opened {
		return
	}
	h := c.w.Header()
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
	}
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-cache")
	}
	if h.Get("X-Accel-Buffering") == "" {
		h.Set("X-Accel-Buffering", "no")
	}
	c.opened, c.streamed, c.status = true, true, status
	c.w.WriteHeader(status)
	if len(c.front) > 0 {
		_ = c.writeLocked(c.front)
	}
}

// events writes whole events of a stream and flushes them, in one write.
func (c *client) events(raw []byte) error {
	if len(raw) == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.openStreamLocked(http.StatusOK)
	return c.writeLocked(raw)
}

func (c *client) writeLocked(raw []byte) error {
	if c.err != nil {
		return c.err
	}
	now := time.Now()
	if c.first.IsZero() {
		c.first = now
	}
	if c.deadline.Sub(now) < writeTime/2 {
		c.deadline = now.Add(writeTime)
		_ = c.control.SetWriteDeadline(c.deadline)
	}
	n, err := c.w.Write(raw)
	c.written += int64(n)
	if err == nil && c.streamed {
		err = c.control.Flush()
	}
	c.err = err
	return err
}

// whole writes a whole answer. It is flushed at once: the client need not wait for what is noted afterwards.
func (c *client) whole(status int, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	c.opened, c.status = true, status
	c.w.WriteHeader(status)
	if c.writeLocked(body) == nil {
		c.err = c.control.Flush()
	}
	c.finished = c.err == nil
}

// end writes the last events of a stream.
func (c *client) end(raw []byte) {
	err := c.events(raw)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finished = err == nil
}

// relay passes a response of the upstream on as it is.
func (c *client) relay(resp *http.Response, further func(http.Header)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.headLocked(resp.Header, further)
	if resp.ContentLength >= 0 {
		c.w.Header().Set("Content-Length", strconv.FormatInt(resp.ContentLength, 10))
	}
	c.opened, c.status = true, resp.StatusCode
	c.streamed = true // flush what comes as it comes
	c.w.WriteHeader(resp.StatusCode)
	buffer := make([]byte, 16<<10)
	for {
		n, err := resp.Body.Read(buffer)
		if n > 0 && c.writeLocked(buffer[:n]) != nil {
			return
		}
		if err == io.EOF {
			c.finished = true
			return
		}
		if err != nil {
			// The client must not take half an answer for a whole one.
			c.abortLocked()
		}
	}
}

// abortLocked breaks the connection, so that the client sees that the answer is not complete.
func (c *client) abortLocked() {
	c.err = http.ErrAbortHandler
	panic(http.ErrAbortHandler)
}

// refuse answers with an error object of the proxy's own.
func (c *client) refuse(status int, message string) {
	kind, code := "invalid_request_error", "invalid_body"
	if status >= 500 {
		kind, code = "server_error", "upstream_error"
	}
	c.fail(status, openai.ErrorBody(message, kind, code))
}

func (c *client) fail(status int, body []byte) {
	c.w.Header().Set("Content-Type", "application/json")
	c.whole(status, body)
}

// handOver lets another handler answer, and learns what it said.
func (c *client) handOver(serve func(http.ResponseWriter)) {
	w := &learning{ResponseWriter: c.w}
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.opened, c.status, c.written = true, w.status, w.written
	}()
	serve(w) // does not return if the client goes away meanwhile
	c.finished = true
}

// learning notes the status and the size of an answer.
type learning struct {
	http.ResponseWriter
	status  int
	written int64
}

func (w *learning) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *learning) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *learning) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(b)
	w.written += int64(n)
	return n, err
}

// beatOn starts the heartbeat: while a hidden round keeps the client waiting, a comment now and then keeps the connection
// from being taken for dead. It opens the stream, so that a later error can only be told in-band.
func (c *client) beatOn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.heartbeat <= 0 {
		return
	}
	c.beating = true
	if c.beat != nil {
		c.beat.Reset(c.heartbeat)
		return
	}
	c.beat = time.AfterFunc(c.heartbeat, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.beating || c.err != nil {
			return
		}
		c.openStreamLocked(http.StatusOK)
		_ = c.writeLocked(c.comment("waiting"))
		c.beat.Reset(c.heartbeat)
	})
}

// beatOff stops the heartbeat: from now on nothing is written beside the engine.
func (c *client) beatOff() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.beating = false
	if c.beat != nil {
		c.beat.Stop()
	}
}

// comment returns a comment of the stream. Some decoders take a blank line for an event once an id line has come, so then
// the comment goes without one.
func (c *client) comment(text string) []byte {
	if c.hasID {
		return []byte(": " + text + "\n")
	}
	return []byte(": " + text + "\n\n")
}

func newBody(b []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(b)) }

// noteID notes that the upstream's stream has carried an id line.
func (c *client) noteID() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hasID = true
}

// say puts a comment into a stream, at its front while nothing is out yet.
func (c *client) say(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.opened {
		c.front = append(c.front, c.comment(text)...)
	} else if c.streamed {
		_ = c.writeLocked(c.comment(text))
	}
}
