// Package idle ends what has been silent for too long. Its timer costs next to nothing while something happens: a mark is
// one store, and the clock looks at it now and then. Resetting a timer with every event of a stream would wake the
// network poller each time.
package idle

import (
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
