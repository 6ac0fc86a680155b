package upstream

import (
	"context"
	"errors"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"

	"go.uber.org/zap"

	"tool-search-proxy/internal/idle"
)

// Passthrough returns the handler that forwards a request as it is, whatever it is. refuse answers where the upstream
// cannot: it writes an error object of this status.
func (c *Client) Passthrough(log *zap.Logger, refuse func(w http.ResponseWriter, status int, message string)) http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL = c.target(p.In.URL)
			p.Out.Host = ""
			p.Out.Trailer = p.In.Trailer // whose values come behind the body
			for name := range p.Out.Header {
				if strings.HasPrefix(name, ownPrefix) {
					delete(p.Out.Header, name)
				}
			}
			// ReverseProxy takes these away, but they are the client's to send.
			for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
				if values, ok := p.In.Header[name]; ok {
					p.Out.Header[name] = values
				}
			}
			c.authorize(p.Out.Header)
		},
		Transport:     c.transport,
		FlushInterval: -1, // streams are flushed as they come
		BufferPool:    &buffers{},
		ErrorLog:      zap.NewStdLog(log),
		ModifyResponse: func(resp *http.Response) error {
			if resp.StatusCode != http.StatusSwitchingProtocols && c.options.IdleTimeout > 0 {
				resp.Body = idle.NewBody(resp.Body, c.options.IdleTimeout)
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() != nil {
				panic(http.ErrAbortHandler) // the client is gone
			}
			status := http.StatusBadGateway
			var timeout interface{ Timeout() bool }
			if errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) {
				status = http.StatusGatewayTimeout
			}
			err = describe(err)
			log.Warn("a request could not be passed on", zap.Error(err), zap.String("path", r.URL.Path))
			refuse(w, status, "the upstream could not be reached: "+err.Error())
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Without full duplex the server closes a request body that has not been read to its end as soon as the answer
		// begins, and cuts the answer of a fast upstream now and then (golang/go#40747).
		_ = http.NewResponseController(w).EnableFullDuplex()
		proxy.ServeHTTP(w, r)
	})
}

// buffers lends the buffers through which answers are copied.
type buffers struct{ pool sync.Pool }

const bufferSize = 16 << 10

func (b *buffers) Get() []byte {
	if buffer, ok := b.pool.Get().(*[bufferSize]byte); ok {
		return buffer[:]
	}
	return make([]byte, bufferSize)
}

func (b *buffers) Put(buffer []byte) { b.pool.Put((*[bufferSize]byte)(buffer)) }
