package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"tool-search-proxy/internal/turn"
)

// traces sends a span for each request and for each of its rounds. They are made when the request is over, out of its
// report, so that a request waits for nothing.
type traces struct {
	provider *sdktrace.TracerProvider // nil if traces are off
	tracer   trace.Tracer
}

// newTraces begins to send traces to an OTLP endpoint over HTTP; an empty one turns them off.
func newTraces(endpoint, version string, log *zap.Logger) *traces {
	if endpoint == "" {
		return &traces{}
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(newOTLPExporter(endpoint, log)), sdktrace.WithResource(resource.NewSchemaless(
		attribute.String("service.name", "tool-search-proxy"), attribute.String("service.version", version))))
	return &traces{provider, provider.Tracer("tool-search-proxy")}
}

func (s *traces) turn(t *turn.Report) {
	if s.provider == nil {
		return
	}
	// The request belongs to the trace that the client names (W3C Trace Context).
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": t.TraceParent})
	ctx, span := s.tracer.Start(ctx, "POST "+t.Dialect, trace.WithTimestamp(t.Start),
		trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
			attribute.String("tool_search.dialect", t.Dialect), attribute.String("tool_search.outcome", outcome(t)),
			attribute.String("tool_search.passthrough_reason", string(t.Reason)),
			attribute.String("tool_search.session", t.SessionID),
			attribute.Int("tool_search.deferred", t.Deferred), attribute.Int("tool_search.searches", len(t.Searches)),
			attribute.StringSlice("tool_search.loaded", t.Loaded), attribute.StringSlice("tool_search.called", t.Called),
			attribute.String("gen_ai.request.model", t.Model), attribute.Int("http.response.status_code", t.Status)))
	for i, round := range t.Rounds {
		_, child := s.tracer.Start(ctx, "round", trace.WithTimestamp(round.Start), trace.WithSpanKind(trace.SpanKindClient),
			trace.WithAttributes(attribute.Int("tool_search.round", i+1), attribute.Bool("tool_search.hidden", round.Hidden),
				attribute.Int("http.request.body.size", round.Sent), attribute.Int("http.response.status_code", round.Status),
				attribute.Int64("gen_ai.usage.input_tokens", round.Tokens.Input),
				attribute.Int64("gen_ai.usage.output_tokens", round.Tokens.Output)))
		child.End(trace.WithTimestamp(round.Start.Add(round.Duration)))
	}
	if t.Failed != "" {
		span.SetStatus(codes.Error, t.Failed)
	}
	span.End(trace.WithTimestamp(t.End))
}

// close sends what waits, for a moment. That a collector does not answer is no failure of the proxy.
func (s *traces) close() {
	if s.provider == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	_ = s.provider.Shutdown(ctx)
}
