package turn

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"tool-search-proxy/internal/openai"
	"tool-search-proxy/internal/session"
)

// ask is the ask that a request begins or continues, as the session tells of it.
type ask struct {
	id      string // the session's request ID
	key     string // under which the session is kept
	aliases []string
	digest  string // names the ask within its session
	known   bool   // the session existed before this request
	policy  *Policy
	loaded  []string
	calls   []string // aliases of calls handed out before
	splices []openai.Splice

	// prefetchDone are the tools that the client has run before the first round, as the ask's first request says.
	prefetchDone []string
}

// Kinds of names that lead to a session.
const (
	byID           = "id"
	byResponse     = "response"
	byConversation = "conversation"
	byCall         = "call"
	byCallOf       = "call_of" // a call of a certain request ID, or behind certain user messages
	byOutput       = "output"
	byDigest       = "digest"
	byOpenCall     = "open"
)

// Bounds of one search for a session.
const (
	maxLookedUpCalls = 16
	maxOutputs       = 2 // items that lead to a session whose asks had no calls
	maxDigests       = 4
	maxIDLength      = 200
	storeTime        = 2 * time.Second
)

// findAsk finds the session that a request belongs to by what the client names, best evidence first: state at the
// upstream, tool calls that the proxy handed out, the request ID, the user's messages. Some servers count their calls anew
// in every answer: a call under the request's own ID, or behind the same user messages, goes before one that is merely
// equal. An unavailable store is an error, and the ask is then as good as new.
func (t *turn) findAsk() (*ask, error) {
	h, v := t.history, t.view
	digests := h.digests(session.MaxAsks)
	a := &ask{}
	if len(digests) > 0 {
		a.digest = digests[0]
	}
	ids := t.requestIDs()
	t.readPrefetch(a)

	type name struct{ kind, key string }
	var names []name
	add := func(kind, value string) { names = append(names, name{kind, t.caller.key(kind, value)}) }
	if v.PreviousResponse != "" {
		add(byResponse, v.PreviousResponse)
	}
	if v.Conversation != "" {
		add(byConversation, v.Conversation)
	}
	from := 0
	if h.continues {
		from = h.start
	}
	calls := h.calls(from, maxLookedUpCalls)
	if len(calls) > 0 {
		anchor := v.Anchor(calls[0])
		for _, id := range ids {
			add(byCallOf, id+"\x00"+anchor)
		}
		if ask := h.askOf(h.newestCall(from)); ask >= 0 && ask < len(digests) {
			add(byCallOf, digests[ask]+"\x00"+anchor)
		}
	}
	for _, c := range calls {
		add(byCall, v.Anchor(c))
	}
	if v.PreviousResponse == "" && v.Conversation == "" {
		for _, anchor := range v.OutputAnchors(maxOutputs) {
			add(byOutput, anchor)
		}
	}
	if h.continues && len(calls) == 0 {
		// Results without their calls: the calls are at the upstream.
		for _, item := range v.Items[from:] {
			if item.ResultOf != "" {
				add(byCall, item.ResultOf)
			}
		}
	}
	for _, id := range ids {
		add(byID, id)
	}
	switch {
	case h.continues && len(digests) > 0:
		add(byDigest, digests[0])
	case !h.continues && t.policy.Conversation:
		for _, d := range digests[min(1, len(digests)):min(maxDigests, len(digests))] {
			add(byDigest, d)
		}
	}
	var failure error
	if len(names) > 0 {
		keys := make([]string, len(names))
		for i, n := range names {
			keys[i] = n.key
		}
		s, key, index, err := t.engine.Sessions.Find(t.request.Context(), keys...)
		switch {
		case err == nil:
			a.known, a.key, a.id = true, key, s.ID
			a.splices = readSplices(s.Splices)
			found := names[index]
			if found.kind == byCallOf {
				found.key = t.caller.key(byCall, v.Anchor(calls[0]))
			}
			a.enter(s, found.kind, found.key, digests, h.continues, t.engine)
		case !errors.Is(err, session.ErrNotFound):
			failure = err
		}
	}
	if !a.known {
		if len(ids) > 0 {
			a.id = ids[0]
		} else {
			a.id = "tsp-" + rand.Text()
		}
		a.key = t.caller.key(byID, a.id)
	}
	for _, id := range ids {
		if key := t.caller.key(byID, id); key != a.key {
			a.aliases = append(a.aliases, key)
		}
	}
	if v.Conversation != "" {
		a.aliases = append(a.aliases, t.caller.key(byConversation, v.Conversation))
	}
	return a, failure
}

// enter takes over what the session knows of the ask. The loaded set may be found by weak evidence, since it can only
// expose tools that the request itself holds; hidden rounds are put back by their own anchors.
func (a *ask) enter(s *session.Session, kind, key string, digests []string, continues bool, e *Engine) {
	best := s.Newest(func(entry *session.Ask) bool { return slices.Contains(entry.Calls, key) })
	if best == nil && kind != byDigest {
		best = s.Newest(func(*session.Ask) bool { return true })
	}
	if continues {
		digests = digests[:min(1, len(digests))]
	} else {
		digests = digests[min(1, len(digests)):] // what went before
	}
	for _, digest := range digests {
		if entry := s.Newest(func(entry *session.Ask) bool { return entry.Key == digest }); entry != nil {
			best = entry
			break
		}
	}
	if best == nil {
		return
	}
	if continues {
		a.policy = e.policies.decode(best.Policy)
		a.loaded, a.calls = best.Loaded, best.Calls
		a.prefetchDone = best.Prefetched
		if a.digest == "" {
			a.digest = best.Key
		}
		return
	}
	if p := e.policies.decode(best.Policy); p != nil && p.Conversation {
		a.loaded = best.Loaded
	}
}

// requestIDs returns the IDs that the client gives its request, the proxy's own header first.
func (t *turn) requestIDs() []string {
	var ids []string
	for _, header := range append([]string{HeaderRequestID}, t.policy.RequestIDHeader...) {
		id := strings.TrimSpace(t.request.Header.Get(header))
		if id != "" && len(id) <= maxIDLength && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// readPrefetch reads which prefetch tools the client has run before the first round.
func (t *turn) readPrefetch(a *ask) {
	told := t.request.Header.Values(HeaderPrefetched)
	for entry := range strings.SplitSeq(strings.Join(told, ","), ",") {
		name, status, _ := strings.Cut(strings.TrimSpace(entry), "=")
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if status = strings.TrimSpace(status); status == "" || strings.EqualFold(status, "ok") {
			a.prefetchDone = append(a.prefetchDone, name)
		}
	}
}

// prefetched returns the tools that are left out because they have been run.
func (a *ask) prefetched(p *Policy) []string {
	if len(p.Prefetch) == 0 || !p.PrefetchHide {
		return nil
	}
	return a.prefetchDone
}

// restoreLoaded puts together what is loaded when the request begins: what the session knows, and what the transcript
// shows to have been loaded.
func (t *turn) restoreLoaded() {
	for _, name := range t.ask.loaded {
		t.load(name)
	}
	from := t.history.start
	switch {
	case t.policy.KeepUsed:
		from = 0
	case !t.history.continues:
		return
	}
	calls := t.history.calls(from, len(t.view.Items)*8+8)
	for i := len(calls) - 1; i >= 0; i-- {
		t.load(t.plan.Decode(calls[i].Name))
	}
	t.trimLoaded()
}

// load makes a deferred tool visible; it reports whether it was not before.
func (t *turn) load(name string) bool {
	i, ok := t.plan.Function(name)
	if !ok || t.plan.Keep[i] || t.isLoaded(i) {
		return false
	}
	t.loaded = append(t.loaded, i)
	return true
}

// room returns how many loaded tools the policy's bound on exposed ones leaves room for, the virtual tool aside.
func (t *turn) room() int {
	if t.policy.MaxExposed <= 0 {
		return math.MaxInt
	}
	room := t.policy.MaxExposed - 1
	for _, keep := range t.plan.Keep {
		if keep {
			room--
		}
	}
	return max(room, 0)
}

// trimLoaded keeps the number of exposed tools within the policy's bound: the tools loaded first go first, unused ones
// before used ones, and none whose call waits for its result, or that the model was just told to be loaded.
func (t *turn) trimLoaded(told ...string) {
	room := t.room()
	if len(t.loaded) <= room {
		return
	}
	used, needed := map[string]bool{}, map[string]bool{}
	for _, name := range told {
		used[name], needed[name] = true, true
	}
	for _, c := range t.history.calls(0, len(t.view.Items)*8+8) {
		used[c.Name] = true
		if !t.history.answered(c.ID) {
			needed[c.Name] = true
		}
	}
	dropped := 0
	for _, spare := range []map[string]bool{used, needed} {
		for i := 0; i < len(t.loaded) && len(t.loaded) > room; {
			if spare[t.plan.Names[t.loaded[i]]] {
				i++
				continue
			}
			t.loaded = slices.Delete(t.loaded, i, i+1)
			dropped++
		}
	}
	if dropped > 0 {
		t.report.Unloaded += dropped
		t.engine.Log.Info("more tools are loaded than may be exposed: the oldest unused ones are deferred again",
			zap.Int("dropped", dropped), zap.Int("tool_search_max_exposed", t.policy.MaxExposed))
	}
}

// save stores the ask when there is something to remember: the answer handed out calls, so that the ask goes on, hidden
// rounds took place, or earlier ones must be found by the next ask's request, which can tell of this answer only. It comes
// before the end of the answer, so that the client's next request finds it.
func (t *turn) save(last openai.Round) {
	hidden, visible := last.Hidden()
	var splices []openai.Splice
	if len(t.rounds) > 0 || len(hidden) > 0 || t.policy.TextCalls {
		splices = t.dialect.Splices(t.view, t.rounds, t.results, last)
	}
	var outputs []string
	if len(splices)+len(t.ask.splices) > 0 {
		outputs = last.OutputAnchors(maxOutputs)
	}
	keepsLoaded := t.policy.Conversation && len(t.loaded) > 0
	if len(splices) == 0 && visible == 0 && !keepsLoaded && len(outputs) == 0 && !(len(t.rounds) > 0 && last.ResponseID != "") {
		return
	}
	entry := session.Ask{
		Key: t.ask.digest, Policy: t.policy.encoded, Calls: slices.Clone(t.ask.calls),
		Prefetched: t.ask.prefetchDone,
	}
	for _, c := range last.Calls {
		if !c.Class.Hidden() {
			t.load(c.Name) // at the bound, or where calls of tools that are not loaded pass
		}
	}
	for _, name := range t.ask.loaded {
		// A tool that this request lacks, or rules out, may be back in the next.
		if i, ok := t.plan.Function(name); !ok || t.isLoaded(i) {
			entry.Loaded = append(entry.Loaded, name)
		}
	}
	for _, i := range t.loaded {
		if name := t.plan.Names[i]; !slices.Contains(t.ask.loaded, name) {
			entry.Loaded = append(entry.Loaded, name)
		}
	}
	aliases := slices.Clone(t.ask.aliases)
	name := func(kind, value string) {
		key := t.caller.key(kind, value)
		aliases = append(aliases, key)
		entry.Calls = append(entry.Calls, key)
	}
	for _, c := range last.Calls {
		if !c.Class.Hidden() {
			anchor := openai.CallAnchor(c)
			name(byCall, anchor)
			aliases = append(aliases, t.caller.key(byCallOf, t.ask.id+"\x00"+anchor))
			if t.ask.digest != "" {
				aliases = append(aliases, t.caller.key(byCallOf, t.ask.digest+"\x00"+anchor))
			}
			if last.ResponseID != "" {
				name(byCall, c.ID)
			}
		}
	}
	for _, round := range append(slices.Clone(t.rounds), last) {
		if round.ResponseID != "" {
			name(byResponse, round.ResponseID)
		}
	}
	for _, anchor := range outputs {
		name(byOutput, anchor)
	}
	if t.ask.digest != "" {
		aliases = append(aliases, t.caller.key(byDigest, t.ask.digest))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.request.Context()), storeTime)
	defer cancel()
	_, err := t.engine.Sessions.Update(ctx, t.ask.key, aliases, func(s *session.Session) {
		s.ID = t.ask.id
		s.Asks = slices.DeleteFunc(s.Asks, func(a session.Ask) bool { return a.Key == entry.Key })
		s.Asks = append(s.Asks, entry)
		s.Splices = addSplices(s.Splices, splices)
	})
	if err != nil {
		t.report.StoreFailed = true
		t.engine.Log.Warn("the session could not be stored; the next request goes on with what the transcript tells",
			zap.Error(err))
	}
}

// addSplices adds what is new; a repeated request replaces what its first try left.
func addSplices(known []session.Splice, more []openai.Splice) []session.Splice {
	for _, s := range more {
		known = slices.DeleteFunc(known, func(k session.Splice) bool { return k.At == s.At && slices.Equal(k.Anchors, s.Anchors) })
		entry := session.Splice{Anchors: s.Anchors, At: s.At, Before: s.Before}
		for _, c := range s.Cut {
			entry.Cut = append(entry.Cut, session.Text(c))
		}
		for _, h := range s.Within {
			entry.Within = append(entry.Within, session.HiddenCall(h))
		}
		known = append(known, entry)
	}
	return known
}

func readSplices(stored []session.Splice) []openai.Splice {
	out := make([]openai.Splice, 0, len(stored))
	for _, s := range stored {
		entry := openai.Splice{Anchors: s.Anchors, At: s.At, Before: s.Before}
		for _, c := range s.Cut {
			entry.Cut = append(entry.Cut, openai.MemberText(c))
		}
		for _, h := range s.Within {
			entry.Within = append(entry.Within, openai.HiddenCall(h))
		}
		out = append(out, entry)
	}
	return out
}

// remembers reports whether some session is kept, whose ask may still be under way.
func (e *Engine) remembers(ctx context.Context) bool { return e.Sessions.Stats(ctx).Sessions != 0 }

// Active reports whether requests of the dialects must be looked at: tool search is on, or asks that began while it was on
// may still be under way.
func (e *Engine) Active(r *http.Request) bool {
	p := e.Policy()
	return p.Enabled || p.Audit || p.AllowHeader && r.Header.Get(HeaderSwitch) == "on" || e.remembers(r.Context())
}

// policies decodes frozen policies; there are few different ones.
type policies struct{ known sync.Map }

func (p *policies) decode(encoded string) *Policy {
	if encoded == "" {
		return nil
	}
	if known, ok := p.known.Load(encoded); ok {
		return known.(*Policy)
	}
	decoded := &Policy{encoded: encoded}
	if json.Unmarshal([]byte(encoded), &decoded.Policy) != nil {
		return nil // of another version of the proxy: the policy in force takes its place
	}
	p.known.Store(encoded, decoded)
	return decoded
}
