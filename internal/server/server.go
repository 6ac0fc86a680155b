// Package server is the door for clients: it takes their requests, reads the bodies of those that may be projected, within
// limits, and lets everything else through.
package server

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"go.uber.org/zap"

	"tool-search-proxy/internal/openai"
	"tool-search-proxy/internal/telemetry"
	"tool-search-proxy/internal/turn"
)

// Engine answers the requests that may be projected.
type Engine interface {
	// Active reports whether a request on an intercepted path must be looked at.
	Active(r *http.Request) bool
	// Serve answers a request whose body has been read.
	Serve(w http.ResponseWriter, r *http.Request, d openai.Dialect, b turn.Body)
}

// Options are what the handler needs.
type Options struct {
	Engine Engine
	// Passthrough forwards a request as it is.
	Passthrough http.Handler
	// MaxBodyBytes bounds the body of an intercepted request, as it comes and decoded.
	MaxBodyBytes int64
	// Observe is told of every request that the engine did not answer.
	Observe func(telemetry.Access)
	Log     *zap.Logger
}

type server struct{ Options }

// New returns the handler for clients.
func New(o Options) http.Handler {
	if o.Observe == nil {
		o.Observe = func(telemetry.Access) {}
	}
	s := &server{o}
	r := chi.NewRouter()
	r.Use(s.recover)
	r.HandleFunc("/*", s.route)
	r.NotFound(s.route)
	r.MethodNotAllowed(s.route)
	return r
}

// dialectOf returns the dialect of an intercepted path, nil for every other path.
func dialectOf(path string) openai.Dialect {
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return openai.Chat
	case strings.HasSuffix(path, "/responses"):
		return openai.Responses
	}
	return nil
}

func (s *server) route(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	d := dialectOf(r.URL.Path)
	switch {
	case r.Method == http.MethodConnect:
		s.refuse(w, r, start, http.StatusMethodNotAllowed, "method_not_allowed", "this is no forward proxy: CONNECT is not allowed")
	case d == nil || !s.Engine.Active(r):
		s.pass(w, r)
	case isUpgrade(r):
		w.Header().Set("Upgrade", "HTTP/1.1")
		s.refuse(w, r, start, http.StatusUpgradeRequired, "websocket_not_supported",
			"WebSocket transport is not supported on "+r.URL.Path+" while tool search is on: use POST over HTTP")
	case r.Method != http.MethodPost:
		s.pass(w, r)
	default:
		s.intercept(w, r, d, start)
	}
}

// isUpgrade reports whether the client asks for a WebSocket.
func isUpgrade(r *http.Request) bool {
	for protocol := range strings.SplitSeq(strings.Join(r.Header.Values("Upgrade"), ","), ",") {
		if strings.EqualFold(strings.TrimSpace(protocol), "websocket") {
			return true
		}
	}
	return false
}

// pass lets a request through and tells of it.
func (s *server) pass(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	counted := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
	defer func() { s.observe(counted, r, start, "") }()
	s.Passthrough.ServeHTTP(counted, r)
}

func (s *server) observe(w middleware.WrapResponseWriter, r *http.Request, start time.Time, refused string) {
	s.Observe(telemetry.Access{
		Method: r.Method, Path: r.URL.Path, Status: w.Status(), Bytes: w.BytesWritten(), Duration: time.Since(start),
		Refused: refused,
	})
}

// intercept reads the body and hands the request to the engine.
func (s *server) intercept(w http.ResponseWriter, r *http.Request, d openai.Dialect, start time.Time) {
	body, err := s.readBody(w, r)
	var large *tooLarge
	switch {
	case err == nil:
		s.Engine.Serve(w, r, d, body)
	case errors.As(err, &large):
		// What is left of the body is not worth reading.
		w.Header().Set("Connection", "close")
		s.refuse(w, r, start, http.StatusRequestEntityTooLarge, "request_too_large", err.Error())
	default:
		w.Header().Set("Connection", "close")
		s.refuse(w, r, start, http.StatusBadRequest, "incomplete_body", err.Error())
	}
}

// refuse answers with an error object of the proxy's own.
func (s *server) refuse(w http.ResponseWriter, r *http.Request, start time.Time, status int, code, message string) {
	counted := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
	WriteError(counted, status, "invalid_request_error", code, message)
	s.observe(counted, r, start, code)
}

// WriteError answers with an error object in the form of the OpenAI API.
func WriteError(w http.ResponseWriter, status int, kind, code, message string) {
	body := openai.ErrorBody(message, kind, code)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// recover turns a panic into an error that the client can see: a status while nothing is out, a broken connection
// afterwards.
func (s *server) recover(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := &beginning{ResponseWriter: w}
		defer func() {
			failure := recover()
			if failure == nil {
				return
			}
			if failure != http.ErrAbortHandler { //nolint:errorlint // net/http compares it so
				s.Log.Error("a request failed", zap.String("panic", fmt.Sprint(failure)), zap.ByteString("stack", debug.Stack()))
				if !begun.header {
					WriteError(w, http.StatusInternalServerError, "server_error", "internal_error",
						"the proxy failed to handle the request")
					return
				}
			}
			panic(http.ErrAbortHandler)
		}()
		next.ServeHTTP(begun, r)
	})
}

// beginning notes whether the header of an answer is out.
type beginning struct {
	http.ResponseWriter
	header bool
}

func (b *beginning) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// FlushError is what http.ResponseController asks for first.
func (b *beginning) FlushError() error {
	b.header = true
	if w, ok := b.ResponseWriter.(interface{ FlushError() error }); ok {
		return w.FlushError()
	}
	return http.NewResponseController(b.ResponseWriter).Flush()
}

// Flush is what http.Flusher asks for.
func (b *beginning) Flush() { _ = b.FlushError() }

func (b *beginning) WriteHeader(status int) {
	b.header = b.header || status >= 200 || status == http.StatusSwitchingProtocols
	b.ResponseWriter.WriteHeader(status)
}

func (b *beginning) Write(p []byte) (int, error) {
	b.header = true
	return b.ResponseWriter.Write(p)
}
