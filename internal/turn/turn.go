// Package turn is the engine: it takes one request of a client through as many rounds as the model needs, answers the
// virtual tool's calls itself, and gives the client one answer in which none of this shows.
//
// The way of a request: find out where things are (openai), sort the tools (projection), find the session (session), write
// the upstream's request, read the round, decide whose the calls are, and either repeat or deliver. Every rule that holds
// for both dialects is here; what bytes look like is in openai.
package turn

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"tool-search-proxy/internal/openai"
	"tool-search-proxy/internal/projection"
	"tool-search-proxy/internal/session"
)

// Upstream is the one API behind the proxy.
type Upstream interface {
	// Send posts a body to the path that the client asked for, with the client's headers made fit for it. edit, if not
	// nil, changes the headers last.
	Send(ctx context.Context, in *http.Request, body []byte, edit func(http.Header)) (*http.Response, error)
}

// Policy is a policy in force, with the encoded form in which asks freeze it.
type Policy struct {
	projection.Policy
	encoded string
}

// NewPolicy makes a policy ready for use.
func NewPolicy(p projection.Policy) *Policy {
	encoded, err := json.Marshal(p)
	if err != nil {
		panic(err) // a struct of strings, numbers and booleans
	}
	return &Policy{p, string(encoded)}
}

// Options are what an engine needs.
type Options struct {
	Upstream Upstream
	// Passthrough forwards a request as it is.
	Passthrough http.Handler
	Sessions    session.Store
	// Secret keys the digests under which sessions are kept.
	Secret []byte
	// Policy returns the policy in force now.
	Policy func() *Policy
	// Observe is told of every request when it is over.
	Observe func(*Report)
	// Notify is told of calls as they come, for call notices; it returns a comment for the running stream, or "".
	Notify func(Notice) string
	Log    *zap.Logger

	MaxAnswerBytes int64         // of a whole answer
	MaxEventBytes  int64         // of one event of a stream
	Heartbeat      time.Duration // 0 is off
	LatchRefusals  int
	LatchTime      time.Duration
}

// Engine serves the requests of both dialects.
type Engine struct {
	Options
	secret   atomic.Pointer[[sha256.Size]byte] // in fixed length
	catalogs catalogs
	policies policies
	latch    latch
	missing  sync.Map // always-loaded names that were warned of
}

// warnMissing says once that an always-loaded name is no tool of a request: it may be misspelt.
func (e *Engine) warnMissing(name string) {
	if _, warned := e.missing.LoadOrStore(name, true); !warned {
		e.Log.Warn("a tool of tool_search_always_loaded is not among the tools of a request; this is said once", zap.String("name", name))
	}
}

// New makes an engine.
func New(o Options) *Engine {
	if o.Observe == nil {
		o.Observe = func(*Report) {}
	}
	if o.Notify == nil {
		o.Notify = func(Notice) string { return "" }
	}
	e := &Engine{Options: o, catalogs: newCatalogs(), latch: newLatch(o.LatchRefusals, o.LatchTime)}
	e.UseSecret(o.Secret)
	return e
}

// UseSecret makes another secret key the digests from now on. Sessions kept under the old one are not found any more.
func (e *Engine) UseSecret(secret []byte) {
	sum := sha256.Sum256(secret)
	e.secret.Store(&sum)
}

// Body is the body of a request.
type Body struct {
	Raw     []byte // as it was received
	JSON    []byte // decoded
	Unclear string // why it could not be decoded; it is passed on as it is then
	// Release, if not nil, takes the bytes back. It is called once nobody looks at them any more; bytes that were passed on as
	// they are may be read until later, and are not given back.
	Release func()
}

func (b *Body) release() {
	if b.Release != nil {
		b.Release()
	}
	*b = Body{}
}

// Headers of the proxy's own; none is forwarded upstream.
const (
	HeaderSwitch     = "X-Tool-Search"            // off, on
	HeaderRequestID  = "X-Tool-Search-Request-Id" // the session's ID
	HeaderPrefetched = "X-Tool-Search-Prefetched" // name, name=failed
	HeaderSilent     = "X-Tool-Search-Silent"     // 1: no call notices
)

// Serve answers one POST of a dialect.
func (e *Engine) Serve(w http.ResponseWriter, r *http.Request, d openai.Dialect, b Body) {
	report := &Report{
		Dialect: d.Name(), Start: time.Now(), Status: http.StatusOK, TraceParent: r.Header.Get("Traceparent"),
	}
	t := &turn{engine: e, dialect: d, request: r, body: b, report: report, policy: e.Policy()}
	t.client = newClient(w, e.Heartbeat)
	defer func() {
		t.client.beatOff()
		report.End = time.Now()
		report.Status = t.client.status
		if !t.client.finished { // a client may hang up as soon as it has everything
			switch {
			case errors.Is(context.Cause(r.Context()), http.ErrServerClosed):
				report.Failed = "shutdown"
			case r.Context().Err() != nil:
				report.ClientGone = true
			case t.passed:
				report.Failed = "upstream" // its answer broke off
			}
		}
		e.Observe(report)
		if !t.passed {
			t.body.release()
		}
	}()
	reason, err := t.prepare()
	switch {
	case err != nil:
		report.Reason = "refused"
		t.client.refuse(http.StatusBadRequest, err.Error())
	case reason == reasonAudit:
		t.audit()
	case reason != "":
		t.passthrough(reason)
	default:
		t.run()
	}
}

// Reasons for passing a request through that do not come from its body alone.
const (
	reasonDisabled   openai.Reason = "disabled"
	reasonHeader     openai.Reason = "header"
	reasonModel      openai.Reason = "bypass_model"
	reasonUnclear    openai.Reason = "unknown_encoding"
	reasonUnparsable openai.Reason = "unparsable"
	reasonNothing    openai.Reason = "nothing_deferred"
	reasonCollision  openai.Reason = "name_collision"
	reasonLatched    openai.Reason = "latched"
	reasonAudit      openai.Reason = "audit"
	reasonRefused    openai.Reason = "fail_open"
)

// maxModelLength bounds the model's name in reports, in bytes.
const maxModelLength = 200

// turn is one client request on its way.
type turn struct {
	engine  *Engine
	dialect openai.Dialect
	request *http.Request
	body    Body
	client  *client
	report  *Report
	passed  bool // the body was passed on as it is

	policy  *Policy
	view    *openai.View
	caller  caller
	history history
	ask     *ask
	catalog *catalog
	plan    *plan

	loaded  []int // functions, in the order in which they were loaded
	answer  openai.Answer
	rounds  []openai.Round    // hidden rounds of this request
	results [][]openai.Result // of their hidden calls
	asked   map[string]bool   // searches of this request
	repeats int               // hidden rounds that asked nothing new
	state   string            // x-codex-turn-state of an earlier round
	replay  bool              // the upstream's conversation lacks the hidden rounds
	locked  int               // waits for the upstream's conversation
	busy    bool              // another request holds the upstream's conversation
	open    []openai.Result   // of calls that state at the upstream holds open
	omit    []string          // ids of reasoning that the upstream does not take alone
	unname  []string          // ids of items that it does not take without their reasoning

	unanswered []string // ids of hidden calls that the upstream's state holds open now
}

// prepare reads the request and plans its projection. It returns the reason if the request is to pass through, and an
// error if it is to be refused.
func (t *turn) prepare() (openai.Reason, error) {
	mode := t.request.Header.Get(HeaderSwitch)
	switch {
	case mode == "off":
		return reasonHeader, nil
	case t.body.Unclear != "":
		return reasonUnclear, nil
	}
	forced := mode == "on" && t.policy.AllowHeader
	if !t.policy.Enabled && !t.policy.Audit && !forced && !t.engine.remembers(t.request.Context()) {
		return reasonDisabled, nil
	}
	t.caller = t.engine.caller(t.request.Header)
	view, err := t.readView()
	switch {
	case errors.Is(err, openai.ErrTooDeep):
		return "", err
	case err != nil:
		return reasonUnparsable, nil
	}
	t.view = view
	if view.Passthrough != "" {
		return view.Passthrough, nil
	}
	t.report.Model = view.Model[:min(len(view.Model), maxModelLength)]
	t.report.BytesReceived = len(t.body.JSON)
	t.report.Stream = view.Stream
	t.history = readHistory(view)
	if t.ask, err = t.findAsk(); err != nil {
		t.engine.Log.Warn("session store unavailable, going on with what the transcript tells", zap.Error(err))
		t.report.StoreFailed = true
	}
	if t.ask.policy != nil {
		t.policy = t.ask.policy
	} else if !t.policy.Enabled && !t.policy.Audit && !forced {
		return reasonDisabled, nil
	}
	switch {
	case projection.NewPatterns(t.policy.BypassModels).Match(view.Model):
		return reasonModel, nil
	case t.engine.latch.holds(view.Model):
		return reasonLatched, nil
	}
	if t.catalog == nil {
		t.catalog = t.engine.catalogs.add(t.caller.credential, view.Tools)
	}
	t.plan = t.catalog.plan(t.policy, &view.Choice, t.ask.prefetched(t.policy), t.dialect)
	t.report.Tools, t.report.Deferred = len(t.plan.Names), len(t.plan.Deferred)
	for _, name := range t.plan.Missing {
		t.engine.warnMissing(name)
	}
	switch {
	case t.plan.ForcedHidden:
		return "", fmt.Errorf("tool_choice forces %q, which is among the tools that this proxy hides; allowed is any other tool of the request",
			t.view.Choice.Function)
	case t.plan.Collision:
		t.engine.Log.Error("a tool of the request bears the name of the virtual tool: sending the full tools",
			zap.String("name", t.policy.VirtualName))
		return reasonCollision, nil
	case len(t.plan.Deferred) < max(t.policy.MinDeferred, 1) && !t.plan.Filtered() && len(t.ask.splices) == 0 &&
		!t.plan.Encodes():
		return reasonNothing, nil
	case t.policy.Audit:
		return reasonAudit, nil
	}
	t.restoreLoaded()
	t.letGo()
	return "", nil
}

// readView finds out where things stand in the client's body.
func (t *turn) readView() (*openai.View, error) {
	return t.dialect.View(t.body.JSON, func(rest []byte) *openai.Tools {
		t.catalog = t.engine.catalogs.find(t.caller.credential, rest)
		if t.catalog == nil {
			return nil
		}
		return t.catalog.tools
	})
}

// letGo gives up the client's body before the request waits for the model, if it is large by its tools: they are remembered
// anyway. A body that came compressed is kept as it came.
func (t *turn) letGo() {
	const worthIt = 8 << 10
	tools := t.catalog.tools
	asReceived := &t.body.Raw[0] == &t.body.JSON[0]
	if !t.catalog.own || !asReceived || len(tools.Raw) < max(worthIt, len(t.body.JSON)/2) {
		return
	}
	t.view.Slim(tools)
	t.body.release()
}

// received returns the body as it was received.
func (t *turn) received() []byte {
	if t.body.Raw == nil && t.view != nil {
		return t.view.Original()
	}
	return t.body.Raw
}

// restored returns the client's body with the hidden rounds of its history, nil if it does without: the request is not
// projected, but its conversation may have been.
func (t *turn) restored() []byte {
	switch {
	case t.ask != nil:
	case t.body.Unclear != "" || !t.engine.remembers(t.request.Context()):
		return nil
	default:
		t.caller = t.engine.caller(t.request.Header)
		if t.view == nil {
			view, err := t.readView()
			if err != nil {
				return nil
			}
			t.view = view
		}
		t.history = readHistory(t.view)
		var err error
		if t.ask, err = t.findAsk(); err != nil {
			t.report.StoreFailed = true
		}
	}
	if len(t.ask.splices) == 0 {
		return nil
	}
	return t.dialect.Restore(t.view, openai.Projection{Splices: t.ask.splices, Open: t.open, Omit: t.omit, Unname: t.unname})
}

// passthrough sends the request as the client wrote it.
func (t *turn) passthrough(reason openai.Reason) {
	t.report.Reason, t.passed = reason, true
	if t.policy.DebugHeaders {
		t.client.w.Header().Set("X-Tool-Search-Passthrough", string(reason))
	}
	in := t.request.Clone(t.request.Context())
	body := t.restored()
	if body != nil {
		in.Header.Del("Content-Encoding") // the body is decoded
	} else {
		body = t.received()
	}
	in.Body = newBody(body)
	in.GetBody = func() (io.ReadCloser, error) { return newBody(body), nil } // for a kept connection that was just closed
	in.ContentLength = int64(len(body))
	in.TransferEncoding = nil
	t.client.handOver(func(w http.ResponseWriter) { t.engine.Passthrough.ServeHTTP(w, in) })
}

// defers reports whether the request has deferred tools, so that the model is told of them.
func (t *turn) defers() bool { return len(t.plan.Deferred) >= max(t.policy.MinDeferred, 1) }
