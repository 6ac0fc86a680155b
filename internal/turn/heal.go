package turn

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"tool-search-proxy/internal/openai"
)

// A conversation at the upstream is free again a moment after the answer before has ended.
const (
	mostLockedWaits = 3
	lockedWait      = 200 * time.Millisecond
)

// again reports whether a refused round is to be sent once more: a conversation is still locked by the round before, or does
// not hold it, and it is then replayed whole. A response that is not sent again keeps its body.
func (t *turn) again(ctx context.Context, resp *http.Response) bool {
	if len(t.rounds) == 0 || t.view.Conversation == "" || resp.StatusCode < 400 || resp.StatusCode > 499 {
		return false
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	switch {
	case err != nil:
	case t.locked < mostLockedWaits && openai.FailureOf(resp.StatusCode, body).Code == "conversation_locked":
		t.locked++
		select {
		case <-time.After(lockedWait << t.locked):
			return true
		case <-ctx.Done():
		}
	case !t.replay && openai.LacksCall(body, t.rounds[len(t.rounds)-1]):
		t.replay = true
		return true
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), resp.Body), resp.Body}
	return false
}
