// Package idle ends what has been silent for too long. Its timer costs next to nothing while something happens: a mark is
// one store, and the clock looks at it now and then. Resetting a timer with every event of a stream would wake the
// network poller each time.
package idle

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Timer watches waits. Its methods but Stop are for one goroutine.
type Timer struct {
	limit time.Duration
	end   func()
	since atomic.Int64 // when the running wait began, in nanoseconds of the process; 0 is none

	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
}

var origin = time.Now()

// New returns a timer that calls end, once, when a wait has lasted as long as limit. Stop releases it.
func New(limit time.Duration, end func()) *Timer {
	t := &Timer{limit: limit, end: end}
	t.timer = time.AfterFunc(limit, t.look)
	return t
}

// Wait begins a wait.
func (t *Timer) Wait() { t.since.Store(int64(time.Since(origin)) + 1) }

// Done ends the wait.
func (t *Timer) Done() { t.since.Store(0) }

// Stop ends the watch.
func (t *Timer) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	t.timer.Stop()
}

// look ends a wait that is too long, or looks again when it could be.
func (t *Timer) look() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return
	}
	rest := t.limit
	if since := t.since.Load(); since != 0 {
		rest = t.limit - (time.Since(origin) - time.Duration(since))
	}
	if rest <= 0 {
		t.stopped = true
		t.end()
		return
	}
	t.timer.Reset(rest)
}

// ErrSilent says that nothing has come for too long.
var ErrSilent = errors.New("the upstream has sent nothing for too long")

// Body is the body of an answer that may not be silent for too long. Only time spent in waiting for it counts: a client that
// reads slowly is no silence.
type Body struct {
	io.ReadCloser
	timer  *Timer
	silent atomic.Bool
}

// NewBody closes body when a read of it has waited as long as limit; the read then fails with ErrSilent.
func NewBody(body io.ReadCloser, limit time.Duration) *Body {
	b := &Body{ReadCloser: body}
	b.timer = New(limit, func() {
		b.silent.Store(true)
		_ = body.Close()
	})
	return b
}

func (b *Body) Read(p []byte) (int, error) {
	b.timer.Wait()
	n, err := b.ReadCloser.Read(p)
	b.timer.Done()
	if err != nil && err != io.EOF && b.silent.Load() {
		err = ErrSilent
	}
	return n, err
}

// Close ends the watch, and closes the body.
func (b *Body) Close() error {
	b.timer.Stop()
	return b.ReadCloser.Close()
}
