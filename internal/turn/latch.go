package turn

import (
	"sync"
	"time"
)

// latch turns projection off for a model whose upstream keeps refusing projected requests that it takes unprojected.
type latch struct {
	refusals int
	time     time.Duration

	mu     sync.Mutex
	models map[string]latched
}

type latched struct {
	refusals int
	until    time.Time
}

// maxLatchedModels bounds the memory of a caller that names ever new models.
const maxLatchedModels = 1024

func newLatch(refusals int, period time.Duration) latch {
	return latch{refusals: refusals, time: period, models: make(map[string]latched)}
}

// holds reports whether projection is off for the model.
func (l *latch) holds(model string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Before(l.models[model].until)
}

// refused notes a refusal that was the projection's; it reports whether the latch holds now.
func (l *latch) refused(model string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.models[model]; !known && len(l.models) >= maxLatchedModels {
		clear(l.models)
	}
	m := l.models[model]
	m.refusals++
	if l.refusals > 0 && m.refusals >= l.refusals {
		m = latched{until: time.Now().Add(l.time)}
	}
	l.models[model] = m
	return !m.until.IsZero()
}

// accepted notes that the upstream took a projected request.
func (l *latch) accepted(model string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.models, model)
}
