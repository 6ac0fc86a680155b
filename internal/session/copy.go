package session

import "slices"

// clone returns a copy whose slices can be appended to and changed; the bytes of spliced items are shared, nobody
// changes them.
func (s *Session) clone() *Session {
	c := &Session{ID: s.ID, Asks: slices.Clone(s.Asks), Splices: slices.Clone(s.Splices)}
	for i := range c.Asks {
		a := &c.Asks[i]
		a.Loaded, a.Calls, a.Prefetched = slices.Clone(a.Loaded), slices.Clone(a.Calls), slices.Clone(a.Prefetched)
	}
	for i := range c.Splices {
		p := &c.Splices[i]
		p.Anchors, p.Cut, p.Within = slices.Clone(p.Anchors), slices.Clone(p.Cut), slices.Clone(p.Within)
	}
	return c
}

// Newest returns the newest ask that fits, nil if none does.
func (s *Session) Newest(fits func(*Ask) bool) *Ask {
	for i := len(s.Asks) - 1; i >= 0; i-- {
		if fits(&s.Asks[i]) {
			return &s.Asks[i]
		}
	}
	return nil
}

// trim forgets the oldest asks.
func (s *Session) trim() {
	if spare := len(s.Asks) - MaxAsks; spare > 0 {
		s.Asks = slices.Delete(s.Asks, 0, spare)
	}
}

// compact gives the session its own bytes, no more than it needs: what was handed in may be part of a large buffer.
func (s *Session) compact() {
	own := func(b []byte) []byte {
		if b == nil {
			return nil
		}
		return append(make([]byte, 0, len(b)), b...)
	}
	for i := range s.Splices {
		p := &s.Splices[i]
		p.Before = own(p.Before)
		for k := range p.Within {
			p.Within[k].Call, p.Within[k].Result = own(p.Within[k].Call), own(p.Within[k].Result)
		}
	}
}

// size estimates the bytes that a session takes in memory, with its place in the store. Policies are shared and do not
// count.
func size(s *Session) int64 {
	const (
		base   = 400 // the session, its entry and its keys
		header = 16  // of a string, and nearly of a slice
	)
	n := base + len(s.ID)
	texts := func(list []string) {
		for _, t := range list {
			n += header + len(t)
		}
	}
	for i := range s.Asks {
		a := &s.Asks[i]
		n += 8*header + len(a.Key)
		texts(a.Loaded)
		for range 4 { // most are calls, under three aliases of the store each
			texts(a.Calls)
		}
		texts(a.Prefetched)
	}
	for i := range s.Splices {
		p := &s.Splices[i]
		n += 8*header + len(p.Before)
		texts(p.Anchors)
		for _, c := range p.Cut {
			n += 2*header + len(c.Member) + len(c.Text)
		}
		for _, h := range p.Within {
			n += 4*header + len(h.Call) + len(h.Result)
		}
	}
	return int64(n)
}
