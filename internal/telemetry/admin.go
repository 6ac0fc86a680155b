package telemetry

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

//go:embed page
var page embed.FS

// AdminOptions are what the pages for operators need.
type AdminOptions struct {
	// Ready are the checks of /readyz by name.
	Ready map[string]func(context.Context) error
	// Config writes the configuration in force, with secrets masked.
	Config func(io.Writer) error
}

// readyTime is how long the checks of /readyz may take together.
const readyTime = 3 * time.Second

// Admin returns the handler for operators: /healthz, /readyz, /metrics and the status page.
func (r *Recorder) Admin(o AdminOptions) http.Handler {
	files, err := fs.Sub(page, "page")
	if err != nil {
		panic(err) // the directory is part of the program
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, "ok\n")
	})
	mux.HandleFunc("GET /readyz", o.ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(r.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /status.json", func(w http.ResponseWriter, _ *http.Request) {
		var configuration bytes.Buffer
		if o.Config != nil {
			if err := o.Config(&configuration); err != nil {
				http.Error(w, "the configuration cannot be shown", http.StatusInternalServerError)
				return
			}
		}
		body, err := r.status.appendJSON(r.version, configuration.String(), r.tools.measure(), time.Now())
		if err != nil {
			http.Error(w, "the status cannot be shown", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	})
	mux.Handle("GET /", http.FileServerFS(files))
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "+
			"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, q)
	})
}

// ready answers whether the proxy can do its work: 200, or 503 with what cannot be reached.
func (o AdminOptions) ready(w http.ResponseWriter, q *http.Request) {
	ctx, cancel := context.WithTimeout(q.Context(), readyTime)
	defer cancel()
	type result struct{ name, text string }
	results := make(chan result, len(o.Ready))
	for name, check := range o.Ready {
		go func() {
			if err := check(ctx); err != nil {
				results <- result{name, err.Error()}
				return
			}
			results <- result{name, "ok"}
		}()
	}
	answer, status := make(map[string]string, len(o.Ready)), http.StatusOK
	for range o.Ready {
		r := <-results
		answer[r.name] = r.text
		if r.text != "ok" {
			status = http.StatusServiceUnavailable
		}
	}
	body, err := json.Marshal(answer)
	if err != nil {
		status = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
