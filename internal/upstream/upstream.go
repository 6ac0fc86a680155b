// Package upstream is the HTTP client to the one LLM API behind the proxy: where a request goes, which headers go with
// it, and how an answer comes back readable.
package upstream

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tool-search-proxy/internal/idle"
)

// Options are what a client needs.
type Options struct {
	// BaseURL is an absolute http or https URL without a trailing slash.
	BaseURL string
	// APIKey is used where the client of the proxy sends no credentials; empty is none.
	APIKey string

	ConnectTimeout time.Duration // for the TCP connection
	TLSTimeout     time.Duration // for the TLS handshake
	HeaderTimeout  time.Duration // from the request sent to the answer's headers
	IdleTimeout    time.Duration // of silence within an answer; 0 is no limit
}

// Client sends requests to the upstream. It is safe for concurrent use.
type Client struct {
	options   Options
	base      *url.URL
	transport *http.Transport
}

// ErrUnreachable says that no connection to the upstream could be made.
var ErrUnreachable = errors.New("no connection to the upstream")

// New makes a client.
func New(o Options) (*Client, error) {
	base, err := url.Parse(o.BaseURL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("parse the upstream's base URL: %w", err)
	case base.Scheme != "http" && base.Scheme != "https" || base.Host == "":
		return nil, fmt.Errorf("the upstream's base URL must be an absolute http or https URL")
	}
	base.RawPath, base.Path = strings.TrimRight(base.EscapedPath(), "/"), strings.TrimRight(base.Path, "/")
	dialer := &net.Dialer{Timeout: o.ConnectTimeout, KeepAlive: 30 * time.Second}
	return &Client{options: o, base: base, transport: &http.Transport{
		// Proxies of the environment count, as for every other client on the machine.
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		TLSHandshakeTimeout:   o.TLSTimeout,
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
		ResponseHeaderTimeout: o.HeaderTimeout,
		ExpectContinueTimeout: time.Second,
		ForceAttemptHTTP2:     true,
		// All requests go to one host: connections are worth keeping, and a burst must not close them all.
		MaxIdleConns:        0,
		MaxIdleConnsPerHost: 512,
		IdleConnTimeout:     90 * time.Second,
		// What comes is decoded here where it must be read, and passed on as it is elsewhere.
		DisableCompression: true,
		// Many requests share one HTTP/2 connection: one that has died unnoticed must not hold them all.
		HTTP2:           &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
		WriteBufferSize: 16 << 10, // a projected request goes out in one write
		ReadBufferSize:  4 << 10,
	}}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Send posts body to the path that the client of the proxy asked for, with its headers made fit for the upstream. edit, if
// not nil, changes the headers last. The answer's body is decoded; its headers say so. Redirects are not followed. A
// failure to connect is ErrUnreachable, an answer that cannot be decoded is ErrEncoding, a timeout has Timeout() true, and a
// client that has left is context.Canceled. Reading a body that falls silent is idle.ErrSilent.
func (c *Client) Send(ctx context.Context, in *http.Request, body []byte, edit func(http.Header)) (*http.Response, error) {
	out := (&http.Request{
		Method: in.Method, URL: c.target(in.URL), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: c.header(in.Header), ContentLength: int64(len(body)),
	}).WithContext(ctx)
	out.Body = http.NoBody
	if len(body) > 0 {
		out.Body = io.NopCloser(bytes.NewReader(body))
	}
	// A kept connection that the upstream has just closed is no error: the request is sent again on a new one.
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	out.Header.Del("Content-Encoding") // body is decoded
	out.Header.Del("Expect")
	acceptReadable(out.Header)
	if edit != nil {
		edit(out.Header)
	}
	resp, err := c.transport.RoundTrip(out)
	if err != nil {
		return nil, describe(err)
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		_ = resp.Body.Close()
		return nil, errors.New("the upstream switched protocols unasked")
	}
	removeHopByHop(resp.Header)
	if c.options.IdleTimeout > 0 {
		resp.Body = idle.NewBody(resp.Body, c.options.IdleTimeout)
	}
	if err := decodeBody(resp); err != nil {
		return nil, err
	}
	return resp, nil
}

// target maps the path that the client asked for. Its leading /v1 stands for the path of the base URL; any other path is
// appended to the upstream's host as it is, and so is every path if the base URL has none. Nothing is cleaned: the path
// goes on as it was written.
func (c *Client) target(in *url.URL) *url.URL {
	out := *in
	out.Scheme, out.Host, out.User, out.Fragment = c.base.Scheme, c.base.Host, nil, ""
	if rest, ok := strings.CutPrefix(in.Path, "/v1"); ok && c.base.Path != "" && (rest == "" || rest[0] == '/') {
		out.Path = c.base.Path + rest
		if raw, ok := strings.CutPrefix(in.EscapedPath(), "/v1"); ok {
			out.RawPath = c.base.EscapedPath() + raw
		}
	}
	return &out
}

// Ready reports whether the upstream, or the proxy of the environment before it, takes a connection, and speaks TLS where it
// should. No request is made, since that could cost money.
func (c *Client) Ready(ctx context.Context) error {
	if c.options.ConnectTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.options.ConnectTimeout+c.options.TLSTimeout)
		defer cancel()
	}
	next := c.base
	if proxy, err := c.transport.Proxy(&http.Request{URL: c.base}); err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	} else if proxy != nil {
		next = proxy
	}
	port := next.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[next.Scheme]
	}
	conn, err := c.transport.DialContext(ctx, "tcp", net.JoinHostPort(next.Hostname(), port))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer conn.Close()
	if next.Scheme != "https" {
		return nil
	}
	config := c.transport.TLSClientConfig.Clone()
	config.ServerName = next.Hostname()
	if err := tls.Client(conn, config).HandshakeContext(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return nil
}

// describe makes the transport's errors ones that callers can decide by.
func describe(err error) error {
	var op *net.OpError
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect") || errors.As(err, &certificate) {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return err
}
