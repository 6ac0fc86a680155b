package session

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
)

// MemoryOptions bound a memory store.
type MemoryOptions struct {
	TTL         time.Duration // idle time after which a session is dropped
	MaxSessions int           // at least 1
	MaxBytes    int64         // of all sessions, estimated
}

// Memory keeps sessions in the memory of the process. It gives up whole sessions when its bounds are reached, those that
// are least likely to be needed first.
type Memory struct {
	cache *otter.Cache[string, *Session]
	least uint32 // weight of the smallest session, so that the bytes bound the count too

	// mu guards the aliases. It may be taken under a lock of the cache, never the other way round.
	mu      sync.RWMutex
	aliases map[string]string   // alias to key
	names   map[string][]string // key to its aliases, oldest first

	policies  sync.Map // policies by themselves: sessions share their bytes
	bytes     atomic.Int64
	evictions atomic.Int64
	expired   atomic.Int64
}

// maxAliases bounds the aliases of one session; the oldest are forgotten first.
const maxAliases = 512

// NewMemory makes an empty memory store.
func NewMemory(o MemoryOptions) *Memory {
	o.MaxSessions, o.MaxBytes = max(o.MaxSessions, 1), max(o.MaxBytes, 1)
	m := &Memory{
		least:   uint32(min(max(o.MaxBytes/int64(o.MaxSessions), 1), 1<<31)),
		aliases: make(map[string]string),
		names:   make(map[string][]string),
	}
	m.cache = otter.Must(&otter.Options[string, *Session]{
		MaximumWeight:    uint64(max(o.MaxBytes, int64(m.least))),
		Weigher:          func(_ string, s *Session) uint32 { return max(m.least, uint32(min(size(s), 1<<31))) },
		ExpiryCalculator: otter.ExpiryAccessing[string, *Session](o.TTL),
		OnAtomicDeletion: m.deleted,
	})
	return m
}

// Find implements Store.
func (m *Memory) Find(_ context.Context, keys ...string) (*Session, string, int, error) {
	for i, key := range keys {
		if s, ok := m.cache.GetIfPresent(key); ok {
			return s, key, i, nil
		}
		m.mu.RLock()
		owner, ok := m.aliases[key]
		m.mu.RUnlock()
		if !ok {
			continue
		}
		if s, ok := m.cache.GetIfPresent(owner); ok {
			return s, owner, i, nil
		}
	}
	return nil, "", 0, ErrNotFound
}

// Update implements Store.
func (m *Memory) Update(_ context.Context, key string, aliases []string, change func(*Session)) (*Session, error) {
	stored, _ := m.cache.Compute(key, func(old *Session, found bool) (*Session, otter.ComputeOp) {
		next := &Session{}
		if found {
			next = old.clone()
			m.bytes.Add(-size(old))
		}
		change(next)
		next.trim()
		next.compact()
		for i := range next.Asks {
			shared, _ := m.policies.LoadOrStore(next.Asks[i].Policy, next.Asks[i].Policy)
			next.Asks[i].Policy = shared.(string)
		}
		m.bytes.Add(size(next))
		return next, otter.WriteOp
	})
	// The session that stood here may have just expired: its aliases are forgotten before the new ones are made.
	m.name(key, aliases)
	if _, ok := m.cache.GetEntryQuietly(key); !ok {
		m.forget(key) // it was given up at once
	}
	return stored, nil
}

// name makes aliases lead to the session of this key.
func (m *Memory) name(key string, aliases []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	names := m.names[key]
	for _, alias := range aliases {
		if alias == key || m.aliases[alias] == key {
			continue
		}
		m.aliases[alias] = key
		names = append(names, alias)
	}
	if spare := len(names) - maxAliases; spare > 0 {
		for _, alias := range names[:spare] {
			m.unname(key, alias)
		}
		names = slices.Clone(names[spare:])
	}
	m.names[key] = names
}

func (m *Memory) unname(key, alias string) {
	if m.aliases[alias] == key { // it may lead to a newer session by now
		delete(m.aliases, alias)
	}
}

// deleted forgets the aliases of a session that is gone.
func (m *Memory) deleted(e otter.DeletionEvent[string, *Session]) {
	switch e.Cause {
	case otter.CauseReplacement:
		return
	case otter.CauseOverflow:
		m.evictions.Add(1)
	case otter.CauseExpiration:
		m.expired.Add(1)
	}
	m.bytes.Add(-size(e.Value))
	m.forget(e.Key)
}

// forget takes away the aliases of a session.
func (m *Memory) forget(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, alias := range m.names[key] {
		m.unname(key, alias)
	}
	delete(m.names, key)
}

// Stats implements Store.
func (m *Memory) Stats(context.Context) Stats {
	return Stats{
		Sessions: int64(m.cache.EstimatedSize()), Bytes: m.bytes.Load(), Evictions: m.evictions.Load(),
		Expired: m.expired.Load(),
	}
}

// Ping implements Store; memory is always there.
func (m *Memory) Ping(context.Context) error { return nil }

// Close implements Store.
func (m *Memory) Close() error {
	m.cache.InvalidateAll()
	m.cache.StopAllGoroutines()
	return nil
}
