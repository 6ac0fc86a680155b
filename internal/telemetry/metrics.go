package telemetry

import (
	"context"
	"runtime"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"tool-search-proxy/internal/session"
	"tool-search-proxy/internal/turn"
)

const namespace = "tool_search_proxy"

// metrics are the counters of the process. No label is taken from what a client writes: models and tools would be without
// bound.
type metrics struct {
	requests      *prometheus.CounterVec
	passed        *prometheus.CounterVec
	others        *prometheus.CounterVec
	rounds        *prometheus.CounterVec
	searches      *prometheus.CounterVec
	rejected      prometheus.Counter
	bounds        prometheus.Counter
	failOpens     prometheus.Counter
	upstreamFails *prometheus.CounterVec
	storeFails    prometheus.Counter
	deferred      prometheus.Histogram
	loaded        prometheus.Histogram
	bytesBefore   prometheus.Counter // tools as clients sent them
	bytesAfter    prometheus.Counter // and as the upstream got them
	usageInput    prometheus.Counter
	usageCached   prometheus.Counter
	usageOutput   prometheus.Counter
	duration      *prometheus.HistogramVec
	hiddenRound   prometheus.Histogram
	added         prometheus.Histogram
	firstEvent    prometheus.Histogram
	audited       *prometheus.CounterVec
}

func newMetrics(registry *prometheus.Registry, version string, sessions func(context.Context) session.Stats) *metrics {
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
		registry.MustRegister(c)
		return c
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
		registry.MustRegister(c)
		return c
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets})
		registry.MustRegister(h)
		return h
	}
	seconds := []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300}
	counts := []float64{0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 100, 200, 500, 1000}
	toolsBytes := counters("tools_bytes_total",
		"Bytes of tools: as clients sent them, and as the upstream got them over all rounds with the directory.", "side")
	usage := counters("usage_tokens_total",
		"Tokens of projected requests over all rounds, as the upstream measured them.", "kind")
	m := &metrics{
		bytesBefore: toolsBytes.WithLabelValues("client"),
		bytesAfter:  toolsBytes.WithLabelValues("upstream"),
		usageInput:  usage.WithLabelValues("input"),
		usageCached: usage.WithLabelValues("cached_input"),
		usageOutput: usage.WithLabelValues("output"),
		requests:    counters("requests_total", "Requests of the dialects that the engine answered.", "dialect", "outcome", "code"),
		passed: counters("passthrough_total", "Requests of the dialects that passed through unprojected, by reason.",
			"dialect", "reason"),
		others: counters("other_requests_total", "Requests that the engine did not see.", "code"),
		rounds: counters("rounds_total", "Upstream model calls for projected requests.", "dialect", "kind"),
		searches: counters("searches_total", "Answered calls of the virtual tool. An empty one found nothing.",
			"outcome"),
		rejected: counter("rejected_calls_total", "Calls of tools that were not exposed, answered by the proxy."),
		bounds:   counter("bounds_reached_total", "Requests whose last round was sent with the full tools at a bound."),
		failOpens: counter("fail_opens_total",
			"Projected requests that the upstream refused and that were sent again as the client wrote them."),
		upstreamFails: counters("upstream_errors_total", "Requests that failed at the upstream.", "kind"),
		storeFails:    counter("session_store_errors_total", "Requests for which the session store was not available."),
		deferred:      histogram("deferred_tools", "Deferred tools of a projected request.", counts),
		loaded:        histogram("loaded_tools", "Loaded tools at the end of a projected request.", counts),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: "request_duration_seconds",
			Help: "Time from a request's body read to the end of its answer.", Buckets: seconds}, []string{"dialect", "outcome"}),
		hiddenRound: histogram("hidden_round_duration_seconds", "Time that one hidden round took.", seconds),
		added: histogram("added_latency_seconds",
			"Time of a request in which the proxy itself worked: all but waiting for the upstream.",
			[]float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .1, 1}),
		firstEvent: histogram("first_event_seconds", "Time from a round sent to its first event.", seconds),
		audited:    counters("audited_calls_total", "Tool calls seen in audit mode, by how a search would have found them.", "found"),
	}
	registry.MustRegister(m.duration,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		&sessionCollector{stats: sessions})
	info := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: "build_info", Help: "Always 1; the labels tell the build.",
		ConstLabels: prometheus.Labels{"version": version, "go_version": runtime.Version()}})
	info.Set(1)
	registry.MustRegister(info)
	return m
}

func (m *metrics) access(a Access) { m.others.WithLabelValues(strconv.Itoa(a.Status)).Inc() }

func (m *metrics) turn(t *turn.Report) {
	what := outcome(t)
	m.requests.WithLabelValues(t.Dialect, what, strconv.Itoa(t.Status)).Inc()
	m.duration.WithLabelValues(t.Dialect, what).Observe(t.End.Sub(t.Start).Seconds())
	if t.Reason != "" {
		m.passed.WithLabelValues(t.Dialect, string(t.Reason)).Inc()
	}
	if t.FailOpen {
		m.failOpens.Inc()
	}
	if t.Failed != "" {
		m.upstreamFails.WithLabelValues(t.Failed).Inc()
	}
	if t.StoreFailed {
		m.storeFails.Inc()
	}
	if t.Audit != nil {
		m.auditedTurn(t)
	}
	if t.Reason != "" {
		return
	}
	m.deferred.Observe(float64(t.Deferred))
	m.loaded.Observe(float64(len(t.Loaded)))
	m.rejected.Add(float64(t.Rejected))
	if t.BoundReached {
		m.bounds.Inc()
	}
	for _, s := range t.Searches {
		m.searches.WithLabelValues(searchOutcome(s)).Inc()
	}
	waited := 0.0
	for _, round := range t.Rounds {
		kind := "visible"
		if round.Hidden {
			kind = "hidden"
			m.hiddenRound.Observe(round.Duration.Seconds())
		}
		m.rounds.WithLabelValues(t.Dialect, kind).Inc()
		waited += round.Duration.Seconds()
		if round.FirstEvent > 0 {
			m.firstEvent.Observe(round.FirstEvent.Seconds())
		}
	}
	if saved, ok := savingsOf(t); ok {
		m.bytesBefore.Add(float64(saved.Before))
		m.bytesAfter.Add(float64(saved.After))
	}
	m.added.Observe(max(t.End.Sub(t.Start).Seconds()-waited, 0))
	input, output, cached := tokens(t)
	m.usageInput.Add(float64(input))
	m.usageCached.Add(float64(cached))
	m.usageOutput.Add(float64(output))
}

func (m *metrics) auditedTurn(t *turn.Report) {
	for _, call := range t.Audit.Calls {
		found := "not_found"
		best := call.RankByWords
		if best == 0 || call.RankByName > 0 && call.RankByName < best {
			best = call.RankByName
		}
		switch {
		case call.AlwaysLoaded:
			found = "always_loaded"
		case best > 0 && best <= 5:
			found = "first_5"
		case best > 0:
			found = "later"
		}
		m.audited.WithLabelValues(found).Inc()
	}
}

func searchOutcome(s turn.Search) string {
	switch {
	case s.Malformed:
		return "malformed"
	case s.Empty:
		return "empty"
	case len(s.Loaded) == 0:
		return "already_loaded"
	default:
		return "loaded"
	}
}

// savingsCollector turns the savings into tokens whenever somebody looks.
type savingsCollector struct {
	status *status
	tools  *yardstick
}

var (
	toolsTokens = prometheus.NewDesc(namespace+"_tools_tokens_estimated_total",
		"Tokens of tools, estimated by a tokenizer: as clients sent them, and as the upstream got them.", []string{"side"}, nil)
	netSaved = prometheus.NewDesc(namespace+"_net_saved_tokens_estimated",
		"Input tokens saved since the start, net of the directory and of whole hidden rounds. It can be negative.", nil, nil)
	couldSave = prometheus.NewDesc(namespace+"_audit_could_save_tokens_estimated",
		"Input tokens that projection could have saved in first rounds since the start, by the audit.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c *savingsCollector) Describe(out chan<- *prometheus.Desc) {
	out <- toolsTokens
	out <- netSaved
	out <- couldSave
}

// Collect implements prometheus.Collector.
func (c *savingsCollector) Collect(out chan<- prometheus.Metric) {
	saved, could := c.status.savings()
	bytesPerToken := c.tools.measure()
	send := func(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, kind, value, labels...)
	}
	send(toolsTokens, prometheus.CounterValue, float64(saved.Before)/bytesPerToken, "client")
	send(toolsTokens, prometheus.CounterValue, float64(saved.After)/bytesPerToken, "upstream")
	send(netSaved, prometheus.GaugeValue, float64(saved.net(bytesPerToken)))
	send(couldSave, prometheus.GaugeValue, float64(could.net(bytesPerToken)))
}

// sessionCollector asks the session store how full it is whenever somebody looks.
type sessionCollector struct {
	stats func(context.Context) session.Stats
}

var (
	sessionsHeld    = prometheus.NewDesc(namespace+"_sessions", "Sessions held; absent if the store cannot tell.", nil, nil)
	sessionBytes    = prometheus.NewDesc(namespace+"_session_bytes", "Bytes that sessions take, estimated.", nil, nil)
	sessionsEvicted = prometheus.NewDesc(namespace+"_sessions_evicted_total", "Sessions given up for room.", nil, nil)
	sessionsExpired = prometheus.NewDesc(namespace+"_sessions_expired_total", "Sessions given up for age.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c *sessionCollector) Describe(out chan<- *prometheus.Desc) {
	out <- sessionsHeld
	out <- sessionBytes
	out <- sessionsEvicted
	out <- sessionsExpired
}

// Collect implements prometheus.Collector.
func (c *sessionCollector) Collect(out chan<- prometheus.Metric) {
	if c.stats == nil {
		return
	}
	s := c.stats(context.Background())
	send := func(desc *prometheus.Desc, kind prometheus.ValueType, n int64) {
		if n >= 0 {
			out <- prometheus.MustNewConstMetric(desc, kind, float64(n))
		}
	}
	send(sessionsHeld, prometheus.GaugeValue, s.Sessions)
	send(sessionBytes, prometheus.GaugeValue, s.Bytes)
	send(sessionsEvicted, prometheus.CounterValue, s.Evictions)
	send(sessionsExpired, prometheus.CounterValue, s.Expired)
}
