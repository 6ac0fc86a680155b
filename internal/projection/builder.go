package projection

import (
	"context"
	"hash/maphash"
	"sync"

	"github.com/maypok86/otter/v2"
)

// Builder compiles indexes and remembers what it has done: whole catalogs by their content, and the words of single tools
// by the tool's own bytes, so that a tool that has changed costs one tool. Both are bounded. The zero value is ready, and
// safe for concurrent use; what several ask for at once is built once.
type Builder struct {
	once    sync.Once
	seeds   [2]maphash.Seed
	indexes *otter.Cache[contentKey, *Index]
	tools   *otter.Cache[contentKey, toolWords]
}

// contentKey stands for bytes. 128 bits of two hashes with secret seeds: nobody can make two contents meet.
type contentKey [2]uint64

// Bounds of what a builder remembers, in bytes, estimated.
const (
	maxIndexBytes = 32 << 20
	maxWordBytes  = 32 << 20
)

func (b *Builder) init() {
	b.seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	b.indexes = otter.Must(&otter.Options[contentKey, *Index]{
		MaximumWeight: maxIndexBytes, Weigher: func(_ contentKey, x *Index) uint32 { return uint32(x.bytes()) },
	})
	b.tools = otter.Must(&otter.Options[contentKey, toolWords]{
		MaximumWeight: maxWordBytes, Weigher: func(_ contentKey, w toolWords) uint32 { return uint32(len(w.packed) + 96) },
	})
}

// Index returns the index of a catalog.
func (b *Builder) Index(tools []Tool) *Index {
	b.once.Do(b.init)
	keys := make([]contentKey, len(tools))
	whole := [2]maphash.Hash{}
	for i := range whole {
		whole[i].SetSeed(b.seeds[i])
	}
	for i, tool := range tools {
		keys[i] = b.key(tool)
		for k := range whole {
			maphash.WriteComparable(&whole[k], keys[i])
		}
	}
	load := otter.LoaderFunc[contentKey, *Index](func(context.Context, contentKey) (*Index, error) {
		return b.build(tools, keys), nil
	})
	x, err := b.indexes.Get(context.Background(), contentKey{whole[0].Sum64(), whole[1].Sum64()}, load)
	if err != nil {
		return b.build(tools, keys) // the loader itself cannot fail
	}
	return x
}

func (b *Builder) key(tool Tool) contentKey {
	var key contentKey
	for i := range key {
		var h maphash.Hash
		h.SetSeed(b.seeds[i])
		for _, part := range []string{tool.Name, tool.Description} {
			_, _ = h.WriteString(part)
			_ = h.WriteByte(0)
		}
		_, _ = h.Write(tool.Parameters)
		key[i] = h.Sum64()
	}
	return key
}

func (b *Builder) build(tools []Tool, keys []contentKey) *Index {
	a := newAnalyzer()
	entries := make([]entry, len(tools))
	for i, tool := range tools {
		words, ok := b.tools.GetIfPresent(keys[i])
		if !ok {
			words = a.analyze(tool)
			b.tools.Set(keys[i], words)
		}
		entries[i] = entry{tool.Name, words}
	}
	return compile(entries)
}
