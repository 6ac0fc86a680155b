package session

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// stores are all kinds of stores; each test of the conformance suite runs against each.
func stores(t *testing.T) map[string]func(t *testing.T) Store {
	redisAt := func(t *testing.T, address string) Store {
		store, err := NewRedis(RedisOptions{URL: "redis://" + address, TTL: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	all := map[string]func(t *testing.T) Store{
		"memory": func(*testing.T) Store {
			return NewMemory(MemoryOptions{TTL: time.Hour, MaxSessions: 1000, MaxBytes: 1 << 20})
		},
		"redis in the process": func(t *testing.T) Store { return redisAt(t, miniredis.RunT(t).Addr()) },
	}
	if address := os.Getenv("REDIS_ADDR"); address != "" {
		all["redis-server"] = func(t *testing.T) Store {
			store := redisAt(t, address)
			if err := store.(*Redis).client.FlushDB(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			return store
		}
	}
	return all
}

// conformance runs a test against each kind of store.
func conformance(t *testing.T, test func(t *testing.T, s Store)) {
	for name, open := range stores(t) {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			defer func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}()
			test(t, s)
		})
	}
}

func put(t *testing.T, s Store, key string, aliases []string, change func(*Session)) *Session {
	t.Helper()
	stored, err := s.Update(t.Context(), key, aliases, change)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

func TestFindByKeyAndAliasInOrder(t *testing.T) {
	conformance(t, func(t *testing.T, s Store) {
		put(t, s, "k1", []string{"a1", "a2"}, func(s *Session) { s.ID = "one" })
		put(t, s, "k2", []string{"b1"}, func(s *Session) { s.ID = "two" })
		for _, test := range []struct {
			keys  []string
			id    string
			key   string
			index int
		}{
			{[]string{"k1"}, "one", "k1", 0}, {[]string{"a2"}, "one", "k1", 0}, {[]string{"none", "b1", "a1"}, "two", "k2", 1},
			{[]string{"a1", "k2"}, "one", "k1", 0},
		} {
			got, key, index, err := s.Find(t.Context(), test.keys...)
			if err != nil || got.ID != test.id || key != test.key || index != test.index {
				t.Errorf("%v: got %v %q %d %v", test.keys, got, key, index, err)
			}
		}
		for _, keys := range [][]string{nil, {"none"}, {"none", "other"}} {
			if _, _, _, err := s.Find(t.Context(), keys...); !errors.Is(err, ErrNotFound) {
				t.Errorf("%v: got %v", keys, err)
			}
		}
	})
}

func TestAnAliasLeadsToTheNewerSession(t *testing.T) {
	conformance(t, func(t *testing.T, s Store) {
		put(t, s, "k1", []string{"a"}, func(s *Session) { s.ID = "one" })
		put(t, s, "k2", []string{"a"}, func(s *Session) { s.ID = "two" })
		if got, _, _, err := s.Find(t.Context(), "a"); err != nil || got.ID != "two" {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

func TestEverythingIsKept(t *testing.T) {
	conformance(t, func(t *testing.T, s Store) {
		want := Session{ID: "x", Asks: []Ask{{Key: "k", Loaded: []string{"b", "a"}, Policy: `{"p":1}`, Calls: []string{"c"}, Prefetched: []string{"p"}}},
			Splices: []Splice{{Anchors: []string{"call:1"}, Before: []byte(`{"a":"<&>"}`), Cut: []Text{{"content", "t"}}, Within: []HiddenCall{{2, []byte(`{}`), []byte(`[]`)}}}}}
		put(t, s, "k", nil, func(s *Session) { *s = want })
		got, _, _, err := s.Find(t.Context(), "k")
		if err != nil || fmt.Sprintf("%+v", *got) != fmt.Sprintf("%+v", want) {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	})
}

func TestUpdateGivesAPrivateCopy(t *testing.T) {
	conformance(t, func(t *testing.T, s Store) {
		buffer := []byte("hidden")
		put(t, s, "k", nil, func(s *Session) {
			s.Asks = append(s.Asks, Ask{Key: "a", Loaded: []string{"x"}})
			s.Splices = append(s.Splices, Splice{Before: buffer})
		})
		buffer[0] = 'X' // the caller's buffer is the caller's again
		before, _, _, err := s.Find(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		put(t, s, "k", nil, func(s *Session) {
			s.Asks[0].Loaded[0] = "y"
			s.Asks = append(s.Asks, Ask{Key: "b"})
		})
		if len(before.Asks) != 1 || before.Asks[0].Loaded[0] != "x" || string(before.Splices[0].Before) != "hidden" {
			t.Errorf("a session that was found has changed: %+v", before)
		}
	})
}

func TestOldAsksAreForgotten(t *testing.T) {
	conformance(t, func(t *testing.T, s Store) {
		for i := range MaxAsks + 3 {
			put(t, s, "k", nil, func(s *Session) { s.Asks = append(s.Asks, Ask{Key: fmt.Sprint(i)}) })
		}
		got, _, _, err := s.Find(t.Context(), "k")
		if err != nil || len(got.Asks) != MaxAsks || got.Asks[0].Key != "3" {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

func TestConcurrentUpdatesLoseNothing(t *testing.T) {
	conformance(t, func(t *testing.T, s Store) {
		const writers, each = 4, 10
		var group sync.WaitGroup
		for w := range writers {
			group.Go(func() {
				for i := range each {
					for {
						_, err := s.Update(context.Background(), "k", []string{fmt.Sprintf("alias%d%d", w, i)}, func(s *Session) {
							s.Splices = append(s.Splices, Splice{Anchors: []string{fmt.Sprint(w, i)}})
						})
						if err == nil {
							break
						}
						time.Sleep(time.Millisecond) // so many lost races count as a store that is away
					}
				}
			})
		}
		group.Wait()
		got, _, _, err := s.Find(t.Context(), "alias39")
		if err != nil || len(got.Splices) != writers*each {
			t.Errorf("%d of %d updates are there, %v", len(got.Splices), writers*each, err)
		}
	})
}

func TestMemoryGivesUpWholeSessions(t *testing.T) {
	m := NewMemory(MemoryOptions{TTL: time.Hour, MaxSessions: 20, MaxBytes: 1 << 20})
	defer m.Close()
	for i := range 500 {
		put(t, m, fmt.Sprint("k", i), []string{fmt.Sprint("a", i)}, func(s *Session) { s.ID = fmt.Sprint(i) })
	}
	m.cache.CleanUp()
	stats := m.Stats(t.Context())
	if stats.Sessions > 20 || stats.Sessions == 0 || stats.Evictions != 500-stats.Sessions {
		t.Errorf("stats %+v", stats)
	}
	for i := range 500 {
		_, _, _, byKey := m.Find(t.Context(), fmt.Sprint("k", i))
		_, _, _, byAlias := m.Find(t.Context(), fmt.Sprint("a", i))
		if (byKey == nil) != (byAlias == nil) {
			t.Fatalf("session %d is half there: %v, %v", i, byKey, byAlias)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.aliases) > 20 || len(m.names) > 20 {
		t.Errorf("%d aliases of %d sessions are left", len(m.aliases), len(m.names))
	}
}

func TestMemoryBoundsBytes(t *testing.T) {
	m := NewMemory(MemoryOptions{TTL: time.Hour, MaxSessions: 1 << 20, MaxBytes: 1 << 20})
	defer m.Close()
	for i := range 300 {
		put(t, m, fmt.Sprint("k", i), nil, func(s *Session) { s.Splices = []Splice{{Before: make([]byte, 20<<10)}} })
	}
	m.cache.CleanUp()
	if stats := m.Stats(t.Context()); stats.Bytes > 1<<20 || stats.Bytes < 1<<18 || stats.Evictions == 0 {
		t.Errorf("stats %+v", stats)
	}
}

// TestMemoryNamesASessionAnew: a session that has expired, and comes back under its own key before anybody has swept it away,
// is found by its new aliases.
func TestMemoryNamesASessionAnew(t *testing.T) {
	m := NewMemory(MemoryOptions{TTL: 50 * time.Millisecond, MaxSessions: 100, MaxBytes: 1 << 20})
	defer m.Close()
	for range 20 {
		put(t, m, "key", []string{"alias"}, func(*Session) {})
		if _, _, _, err := m.Find(t.Context(), "alias"); err != nil {
			t.Fatalf("the session is not found by its alias: %v", err)
		}
		time.Sleep(60 * time.Millisecond)
	}
}

func TestMemoryForgetsIdleSessions(t *testing.T) {
	m := NewMemory(MemoryOptions{TTL: 300 * time.Millisecond, MaxSessions: 100, MaxBytes: 1 << 20})
	defer m.Close()
	put(t, m, "busy", nil, func(*Session) {})
	put(t, m, "idle", []string{"alias"}, func(*Session) {})
	for range 100 { // expiry is counted in steps of about a second
		time.Sleep(60 * time.Millisecond)
		_, _, _, _ = m.Find(t.Context(), "busy")
		m.cache.CleanUp()
		if m.Stats(t.Context()).Expired == 1 {
			break
		}
	}
	if _, _, _, err := m.Find(t.Context(), "alias"); !errors.Is(err, ErrNotFound) {
		t.Errorf("an idle session is found: %v", err)
	}
	if _, _, _, err := m.Find(t.Context(), "busy"); err != nil {
		t.Errorf("a busy session is gone: %v", err)
	}
	if stats := m.Stats(t.Context()); stats.Expired != 1 {
		t.Errorf("stats %+v", stats)
	}
}

func TestMemoryBoundsAliases(t *testing.T) {
	m := NewMemory(MemoryOptions{TTL: time.Hour, MaxSessions: 10, MaxBytes: 1 << 20})
	defer m.Close()
	for i := range maxAliases + 10 {
		put(t, m, "k", []string{fmt.Sprint("a", i)}, func(*Session) {})
	}
	if _, _, _, err := m.Find(t.Context(), "a0"); !errors.Is(err, ErrNotFound) {
		t.Errorf("the oldest alias still leads somewhere: %v", err)
	}
	if _, _, _, err := m.Find(t.Context(), fmt.Sprint("a", maxAliases+9)); err != nil {
		t.Errorf("the newest alias leads nowhere: %v", err)
	}
}

// TestTenThousandIdleSessionsAreSmall holds the memory of sessions as they are after two hidden rounds.
func TestTenThousandIdleSessionsAreSmall(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before := heap()
	m := NewMemory(MemoryOptions{TTL: time.Hour, MaxSessions: 100000, MaxBytes: 256 << 20})
	defer m.Close()
	policy := strings.Repeat("p", 600)
	for i := range 10000 {
		key := func(kind string) string { return fmt.Sprintf("%s-%018d", kind, i) }
		put(t, m, key("key"), []string{key("call"), key("response"), key("digest"), key("request")}, func(s *Session) {
			s.ID = key("id")
			s.Asks = []Ask{{Key: key("ask"), Loaded: []string{"get_weather", "send_mail"}, Policy: string([]byte(policy)), Calls: []string{key("call")}}}
			for k := range 2 {
				s.Splices = append(s.Splices, Splice{Anchors: []string{fmt.Sprint(key("call"), k)}, Before: make([]byte, 750)})
			}
		})
	}
	grown := float64(heap()-before) / (1 << 20)
	t.Logf("10,000 sessions take %.1f MiB", grown)
	if grown > 64 {
		t.Errorf("10,000 sessions take %.1f MiB, more than 64", grown)
	}
	if stats := m.Stats(t.Context()); stats.Sessions != 10000 || float64(stats.Bytes)/(1<<20) > 1.5*grown || float64(stats.Bytes)/(1<<20) < grown/3 {
		t.Errorf("the estimate is far from %.1f MiB: %+v", grown, stats)
	}
	runtime.KeepAlive(m)
}

func TestRedisThatIsAwayCostsLittle(t *testing.T) {
	server := miniredis.RunT(t)
	s, err := NewRedis(RedisOptions{URL: "redis://" + server.Addr(), TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	put(t, s, "k", nil, func(s *Session) { s.ID = "x" })
	server.Close()
	start := time.Now()
	if _, _, _, err := s.Find(t.Context(), "k"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	if waited := time.Since(start); waited > 2*time.Second {
		t.Errorf("the first request waited %v", waited)
	}
	start = time.Now()
	for range 100 {
		if _, err := s.Update(t.Context(), "k", nil, func(*Session) {}); !errors.Is(err, ErrUnavailable) {
			t.Errorf("got %v", err)
		}
	}
	if waited := time.Since(start); waited > time.Second {
		t.Errorf("further requests waited %v", waited)
	}
	if err := s.Ping(t.Context()); !errors.Is(err, ErrUnavailable) {
		t.Errorf("ping says %v", err)
	}
}

func TestRedisForgetsIdleSessions(t *testing.T) {
	server := miniredis.RunT(t)
	s, err := NewRedis(RedisOptions{URL: "redis://" + server.Addr(), TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	put(t, s, "k", []string{"a"}, func(*Session) {})
	server.FastForward(40 * time.Second)
	if _, _, _, err := s.Find(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	server.FastForward(40 * time.Second)
	if _, _, _, err := s.Find(t.Context(), "a"); err != nil {
		t.Errorf("a session that was just found is gone: %v", err)
	}
	server.FastForward(2 * time.Minute)
	if _, _, _, err := s.Find(t.Context(), "a", "k"); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestReplicasShareOneSecret(t *testing.T) {
	server := miniredis.RunT(t)
	var secrets [2]string
	for i := range secrets {
		s, err := NewRedis(RedisOptions{URL: "redis://" + server.Addr(), TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		secret, err := s.Secret(t.Context(), []byte(rand.Text()))
		if err != nil || len(secret) < 16 {
			t.Fatalf("got %q, %v", secret, err)
		}
		secrets[i] = string(secret)
	}
	if secrets[0] != secrets[1] {
		t.Errorf("two replicas have the secrets %q", secrets)
	}
}

func TestAWrongURLIsNotRepeated(t *testing.T) {
	_, err := NewRedis(RedisOptions{URL: "http://:hunter2@x"})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}

func BenchmarkMemory(b *testing.B) {
	m := NewMemory(MemoryOptions{TTL: time.Hour, MaxSessions: 10000, MaxBytes: 64 << 20})
	defer m.Close()
	change := func(s *Session) {
		s.ID = "x"
		s.Asks = []Ask{{Key: "a", Loaded: []string{"t"}, Policy: "p"}}
		s.Splices = []Splice{{Anchors: []string{"call:1"}, Before: make([]byte, 700)}}
	}
	b.Run("update", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			_, _ = m.Update(context.Background(), fmt.Sprint("k", i%1000), []string{"a"}, change)
		}
	})
	b.Run("find", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _, _, _ = m.Find(context.Background(), "none", "a")
		}
	})
}
