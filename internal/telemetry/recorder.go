// Package telemetry tells operators what happens: one log line and the metrics of every request, an honest account of what
// projection saves, call notices, the status page, and traces. It decides nothing, and it never holds message content or a
// secret.
package telemetry

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"tool-search-proxy/internal/session"
	"tool-search-proxy/internal/turn"
)

// Options are what a recorder needs.
type Options struct {
	Log     *zap.Logger
	Version string
	// Sessions tells how full the session store is.
	Sessions func(context.Context) session.Stats
	Notices  NoticeOptions
	// OTLPEndpoint is where traces go; empty turns them off.
	OTLPEndpoint string
}

// Recorder records requests. It is safe for concurrent use.
type Recorder struct {
	log      *zap.Logger
	version  string
	registry *prometheus.Registry
	metrics  *metrics
	tools    *yardstick
	notices  *notices
	status   *status
	traces   *traces
}

// New makes a recorder. Close stops its goroutines.
func New(o Options) *Recorder {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	r := &Recorder{log: o.Log, version: o.Version, registry: prometheus.NewRegistry(),
		traces: newTraces(o.OTLPEndpoint, o.Version, o.Log), tools: &yardstick{}, status: newStatus(time.Now())}
	r.metrics = newMetrics(r.registry, o.Version, o.Sessions)
	r.registry.MustRegister(&savingsCollector{r.status, r.tools})
	r.notices = newNotices(o.Notices, o.Log)
	return r
}

// Close stops deliveries and sends the traces that wait.
func (r *Recorder) Close() {
	r.notices.close()
	r.traces.close()
}

// Access is a request that the engine did not answer.
type Access struct {
	Method, Path string
	Status       int
	Bytes        int
	Duration     time.Duration
	Refused      string // why the proxy refused it itself, "" if it was passed on
}

// Access records a request that the engine did not answer.
func (r *Recorder) Access(a Access) {
	r.metrics.access(a)
	fields := []zap.Field{
		zap.String("method", a.Method), zap.String("path", a.Path), zap.Int("status", a.Status),
		zap.Int("bytes", a.Bytes), zap.Duration("duration", a.Duration),
	}
	if a.Refused != "" {
		r.log.Warn("a request was refused", append(fields, zap.String("reason", a.Refused))...)
		return
	}
	r.log.Info("passed through", fields...)
}

// Turn records a request that the engine answered.
func (r *Recorder) Turn(t *turn.Report) {
	if t.ClientTools != nil {
		r.tools.sample(t.ClientTools)
	}
	r.metrics.turn(t)
	r.status.turn(t)
	r.traces.turn(t)
	r.logTurn(t)
}

// Notice records calls for call notices; it returns a comment for the running stream, or "".
func (r *Recorder) Notice(n turn.Notice) string { return r.notices.notice(n) }

// logTurn writes the one line of a request.
func (r *Recorder) logTurn(t *turn.Report) {
	level := zap.InfoLevel
	if t.Failed != "" && !t.ClientGone {
		level = zap.WarnLevel
	}
	entry := r.log.Check(level, "request")
	if entry == nil {
		return
	}
	fields := []zap.Field{
		zap.String("dialect", t.Dialect), zap.Int("status", t.Status), zap.Duration("duration", t.End.Sub(t.Start)),
		zap.String("outcome", outcome(t)),
	}
	add := func(field zap.Field, wanted bool) {
		if wanted {
			fields = append(fields, field)
		}
	}
	add(zap.String("reason", string(t.Reason)), t.Reason != "")
	add(zap.String("failed", t.Failed), t.Failed != "")
	add(zap.String("model", t.Model), t.Model != "")
	add(zap.Bool("stream", true), t.Stream)
	add(zap.String("session", t.SessionID), t.SessionID != "")
	add(zap.Int("tools", t.Tools), t.Tools > 0)
	add(zap.Int("deferred", t.Deferred), t.Deferred > 0)
	if t.Reason == "" {
		add(zap.Bool("new_ask", true), t.NewAsk)
		add(zap.Int("rounds", len(t.Rounds)), true)
		add(zap.Int("searches", len(t.Searches)), len(t.Searches) > 0)
		add(zap.Strings("loaded", t.Loaded), len(t.Loaded) > 0)
		add(zap.Strings("called", t.Called), len(t.Called) > 0)
		add(zap.Int("rejected", t.Rejected), t.Rejected > 0)
		add(zap.Bool("bound_reached", true), t.BoundReached)
		if saved, ok := savingsOf(t); ok {
			fields = append(fields, zap.Int("tools_bytes_before", saved.Before), zap.Int("tools_bytes_after", saved.After),
				zap.Int("net_saved_tokens_estimated", saved.net(r.tools.usual())))
		}
	}
	input, output, cached := tokens(t)
	add(zap.Int64("input_tokens", input), input > 0)
	add(zap.Int64("cached_tokens", cached), cached > 0)
	add(zap.Int64("output_tokens", output), output > 0)
	add(zap.Bool("store_failed", true), t.StoreFailed)
	if t.Audit != nil {
		add(zap.Int("tools_bytes_before", len(t.ClientTools)), true)
		add(zap.Int("tools_bytes_after", t.Audit.Tools+len(t.Directory)), true)
		add(zap.Array("calls", auditCalls(t.Audit.Calls)), len(t.Audit.Calls) > 0)
		add(zap.Bool("answer_unread", true), t.Audit.Unread)
	}
	entry.Write(fields...)
}

// outcome sums up what became of a request in one word.
func outcome(t *turn.Report) string {
	switch {
	case t.ClientGone:
		return "client_gone"
	case t.Failed != "", t.Status >= http.StatusInternalServerError:
		return "failed"
	case t.Status >= http.StatusBadRequest:
		return "refused"
	case t.FailOpen:
		return "fail_open"
	case t.Reason != "":
		return "passed"
	default:
		return "projected"
	}
}

// tokens sums the measured usage over all rounds, or returns that of an audited answer.
func tokens(t *turn.Report) (input, output, cached int64) {
	if t.Audit != nil {
		return t.Audit.Tokens.Input, t.Audit.Tokens.Output, t.Audit.Tokens.Cached
	}
	for _, round := range t.Rounds {
		input += round.Tokens.Input
		output += round.Tokens.Output
		cached += round.Tokens.Cached
	}
	return input, output, cached
}
