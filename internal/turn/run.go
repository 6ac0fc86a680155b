package turn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"tool-search-proxy/internal/idle"
	"tool-search-proxy/internal/openai"
)

// Errors of a round that did not come to its end.
var (
	errCut   = errors.New("the upstream ended the answer before it was complete")
	errLarge = errors.New("the upstream's answer is larger than the limit")
)

// endGrace is how long a stream whose finish reason has come may stay open before that counts as its end.
const endGrace = time.Second

// run takes the request through its rounds.
func (t *turn) run() {
	t.client.w.Header().Set(HeaderRequestID, t.ask.id)
	t.report.SessionID, t.report.NewAsk = t.ask.id, !t.history.continues
	t.report.ClientTools, t.report.Directory = t.catalog.tools.Raw, t.plan.text
	t.answer = t.dialect.NewAnswer(t.view, t.answerOptions())
	defer t.saveUnanswered()
	for {
		final := t.bounded()
		t.report.BoundReached = t.report.BoundReached || final
		if t.round(final) {
			return
		}
	}
}

func (t *turn) answerOptions() openai.AnswerOptions {
	o := openai.AnswerOptions{
		BilledUsage: t.policy.BilledUsage, UsageDetails: t.policy.UsageDetails, TextCalls: t.policy.TextCalls && t.view.Choice.Form != openai.ChoiceNone,
		KeepResponseID: t.policy.KeepResponseID,
		Known: func(name string) bool {
			_, ok := t.plan.Function(name)
			return ok || name == t.policy.VirtualName
		},
		Unread: func(err error, length int) {
			t.engine.Log.Info("a text looks like a tool call and is passed on as text", zap.Error(err),
				zap.Int("length", length))
		},
	}
	if t.plan.Encodes() {
		o.Decode = t.plan.Decode
	}
	return o
}

// bounded reports whether the next round is the last: it is sent with all tools and without the virtual one, so that the
// agent can still finish.
func (t *turn) bounded() bool {
	if len(t.rounds) == 0 {
		return false
	}
	return len(t.rounds) >= max(t.policy.MaxRounds, 1) || t.repeats >= 2 ||
		t.policy.TimeLimit > 0 && time.Since(t.report.Start) >= t.policy.TimeLimit
}

// round runs one round; it reports whether the request has been answered.
func (t *turn) round(final bool) (done bool) {
	ctx, cancel := context.WithCancel(t.request.Context())
	defer cancel()
	t.report.Rounds = append(t.report.Rounds, RoundReport{Start: time.Now()})
	note := &t.report.Rounds[len(t.report.Rounds)-1]
	defer func() { note.Duration = time.Since(note.Start) }()
	if len(t.rounds) > 0 && t.view.Stream {
		t.client.beatOn()
	}
	resp, err := t.send(ctx, final, note)
	for err == nil && t.again(ctx, resp) {
		_ = resp.Body.Close()
		resp, err = t.send(ctx, final, note)
	}
	streamed := err == nil && resp.StatusCode >= 200 && resp.StatusCode <= 299 && isEventStream(resp.Header)
	if !streamed {
		t.client.beatOff()
	}
	if err != nil {
		t.fail(http.StatusBadGateway, fmt.Errorf("the upstream did not answer: %w", err))
		return true
	}
	defer resp.Body.Close()
	note.Status = resp.StatusCode
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		t.refused(resp)
		return true
	}
	if len(t.rounds) == 0 {
		t.engine.latch.accepted(t.view.Model)
	}
	t.answer.Begin(names{t, final})
	var round openai.Round
	switch {
	case streamed:
		round, err = t.readStream(cancel, resp, note)
		t.client.beatOff()
	case t.client.isOpen() || !isJSON(resp.Header):
		// Not an answer in the dialect: pages of gateways, mostly.
		t.unexpected(resp)
		return true
	default:
		round, err = t.readWhole(resp)
	}
	note.Tokens = openai.ReadTokens(round.Usage)
	if err != nil {
		t.fail(http.StatusBadGateway, err)
		return true
	}
	return t.decide(resp, round, final, streamed, note)
}

// decide looks at a round that has been read: the next one follows, or the answer is complete.
func (t *turn) decide(resp *http.Response, round openai.Round, final, streamed bool, note *RoundReport) (done bool) {
	hidden, visible := round.Hidden()
	switch {
	case round.Failure != nil:
		t.failInBand(resp, *round.Failure, streamed)
		return true
	case !round.Complete && streamed:
		t.fail(http.StatusBadGateway, errCut)
		return true
	}
	t.noteUnanswered(round, hidden)
	endsHere := final || round.Stopped || !round.Complete || t.view.Choice.Form == openai.ChoiceNone || t.view.Compacts
	if len(hidden) == 0 || endsHere {
		t.notify(round.Calls)
		t.deliver(resp, round, streamed)
		return true
	}
	results := t.answerHidden(hidden)
	t.notify(round.Calls)
	if visible > 0 {
		t.unanswered = nil // their results come with the client's own
		t.results = append(t.results, results)
		t.deliver(resp, round, streamed)
		return true
	}
	note.Hidden = true
	t.noteRepeats(hidden)
	t.rounds = append(t.rounds, round)
	t.results = append(t.results, results)
	if state := resp.Header.Get("X-Codex-Turn-State"); state != "" {
		t.state = state
	}
	return false
}

// send composes the next request and sends it.
func (t *turn) send(ctx context.Context, final bool, note *RoundReport) (*http.Response, error) {
	p := openai.Projection{
		Splices: t.ask.splices, Rounds: t.rounds, Results: t.results, Mode: t.plan.mode, Replay: t.replay,
		Open: t.open, Omit: t.omit, Unname: t.unname,
	}
	if t.defers() || t.plan.Filtered() || t.plan.Encodes() {
		p.Tools = t.plan.render(t.loaded, final)
		note.Tools = len(p.Tools)
	}
	if !final {
		p.Directory = t.plan.quoted
	}
	if len(t.rounds) > 0 && t.view.Choice.Form == openai.ChoiceFunction && t.view.Choice.Function == t.policy.VirtualName {
		p.Mode = "auto"
	}
	if t.plan.Encodes() {
		p.Encode = t.plan.Encode
	}
	body := t.dialect.Compose(t.view, p)
	note.Sent = len(body)
	return t.engine.Upstream.Send(ctx, t.request, body, func(h http.Header) {
		if len(t.rounds) == 0 {
			return
		}
		if key := h.Get("Idempotency-Key"); key != "" {
			h.Set("Idempotency-Key", key+"-"+strconv.Itoa(len(t.rounds)+1))
		}
		if t.state != "" {
			h.Set("X-Codex-Turn-State", t.state)
		}
	})
}

// refused handles a status that is no success: the upstream's own words go to the client, unless it may have refused the
// projection itself.
func (t *turn) refused(resp *http.Response) {
	if t.client.isOpen() {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		f := openai.FailureOf(resp.StatusCode, body)
		if after := resp.Header.Get("Retry-After"); after != "" && resp.StatusCode == http.StatusTooManyRequests {
			f.Message += " Please try again in " + after + "s."
		}
		t.report.Failed = "upstream_status"
		t.client.end(t.answer.Fail(nil, f))
		return
	}
	refusable := []int{http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity}
	if len(t.rounds) > 0 || !t.policy.FailOpen || !slices.Contains(refusable, resp.StatusCode) || t.busy {
		t.client.relay(resp, t.debugHeaders)
		return
	}
	_ = resp.Body.Close()
	t.report.FailOpen = true
	t.client.w.Header().Del(HeaderRequestID)
	t.passthrough(reasonRefused)
	if t.client.status >= 200 && t.client.status < 300 {
		// The upstream takes what the client wrote: the refusal was the projection's.
		held := t.engine.latch.refused(t.view.Model)
		t.engine.Log.Warn("the upstream refused the projected request and took the client's own",
			zap.Int("status", resp.StatusCode), zap.String("model", t.view.Model), zap.Bool("latched", held))
	}
}

// unexpected passes on an answer that is not of the dialect.
func (t *turn) unexpected(resp *http.Response) {
	if t.client.isOpen() {
		t.fail(http.StatusBadGateway, fmt.Errorf("the upstream answered with content type %q",
			resp.Header.Get("Content-Type")))
		return
	}
	t.client.relay(resp, t.debugHeaders)
}

// fail tells the client that the answer cannot be completed: by status while nothing is out, in-band afterwards.
func (t *turn) fail(status int, err error) {
	t.report.Failed = "upstream"
	if t.request.Context().Err() != nil {
		return // nobody is there to be told
	}
	var timeout interface{ Timeout() bool }
	if errors.Is(err, idle.ErrSilent) || errors.As(err, &timeout) && timeout.Timeout() {
		status = http.StatusGatewayTimeout
	}
	t.engine.Log.Warn("a round failed", zap.Error(err), zap.Int("round", len(t.rounds)+1))
	if !t.client.isOpen() {
		t.client.refuse(status, err.Error())
		return
	}
	t.client.end(t.answer.Fail(nil, openai.Failure{
		Status: status, Message: err.Error(), Type: "server_error", Code: "server_error",
	}))
}

// failInBand passes on an error that the upstream reported within its answer.
func (t *turn) failInBand(resp *http.Response, f openai.Failure, streamed bool) {
	t.report.Failed = "upstream_in_band"
	if !t.client.isOpen() {
		t.client.head(resp.Header, t.debugHeaders)
		if !streamed {
			t.client.whole(resp.StatusCode, t.answer.Body())
			return
		}
		t.client.openStream(resp.StatusCode)
	}
	t.client.end(t.answer.Fail(nil, f))
}

// readStream feeds a streamed round to the answer and gives the client what it may see, as it comes.
func (t *turn) readStream(cancel context.CancelFunc, resp *http.Response, note *RoundReport) (openai.Round, error) {
	reader := openai.NewEventReader(resp.Body, int(t.engine.MaxEventBytes))
	next := func() (openai.Event, error) {
		if t.answer.Progress() == openai.Ending {
			defer time.AfterFunc(endGrace, cancel).Stop()
		}
		return reader.Next()
	}
	var out []byte
	open := false
	for {
		ev, err := next()
		if err != nil {
			if t.answer.Progress() != openai.Running || err == io.EOF {
				break
			}
			return t.answer.End(), readError(err)
		}
		if note.FirstEvent == 0 {
			note.FirstEvent = time.Since(note.Start)
		}
		if ev.HasID {
			t.client.noteID()
		}
		out = t.answer.Event(out, ev)
		progress := t.answer.Progress()
		if progress == openai.Over {
			break
		}
		if reader.Buffered() {
			continue
		}
		if len(out) > 0 {
			if !open {
				t.client.head(resp.Header, t.debugHeaders)
				open = true
			}
			if err := t.client.events(out); err != nil {
				return t.answer.End(), fmt.Errorf("the client is gone: %w", err)
			}
			out = out[:0]
		}
	}
	if len(out) > 0 {
		t.client.head(resp.Header, t.debugHeaders)
		_ = t.client.events(out)
	}
	return t.answer.End(), nil
}

// readError says what broke a round.
func readError(err error) error {
	if errors.Is(err, idle.ErrSilent) || errors.Is(err, openai.ErrEventTooLong) {
		return err
	}
	return fmt.Errorf("%w: %w", errCut, err)
}

// readWhole reads an answer that is not streamed.
func (t *turn) readWhole(resp *http.Response) (openai.Round, error) {
	limit := t.engine.MaxAnswerBytes
	size := min(max(resp.ContentLength, 0), limit, 1<<20)
	body := make([]byte, 0, size+512)
	for {
		if len(body) == cap(body) {
			body = slices.Grow(body, len(body)+512)
		}
		n, err := resp.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if int64(len(body)) > limit {
			return openai.Round{}, errLarge
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return openai.Round{}, readError(err)
		}
	}
	t.answer.Whole(body)
	return t.answer.End(), nil
}

// deliver completes the client's answer. What must be remembered is stored before the client can act on it.
func (t *turn) deliver(resp *http.Response, round openai.Round, streamed bool) {
	t.save(round)
	t.report.Loaded = nil
	for _, i := range t.loaded {
		t.report.Loaded = append(t.report.Loaded, t.plan.Names[i])
	}
	for _, c := range round.Calls {
		if !c.Class.Hidden() {
			t.report.Called = append(t.report.Called, c.Name)
		}
	}
	if streamed {
		t.client.head(resp.Header, t.debugHeaders)
		t.client.openStream(resp.StatusCode)
		t.client.end(t.answer.Finish(nil))
		return
	}
	t.client.head(resp.Header, t.debugHeaders)
	t.client.whole(resp.StatusCode, t.answer.Body())
}

// debugHeaders tells what the projection did, if the operator allows it.
func (t *turn) debugHeaders(h http.Header) {
	if !t.policy.DebugHeaders {
		return
	}
	set := func(name string, n int) { h.Set("X-Tool-Search-"+name, strconv.Itoa(n)) }
	set("Deferred", len(t.plan.Deferred))
	set("Loaded", len(t.loaded))
	set("Hidden-Rounds", len(t.rounds))
	set("Bytes-Before", t.report.BytesReceived)
	set("Bytes-After", t.report.Rounds[len(t.report.Rounds)-1].Sent)
}

// notify tells of the round's calls: equal ones are told once, with their count.
func (t *turn) notify(calls []openai.Call) {
	silent := t.request.Header.Get(HeaderSilent) == "1"
	var notices []Notice
	for _, c := range calls {
		n := Notice{Kind: NoticeTarget, Tool: t.called(c.Name), Count: 1, Silent: silent}
		switch {
		case c.Class == openai.Virtual:
			n.Kind = NoticeSearch
		case c.Class == openai.Unexposed:
			continue
		}
		if i := slices.IndexFunc(notices, func(o Notice) bool { return o.Kind == n.Kind && o.Tool == n.Tool }); i >= 0 {
			notices[i].Count++
			continue
		}
		notices = append(notices, n)
	}
	for _, n := range notices {
		if comment := t.engine.Notify(n); comment != "" && t.view.Stream {
			t.client.say(comment)
		}
	}
}

func isEventStream(h http.Header) bool { return mediaType(h) == "text/event-stream" }

// isJSON is generous: some servers leave the content type out, or call JSON text.
func isJSON(h http.Header) bool { return mediaType(h) != "text/html" }

func mediaType(h http.Header) string {
	kind, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(kind))
}
