// Package upstreamtest is the upstream that tests, demonstrations and soak runs talk to: a scripted LLM API that is as
// strict as the real one, so that a request which the real API would refuse fails where it was made.
package upstreamtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// Script is what a Server plays and how strict it is.
type Script struct {
	// Answers are played in order, one a request, refused requests included.
	Answers []Answer
	// Respond is asked when Answers are used up. Nil: a request too many is a violation of the rule "script-end".
	Respond func(Request) Answer
	// Rules choose the stricter checks that only some servers make, and switch rules off.
	Rules Rules
	// StreamChunk paces event streams whose answer sets no Pace.Chunk of its own: see Pace.Chunk.
	StreamChunk int
}

// Option adds to the Script of New. Answers are options: New(t, Reply(Text("a")), Reply(Text("b"))).
type Option interface{ apply(*Script) }

// OptionFunc makes a function an Option.
type OptionFunc func(*Script)

func (change OptionFunc) apply(script *Script) { change(script) }

// WithRules sets the rules of the script.
func WithRules(rules Rules) Option {
	return OptionFunc(func(script *Script) { script.Rules = rules })
}

// Responding lets respond answer every request for which no answer is scripted. It is called from several goroutines.
func Responding(respond func(Request) Answer) Option {
	return OptionFunc(func(script *Script) { script.Respond = respond })
}

// Request is one request as it arrived.
type Request struct {
	Number   int    // from 1, in order of arrival
	Method   string // as sent
	Path     string // escaped form
	RawQuery string
	Header   http.Header
	Body     []byte // as sent, possibly compressed
	// Gone is closed when the other side went away before it had the whole answer.
	Gone <-chan struct{}
}

// Violation is a rule that a request broke.
type Violation struct {
	Request int    // Request.Number
	Rule    string // stable name, for example "tool-result-missing"
	Message string // in the real API's words where they are known
	Param   string
	Code    string
	Status  int // of the refusal
}

func (v Violation) String() string {
	return fmt.Sprintf("%s: request %d: %s", v.Rule, v.Request, v.Message)
}

// Server is a scripted strict upstream on a loopback port.
type Server struct {
	// URL is the base without a path, as in httptest.Server.
	URL string

	fail     func(Violation) // nil outside tests
	http     *http.Server
	finished chan struct{} // closed when the listener's goroutine has ended
	closing  chan struct{}
	handlers sync.WaitGroup
	once     sync.Once

	mu         sync.Mutex
	script     Script
	played     int
	requests   []Request
	violations []Violation
	arrived    chan struct{} // closed and replaced at every arrival
	state      *state
}

// New starts a server that plays the options' answers, fails t by name at every broken rule, and closes with the test.
func New(t testing.TB, options ...Option) *Server {
	t.Helper()
	var script Script
	for _, option := range options {
		option.apply(&script)
	}
	server, err := start(script, func(v Violation) { t.Errorf("strict upstream: %s", v) })
	if err != nil {
		t.Fatalf("strict upstream: %v", err)
	}
	t.Cleanup(server.Close)
	return server
}

// NewServer starts a server outside a test: broken rules are answered with 400 and kept for Violations. The error is
// that of the listener. The caller closes the server.
func NewServer(script Script) (*Server, error) { return start(script, nil) }

func start(script Script, fail func(Violation)) (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening on a loopback port: %w", err)
	}
	server := &Server{
		URL:      "http://" + listener.Addr().String(),
		fail:     fail,
		finished: make(chan struct{}),
		closing:  make(chan struct{}),
		script:   script,
		arrived:  make(chan struct{}),
		state:    newState(),
	}
	server.http = &http.Server{Handler: server, ReadHeaderTimeout: time.Minute}
	go func() {
		defer close(server.finished)
		_ = server.http.Serve(listener) // always http.ErrServerClosed, by Close
	}()
	return server, nil
}

// Close ends stalled answers, breaks open connections, and waits for every handler. It may be called twice.
func (s *Server) Close() {
	s.once.Do(func() {
		close(s.closing)
		_ = s.http.Close() // the listener is gone either way
		<-s.finished
		s.handlers.Wait()
	})
}

// Add appends answers to the script.
func (s *Server) Add(answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script.Answers = append(s.script.Answers, answers...)
}

// Requests returns all requests so far, in order of arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Violations returns the broken rules so far, without those that the script asked for with Refusal.
func (s *Server) Violations() []Violation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Violation(nil), s.violations...)
}

// Remaining returns how many scripted answers have not been asked for yet.
func (s *Server) Remaining() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.script.Answers) - s.played
}

// Wait returns request number n (from 1) as soon as it has arrived. The error is the context's.
func (s *Server) Wait(ctx context.Context, n int) (Request, error) {
	for {
		s.mu.Lock()
		arrived, requests := s.arrived, s.requests
		s.mu.Unlock()
		if len(requests) >= n {
			return requests[n-1], nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return Request{}, fmt.Errorf("waiting for upstream request %d: %w", n, ctx.Err())
		}
	}
}

// ServeHTTP records, judges and answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.handlers.Add(1)
	defer s.handlers.Done()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the other side left while it was sending
	}
	gone := make(chan struct{})
	request, answer, scripted := s.take(r, body, gone)
	exchange, violations := s.judge(request)
	defer exchange.release()
	if !scripted {
		violations = append(violations, Violation{
			Request: request.Number, Rule: "script-end", Status: http.StatusInternalServerError,
			Message: fmt.Sprintf("%s %s came after the last scripted answer", request.Method, request.Path),
		})
	}
	refused := s.settle(request, answer, violations)
	if refused != nil {
		writeRefusal(w, *refused)
		return
	}
	if err := s.play(w, r, exchange, answer); err != nil {
		close(gone)
		panic(http.ErrAbortHandler) // the way of net/http to break the connection
	}
}

// take records the request and chooses its answer.
func (s *Server) take(r *http.Request, body []byte, gone <-chan struct{}) (Request, Answer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	request := Request{
		Number: len(s.requests) + 1, Method: r.Method, Path: r.URL.EscapedPath(), RawQuery: r.URL.RawQuery,
		Header: r.Header.Clone(), Body: body, Gone: gone,
	}
	s.requests = append(s.requests, request)
	close(s.arrived)
	s.arrived = make(chan struct{})
	if s.played < len(s.script.Answers) {
		s.played++
		return request, s.script.Answers[s.played-1], true
	}
	if s.script.Respond != nil {
		respond := s.script.Respond
		s.mu.Unlock()
		answer := respond(request)
		s.mu.Lock()
		return request, answer, true
	}
	return request, Answer{}, false
}

// settle compares the violations with what the script wants, reports the difference, and returns the refusal to send.
func (s *Server) settle(request Request, answer Answer, violations []Violation) *Violation {
	if answer.Refused {
		for _, violation := range violations {
			if answer.RefusedBy == "" || answer.RefusedBy == violation.Rule {
				return &violation
			}
		}
		violations = append(violations, Violation{
			Request: request.Number, Rule: "script-refusal", Status: http.StatusInternalServerError,
			Message: fmt.Sprintf("the script wants this request refused by %q, but it is valid", answer.RefusedBy),
		})
	}
	if len(violations) == 0 {
		return nil
	}
	s.mu.Lock()
	s.violations = append(s.violations, violations...)
	s.mu.Unlock()
	if s.fail != nil {
		for _, violation := range violations {
			s.fail(violation)
		}
	}
	return &violations[0]
}

func writeRefusal(w http.ResponseWriter, violation Violation) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(violation.Status)
	_, _ = io.WriteString(w, object("error", object(
		"message", quote(violation.Message),
		"type", quote("invalid_request_error"),
		"param", quoteOrNull(violation.Param),
		"code", quoteOrNull(violation.Code),
	)))
}

// play writes the answer in its pace. An error means that the connection has to be broken.
func (s *Server) play(w http.ResponseWriter, r *http.Request, exchange *exchange, answer Answer) error {
	body, contentType := answer.render(exchange)
	status := answer.Status
	if status == 0 {
		status = http.StatusOK
	}
	if answer.Pace.End == Complete && status < 300 {
		exchange.played = body
	}
	streamed := contentType == eventStream
	body = withLineEnds(body, answer.LineEnd)
	header := w.Header()
	header.Set("Content-Type", contentType)
	if answer.Encoding != "" {
		encoded, err := encode(answer.Encoding, body)
		if err != nil {
			return err
		}
		body = encoded
		header.Set("Content-Encoding", answer.Encoding)
	}
	for name, values := range answer.Header {
		header[http.CanonicalHeaderKey(name)] = values
	}
	if !s.pause(r.Context(), answer.Pace.Before) {
		return context.Canceled
	}
	chunk := answer.Pace.Chunk
	if chunk == 0 && streamed {
		chunk = s.script.StreamChunk
	}
	pieces := split(body, chunk)
	if answer.Pace.End != Complete {
		pieces = split(body[:min(answer.Pace.After, len(body))], chunk)
	} else if !streamed && len(pieces) <= 1 && header.Get("Content-Length") == "" {
		header.Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(status)
	if streamed {
		_ = http.NewResponseController(w).Flush() // headers go first, as from real servers; errors show at the write
	}
	return s.write(w, r, exchange, pieces, answer.Pace)
}

// write sends the pieces one by one, and learns what was answered just before the last one leaves: the other side may
// ask again as soon as it has it.
func (s *Server) write(w http.ResponseWriter, r *http.Request, exchange *exchange, pieces [][]byte, pace Pace) error {
	controller := http.NewResponseController(w)
	for i, piece := range pieces {
		if i > 0 && !s.pause(r.Context(), pace.Between) {
			return context.Canceled
		}
		if pace.Gate != nil {
			select {
			case <-pace.Gate:
			case <-r.Context().Done():
				return context.Canceled
			case <-s.closing:
				return context.Canceled
			}
		}
		if i == len(pieces)-1 {
			exchange.release()
		}
		if _, err := w.Write(piece); err != nil {
			return fmt.Errorf("writing the scripted answer: %w", err)
		}
		if len(pieces) > 1 || pace.End != Complete {
			if err := controller.Flush(); err != nil {
				return fmt.Errorf("flushing the scripted answer: %w", err)
			}
		}
	}
	switch pace.End {
	case Cut:
		return io.ErrUnexpectedEOF
	case Stall:
		select {
		case <-r.Context().Done():
		case <-s.closing:
		}
		return context.Canceled
	}
	return nil
}

// pause waits and tells whether the other side is still there.
func (s *Server) pause(ctx context.Context, duration time.Duration) bool {
	if duration <= 0 {
		return true
	}
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	case <-s.closing:
		return false
	}
}

// split cuts a body into the pieces of a pace.
func split(body []byte, chunk int) [][]byte {
	switch {
	case len(body) == 0:
		return nil
	case chunk == ByEvent:
		return splitEvents(body)
	case chunk <= 0 || chunk >= len(body):
		return [][]byte{body}
	}
	pieces := make([][]byte, 0, len(body)/chunk+1)
	for len(body) > chunk {
		pieces = append(pieces, body[:chunk])
		body = body[chunk:]
	}
	return append(pieces, body)
}

// exchange is one request being answered: what was understood of it, and what the server learns from its answer.
type exchange struct {
	request  Request
	plain    []byte       // the body, decompressed
	json     gjson.Result // the same
	dialect  dialect
	context  []item // Responses: what the model sees, in order
	fresh    []item // Responses: the part of context that came with this request
	played   []byte // the whole successful answer, once it is known that it will be sent whole
	locks    string // the conversation that this request holds
	released bool
	learn    func(*exchange)
}

func (e *exchange) release() {
	if e.released {
		return
	}
	e.released = true
	if e.learn != nil {
		e.learn(e)
	}
}

type dialect int

const (
	other dialect = iota
	chat
	responses
)

func dialectOf(method, path string) dialect {
	path = strings.TrimRight(path, "/")
	switch {
	case method != http.MethodPost:
		return other
	case strings.HasSuffix(path, "/chat/completions"):
		return chat
	case strings.HasSuffix(path, "/responses"):
		return responses
	}
	return other
}

// judge checks a request by the rules of its dialect. Requests to other endpoints are always valid.
func (s *Server) judge(request Request) (*exchange, []Violation) {
	exchange := &exchange{request: request, dialect: dialectOf(request.Method, request.Path)}
	if exchange.dialect == other {
		return exchange, nil
	}
	judge := &judge{rules: s.script.Rules, request: request.Number}
	plain, err := decode(request.Header.Get("Content-Encoding"), request.Body)
	if err != nil {
		judge.refuse("content-encoding", "", "We could not decompress the body of your request: %v", err)
		return exchange, judge.found
	}
	exchange.plain = plain
	if !judge.document(plain) {
		return exchange, judge.found
	}
	exchange.json = gjson.ParseBytes(plain)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch exchange.dialect {
	case chat:
		judge.chat(exchange.json, s.state)
	case responses:
		judge.responses(exchange, s.state)
	}
	exchange.learn = s.learn
	return exchange, judge.found
}

// learn keeps what a client could refer to later, and opens the conversation for its next request.
func (s *Server) learn(exchange *exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.learn(exchange)
}

// splitEvents cuts a stream behind every blank line.
func splitEvents(body []byte) [][]byte {
	var pieces [][]byte
	for len(body) > 0 {
		end, width := -1, 0
		for _, blank := range []string{"\n\n", "\r\n\r\n", "\r\r"} {
			if at := bytes.Index(body, []byte(blank)); at >= 0 && (end < 0 || at < end) {
				end, width = at, len(blank)
			}
		}
		if end < 0 {
			return append(pieces, body)
		}
		pieces = append(pieces, body[:end+width])
		body = body[end+width:]
	}
	return pieces
}
