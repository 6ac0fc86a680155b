// Package session keeps what the proxy must remember between the HTTP requests of one conversation: which tools
// are loaded, the policy in force, and the hidden rounds with the place where they belong.
//
// The package knows nothing of tools, dialects or HTTP. Names, policies and spliced items are opaque to it, and every
// key is a digest that the caller has bound to the credential of the request, so that no session is ever found by
// another tenant.
package session

import (
	"context"
	"errors"
)

// Session is the state of one conversation. A value returned by a Store is shared and must not be modified;
// Store.Update hands out a private copy.
type Session struct {
	// ID is the session's request ID, as the caller sent it or the proxy made it.
	ID string `json:"id"`
	// Asks holds the newest asks, oldest first, at most MaxAsks. Branches and parallel asks of one conversation stand
	// beside each other.
	Asks []Ask `json:"asks,omitempty"`
	// Splices are the hidden rounds, in the order in which they took place.
	Splices []Splice `json:"splices,omitempty"`
}

// MaxAsks bounds the asks that one session remembers; the oldest ones are forgotten first.
const MaxAsks = 8

// Ask is one user request with all its tool rounds.
type Ask struct {
	// Key is the digest of the user messages up to the one that began the ask.
	Key string `json:"key"`
	// Loaded are the canonical names of the loaded tools, in the order in which they were loaded.
	Loaded []string `json:"loaded,omitempty"`
	// Policy is the encoded policy that was in force when the ask began. Sessions share the string's bytes.
	Policy string `json:"policy,omitempty"`
	// Calls are the aliases of the tool calls and responses that were handed to the client in this ask.
	Calls []string `json:"calls,omitempty"`
	// Prefetched are the tools that the client reported as run, with success, before the first round.
	Prefetched []string `json:"prefetched,omitempty"`
}

// Splice is a run of hidden items and the place where it belongs in the client's own history. The dialect that made it
// reads it again; the fields are raw JSON, comma-separated where several items stand in one field.
type Splice struct {
	// Anchors name the visible items that the run stands beside: the splice applies to a request that holds one of them.
	Anchors []string `json:"anchors"`
	// At is the place of the run's answer in the history as it was then.
	At int `json:"at,omitempty"`
	// Before are whole hidden items that stand before the anchor.
	Before []byte `json:"before,omitempty"`
	// Cut are the texts of hidden rounds that the client saw joined to the anchor's own, by member name.
	Cut []Text `json:"cut,omitempty"`
	// Within are hidden calls of the anchor's own turn (a mixed turn).
	Within []HiddenCall `json:"within,omitempty"`
}

// Text is the text of one member of a message, such as content or reasoning_content.
type Text struct {
	Member string `json:"member"`
	Text   string `json:"text"`
}

// HiddenCall is a call of a mixed turn that the proxy answered itself.
type HiddenCall struct {
	// Position is the index of the call among all calls of its turn, hidden ones included.
	Position int `json:"position"`
	// Call is the raw JSON of the call, Result of the item that answers it.
	Call   []byte `json:"call"`
	Result []byte `json:"result"`
}

// Store keeps sessions. Keys (the session's own and its aliases) are opaque digests. Implementations are safe for
// concurrent use.
type Store interface {
	// Find returns the session of the first key that leads to one, whether as its own key or as an alias, its own key,
	// and the index of the given key; ErrNotFound if none does. Finding a session keeps it alive.
	Find(ctx context.Context, keys ...string) (s *Session, key string, index int, err error)
	// Update applies change to a copy of the session of this key, or to a new empty one, and stores it under the key
	// and the aliases; a lost race runs change again on the newer value. It returns what was stored.
	Update(ctx context.Context, key string, aliases []string, change func(*Session)) (*Session, error)
	// Stats tells how full the store is.
	Stats(ctx context.Context) Stats
	// Ping says whether the store can be reached.
	Ping(ctx context.Context) error
	// Close releases the store's resources and goroutines.
	Close() error
}

// Stats describes a store.
type Stats struct {
	Sessions  int64 // sessions held; -1 if unknown
	Bytes     int64 // bytes they take, estimated; -1 if unknown
	Evictions int64 // sessions given up for room since the start
	Expired   int64 // sessions given up for age since the start
}

// ErrNotFound says that no key leads to a session.
var ErrNotFound = errors.New("session: not found")
