package turn

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"time"

	"go.uber.org/zap"

	"tool-search-proxy/internal/openai"
	"tool-search-proxy/internal/session"
)

// Bounds of what one request may send again because of state at the upstream.
const (
	mostLockedWaits = 3
	mostOpenCalls   = 8
	mostUnpaired    = 16
	lockedWait      = 200 * time.Millisecond
)

// notCarriedOut answers a call that was left open when its round broke off.
const notCarriedOut = "This call was not carried out. Call again if the result is still needed."

// again reports whether a refused round is to be sent once more, because state at the upstream is not what the request
// took it for: a conversation that the round before still locks, one that does not hold the round before, or a call that
// nobody has answered since its round broke off; or because the history holds reasoning whose hidden call is forgotten, or
// what came with it. A response that is not sent again keeps its body.
func (t *turn) again(ctx context.Context, resp *http.Response) bool {
	if resp.StatusCode < 400 || resp.StatusCode > 499 {
		return false
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), resp.Body), resp.Body}
	if err != nil {
		return false
	}
	hidden := len(t.rounds) > 0 && t.view.Conversation != ""
	locked := openai.FailureOf(resp.StatusCode, body).Code == "conversation_locked"
	stateful := t.view.Conversation != "" || t.view.PreviousResponse != ""
	open := openai.OpenCall(body)
	unpaired, reasoning := openai.UnpairedItem(body)
	unpairable := unpaired != "" && len(t.omit)+len(t.unname) < mostUnpaired && t.view.HasItem(unpaired)
	switch {
	case unpairable && reasoning && !slices.Contains(t.omit, unpaired):
		t.omit = append(t.omit, unpaired)
	case unpairable && !reasoning && !slices.Contains(t.unname, unpaired):
		t.unname = append(t.unname, unpaired)
	case locked && (!hidden || t.locked >= mostLockedWaits):
		t.busy = true
		return false
	case locked:
		t.locked++
		select {
		case <-time.After(lockedWait << t.locked):
		case <-ctx.Done():
			return false
		}
	case hidden && !t.replay && openai.LacksCall(body, t.rounds[len(t.rounds)-1]):
		t.replay = true
	case stateful && open != "" && len(t.open) < mostOpenCalls && t.leftOpen(open):
		t.open = append(t.open, openai.Result{CallID: open, Output: notCarriedOut})
	default:
		return false
	}
	t.engine.Log.Info("a round is sent again, since state at the upstream is not what it was taken for",
		zap.Int("status", resp.StatusCode), zap.Bool("replay", t.replay), zap.Int("open_calls", len(t.open)), zap.Int("omitted", len(t.omit)), zap.Int("unnamed", len(t.unname)))
	return true
}

// leftOpen reports whether a call is one of the proxy's own: its round broke off, or it stood beside calls that the client
// answers now, and its session is forgotten. A call that the client has left open is the client's matter.
func (t *turn) leftOpen(id string) bool {
	if slices.ContainsFunc(t.open, func(r openai.Result) bool { return r.CallID == id }) {
		return false // it has been answered, and that did not help
	}
	if !t.ask.known && t.history.continues {
		return true
	}
	ctx, cancel := context.WithTimeout(t.request.Context(), storeTime)
	defer cancel()
	_, _, _, err := t.engine.Sessions.Find(ctx, t.caller.key(byOpenCall, id))
	return err == nil
}

// noteUnanswered notes the hidden calls of a round that has just ended: until the next round has ended well, they are open
// in the state that the upstream keeps.
func (t *turn) noteUnanswered(round openai.Round, hidden []openai.Call) {
	t.unanswered = t.unanswered[:0]
	if round.ResponseID == "" {
		return
	}
	for _, c := range hidden {
		t.unanswered = append(t.unanswered, c.ID)
	}
}

// saveUnanswered remembers the calls that the request leaves open at the upstream, if a later request can come upon them.
func (t *turn) saveUnanswered() {
	if len(t.unanswered) == 0 || t.view.Conversation == "" && !t.client.isOpen() {
		return
	}
	aliases := slices.Clone(t.ask.aliases)
	for _, id := range t.unanswered {
		aliases = append(aliases, t.caller.key(byOpenCall, id))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.request.Context()), storeTime)
	defer cancel()
	_, err := t.engine.Sessions.Update(ctx, t.ask.key, aliases, func(s *session.Session) { s.ID = t.ask.id })
	if err != nil {
		t.report.StoreFailed = true
		t.engine.Log.Warn("the calls that are left open at the upstream could not be remembered", zap.Error(err))
	}
}
