package telemetry

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/zap"
)

// otlpExporter posts spans as OTLP over HTTP in its JSON encoding (OpenTelemetry Protocol 1.x). The exporter of the
// OpenTelemetry project speaks it too, but brings gRPC and a gateway along, which cost a sidecar five megabytes at rest.
type otlpExporter struct {
	url       string
	transport *http.Transport
	log       *zap.Logger
}

const exportTimeout = 10 * time.Second

// newOTLPExporter sends to an endpoint; one without a path gets the usual one, /v1/traces.
func newOTLPExporter(endpoint string, log *zap.Logger) *otlpExporter {
	if host := strings.TrimRight(endpoint, "/"); strings.Count(host, "/") == 2 {
		endpoint = host + "/v1/traces"
	}
	return &otlpExporter{endpoint, &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 1}, log}
}

type otlpSpan struct {
	TraceID    string          `json:"traceId"`
	SpanID     string          `json:"spanId"`
	ParentID   string          `json:"parentSpanId,omitempty"`
	Name       string          `json:"name"`
	Kind       int             `json:"kind"`
	Start      string          `json:"startTimeUnixNano"`
	End        string          `json:"endTimeUnixNano"`
	Attributes []otlpAttribute `json:"attributes,omitempty"`
	Status     otlpStatus      `json:"status"`
}

type otlpStatus struct {
	Code    int    `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

type otlpAttribute struct {
	Key   string    `json:"key"`
	Value otlpValue `json:"value"`
}

type otlpValue struct {
	String *string    `json:"stringValue,omitempty"`
	Bool   *bool      `json:"boolValue,omitempty"`
	Int    *string    `json:"intValue,omitempty"`
	Array  *otlpArray `json:"arrayValue,omitempty"`
}

type otlpArray struct {
	Values []otlpValue `json:"values"`
}

func otlpAttributes(list []attribute.KeyValue) []otlpAttribute {
	out := make([]otlpAttribute, 0, len(list))
	for _, kv := range list {
		a := otlpAttribute{Key: string(kv.Key)}
		switch kv.Value.Type() {
		case attribute.BOOL:
			v := kv.Value.AsBool()
			a.Value.Bool = &v
		case attribute.INT64:
			v := strconv.FormatInt(kv.Value.AsInt64(), 10)
			a.Value.Int = &v
		case attribute.STRINGSLICE:
			a.Value.Array = &otlpArray{Values: []otlpValue{}}
			for _, v := range kv.Value.AsStringSlice() {
				a.Value.Array.Values = append(a.Value.Array.Values, otlpValue{String: &v})
			}
		default:
			v := kv.Value.String()
			a.Value.String = &v
		}
		out = append(out, a)
	}
	return out
}

// ExportSpans implements sdktrace.SpanExporter. What fails is logged here: the SDK would write to standard error.
func (e *otlpExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := e.export(ctx, spans); err != nil {
		e.log.Warn("traces are lost", zap.Int("spans", len(spans)), zap.Error(err))
	}
	return nil
}

func (e *otlpExporter) export(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	list := make([]otlpSpan, len(spans))
	for i, s := range spans {
		trace, id := s.SpanContext().TraceID(), s.SpanContext().SpanID()
		list[i] = otlpSpan{
			TraceID: hex.EncodeToString(trace[:]), SpanID: hex.EncodeToString(id[:]), Name: s.Name(), Kind: int(s.SpanKind()),
			Start: strconv.FormatInt(s.StartTime().UnixNano(), 10), End: strconv.FormatInt(s.EndTime().UnixNano(), 10),
			Attributes: otlpAttributes(s.Attributes()),
		}
		if parent := s.Parent().SpanID(); parent.IsValid() {
			list[i].ParentID = hex.EncodeToString(parent[:])
		}
		if s.Status().Code == codes.Error {
			list[i].Status = otlpStatus{Code: 2, Message: s.Status().Description}
		}
	}
	type scope struct {
		Scope map[string]string `json:"scope"`
		Spans []otlpSpan        `json:"spans"`
	}
	type resource struct {
		Resource map[string][]otlpAttribute `json:"resource"`
		Scopes   []scope                    `json:"scopeSpans"`
	}
	body, err := json.Marshal(map[string][]resource{"resourceSpans": {{
		Resource: map[string][]otlpAttribute{"attributes": otlpAttributes(spans[0].Resource().Attributes())},
		Scopes:   []scope{{map[string]string{"name": spans[0].InstrumentationScope().Name}, list}},
	}}})
	if err != nil {
		return fmt.Errorf("encode traces: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, exportTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("send traces: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := e.transport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("send traces: %w", err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<16))
	if response.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("send traces: the collector answered with status %d", response.StatusCode)
	}
	return nil
}

// Shutdown implements sdktrace.SpanExporter.
func (e *otlpExporter) Shutdown(context.Context) error {
	e.transport.CloseIdleConnections()
	return nil
}
