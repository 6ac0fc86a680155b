package server_test

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/tidwall/gjson"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"tool-search-proxy/internal/openai"
	"tool-search-proxy/internal/server"
	"tool-search-proxy/internal/telemetry"
	"tool-search-proxy/internal/turn"
	"tool-search-proxy/internal/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const limit = 64 << 10

// engine notes what it is given and answers with serve, or with the dialect's name.
type engine struct {
	idle  bool // nothing to look at
	serve http.HandlerFunc

	mu     sync.Mutex
	bodies []turn.Body
}

func (e *engine) Active(*http.Request) bool { return !e.idle }

func (e *engine) Serve(w http.ResponseWriter, r *http.Request, d openai.Dialect, b turn.Body) {
	e.mu.Lock()
	e.bodies = append(e.bodies, b)
	e.mu.Unlock()
	if e.serve != nil {
		e.serve(w, r)
		return
	}
	_, _ = io.WriteString(w, "engine "+d.Name())
}

// door is a running server of the package.
type door struct {
	*httptest.Server
	engine *engine

	accesses chan telemetry.Access
	logs     *observer.ObservedLogs
}

// access waits for what is told of the next request.
func (d *door) access() telemetry.Access { return <-d.accesses }

// open starts a server before an engine and a handler that passes requests on.
func open(t testing.TB, e *engine, passthrough http.HandlerFunc) *door {
	t.Helper()
	if passthrough == nil {
		passthrough = func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "passed") }
	}
	core, logs := observer.New(zapcore.DebugLevel)
	d := &door{engine: e, logs: logs, accesses: make(chan telemetry.Access, 64)}
	d.Server = httptest.NewUnstartedServer(server.New(server.Options{
		Engine: e, Passthrough: passthrough, MaxBodyBytes: limit, Log: zap.New(core),
		Observe: func(a telemetry.Access) { d.accesses <- a },
	}))
	d.Config.ErrorLog = zap.NewStdLog(zap.NewNop())
	d.Start()
	t.Cleanup(d.Close)
	return d
}

// exchange writes bytes to the server, closes its own half if cut, and returns all that comes back.
func (d *door) exchange(t testing.TB, cut bool, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", d.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	if cut {
		_ = conn.(*net.TCPConn).CloseWrite()
	}
	answer, _ := io.ReadAll(conn)
	return string(answer)
}

// post sends a body with a coding, "" for none, and returns status and answer.
func (d *door) post(t testing.TB, encoding string, body io.Reader) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.URL+"/v1/chat/completions", body)
	if err != nil {
		t.Fatal(err)
	}
	if encoding != "" {
		request.Header.Set("Content-Encoding", encoding)
	}
	resp, err := d.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(answer)
}

func TestRoutes(t *testing.T) {
	d := open(t, &engine{}, nil)
	for _, c := range []struct{ method, path, want string }{
		{"POST", "/v1/chat/completions", "engine chat"},
		{"POST", "/v1/responses", "engine responses"},
		{"POST", "/openai/deployments/d/chat/completions?api-version=1", "engine chat"},
		{"POST", "/openai/v1/responses?api-version=preview", "engine responses"},
		{"POST", "/chat/completions", "engine chat"},
		{"GET", "/v1/chat/completions", "passed"},
		{"OPTIONS", "/v1/responses", "passed"},
		{"POST", "/v1/responses/", "passed"},
		{"POST", "/v1/responses/resp_1/cancel", "passed"},
		{"POST", "/v1/embeddings", "passed"},
		{"POST", "/v1/myresponses", "passed"},
		{"DELETE", "/v1/responses/resp_1", "passed"},
		{"PROPFIND", "/v1/anything", "passed"},
		{"GET", "/", "passed"},
		{"GET", "/v1/models/org%2Fname", "passed"},
		{"GET", "//a/../b", "passed"},
	} {
		got := d.exchange(t, false, c.method+" "+c.path+" HTTP/1.1\r\nHost: p\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 200") || !strings.HasSuffix(got, c.want) {
			t.Errorf("%s %s: got %q, want %q", c.method, c.path, got, c.want)
		}
	}
}

// What handlers ask of a connection reaches it through every wrapper: without full duplex answers are cut now and then.
func TestWrappersAreTransparent(t *testing.T) {
	ask := func(w http.ResponseWriter, _ *http.Request) {
		control := http.NewResponseController(w)
		for name, err := range map[string]error{
			"full duplex": control.EnableFullDuplex(), "read deadline": control.SetReadDeadline(time.Time{}),
			"write deadline": control.SetWriteDeadline(time.Time{}), "flush": control.Flush(),
		} {
			if err != nil {
				fmt.Fprintf(w, "%s: %v; ", name, err)
			}
		}
		_, _ = io.WriteString(w, "asked")
	}
	d := open(t, &engine{serve: ask}, ask)
	for _, path := range []string{"/v1/responses", "/v1/embeddings"} {
		got := d.exchange(t, false, "POST "+path+" HTTP/1.0\r\nHost: p\r\nContent-Length: 2\r\n\r\n{}")
		if !strings.HasSuffix(got, "\r\n\r\nasked") {
			t.Errorf("%s: %q", path, got)
		}
	}
}

func TestConnectIsRefused(t *testing.T) {
	got := open(t, &engine{}, nil).exchange(t, true, "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 405") {
		t.Errorf("got %q", got)
	}
}

// While there is nothing to look at, a body of any size streams through.
func TestIdleEngineStreamsThrough(t *testing.T) {
	d := open(t, &engine{idle: true}, func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n, err)
	})
	_, got := d.post(t, "unknown", io.MultiReader(bytes.NewReader(make([]byte, 4*limit))))
	if got != fmt.Sprint(4*limit, " <nil>") {
		t.Errorf("got %q", got)
	}
	if a := d.access(); a.Status != http.StatusOK || a.Path != "/v1/chat/completions" {
		t.Errorf("access %+v", a)
	}
}

// writers make writers of every coding.
var writers = map[string]func(io.Writer) io.WriteCloser{
	"gzip":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"br":      func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) },
	"deflate": func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
	"raw deflate": func(w io.Writer) io.WriteCloser {
		f, err := flate.NewWriter(w, flate.BestSpeed)
		if err != nil {
			panic(err)
		}
		return f
	},
	"zstd": func(w io.Writer) io.WriteCloser {
		e, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
		if err != nil {
			panic(err)
		}
		return e
	},
}

func encode(t testing.TB, body []byte, codings ...string) []byte {
	t.Helper()
	for _, coding := range codings {
		var out bytes.Buffer
		w := writers[coding](&out)
		if _, err := w.Write(body); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		body = out.Bytes()
	}
	return body
}

func TestBodies(t *testing.T) {
	plain := []byte(`{"model":"m","messages":[]}`)
	for _, c := range []struct {
		name, encoding string
		body           []byte
		unclear        bool
	}{
		{"plain", "", plain, false},
		{"empty", "", nil, false},
		{"at the limit", "", bytes.Repeat([]byte("x"), limit), false},
		{"identity", "identity", plain, false},
		{"gzip", "gzip", encode(t, plain, "gzip"), false},
		{"x-gzip in capitals", "X-GZIP", encode(t, plain, "gzip"), false},
		{"br", "br", encode(t, plain, "br"), false},
		{"zstd", "zstd", encode(t, plain, "zstd"), false},
		{"deflate", "deflate", encode(t, plain, "deflate"), false},
		{"raw deflate", "deflate", encode(t, plain, "raw deflate"), false},
		{"stacked", "gzip, zstd", encode(t, plain, "gzip", "zstd"), false},
		{"unknown", "compress", plain, true},
		{"not what it says", "gzip", plain, true},
		{"cut within the coding", "zstd", encode(t, plain, "zstd")[:12], true},
	} {
		for _, chunked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s chunked=%v", c.name, chunked), func(t *testing.T) {
				d := open(t, &engine{}, nil)
				var from io.Reader = bytes.NewReader(c.body)
				if chunked {
					from = io.MultiReader(from)
				}
				if _, got := d.post(t, c.encoding, from); got != "engine chat" {
					t.Fatalf("got %q", got)
				}
				got := d.engine.bodies[0]
				if !bytes.Equal(got.Raw, c.body) {
					t.Errorf("raw body of %d bytes, want %d", len(got.Raw), len(c.body))
				}
				want := c.body
				if c.encoding != "" {
					want = plain
				}
				switch {
				case (got.Unclear != "") != c.unclear:
					t.Errorf("unclear: %q", got.Unclear)
				case !c.unclear && !bytes.Equal(got.JSON, want):
					t.Errorf("decoded %.80q", got.JSON)
				}
			})
		}
	}
}

func TestTooLarge(t *testing.T) {
	zeros := make([]byte, 200*limit)
	for _, c := range []struct {
		name, encoding string
		body           io.Reader
	}{
		{"known length", "", bytes.NewReader(zeros[:limit+1])},
		{"chunked", "", io.MultiReader(bytes.NewReader(zeros[:limit+1]))},
		{"gzip bomb", "gzip", bytes.NewReader(encode(t, zeros, "gzip"))},
		{"br bomb", "br", bytes.NewReader(encode(t, zeros, "br"))},
		{"zstd bomb", "zstd", bytes.NewReader(encode(t, zeros, "zstd"))},
		{"stacked bomb", "gzip, gzip", bytes.NewReader(encode(t, zeros, "gzip", "gzip"))},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := open(t, &engine{}, nil)
			resp, got := d.post(t, c.encoding, c.body)
			if resp.StatusCode != http.StatusRequestEntityTooLarge || len(d.engine.bodies) != 0 {
				t.Fatalf("got %d, engine asked %d times", resp.StatusCode, len(d.engine.bodies))
			}
			if gjson.Get(got, "error.code").String() != "request_too_large" ||
				!strings.Contains(gjson.Get(got, "error.message").String(), "65536") {
				t.Errorf("got %s", got)
			}
			if a := d.access(); a.Refused != "request_too_large" || a.Status != http.StatusRequestEntityTooLarge {
				t.Errorf("access %+v", a)
			}
		})
	}
}

func TestCutBody(t *testing.T) {
	for name, request := range map[string]string{
		"known length": "Content-Length: 100\r\n\r\n{\"model\"",
		"chunked":      "Transfer-Encoding: chunked\r\n\r\n8\r\n{\"model\"\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t, &engine{}, nil)
			got := d.exchange(t, true, "POST /v1/responses HTTP/1.1\r\nHost: p\r\n"+request)
			if !strings.HasPrefix(got, "HTTP/1.1 400") || !strings.Contains(got, `"code":"incomplete_body"`) ||
				len(d.engine.bodies) != 0 {
				t.Errorf("got %q", got)
			}
		})
	}
}

// The client that waits for leave to send its body gets it, and is refused without sending where its body is too large.
func TestExpectContinue(t *testing.T) {
	d := open(t, &engine{}, nil)
	conn, err := net.Dial("tcp", d.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	reader := bufio.NewReader(conn)
	head := "POST /v1/chat/completions HTTP/1.1\r\nHost: p\r\nExpect: 100-continue\r\nContent-Length: "
	fmt.Fprintf(conn, "%s2\r\n\r\n", head)
	if line, err := reader.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("%q %v", line, err)
	}
	_, _ = reader.ReadString('\n')
	_, _ = io.WriteString(conn, "{}")
	if resp, err := http.ReadResponse(reader, nil); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", resp, err)
	} else {
		_, _ = io.Copy(io.Discard, resp.Body)
	}
	fmt.Fprintf(conn, "%s%d\r\n\r\n", head, limit+1)
	if resp, err := http.ReadResponse(reader, nil); err != nil || resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Fatalf("%v %v", resp, err)
	}
}

// A request that two readers could take for different ones is refused, or read in one way only and its connection closed.
func TestSmuggling(t *testing.T) {
	for _, c := range []struct{ name, head, body, status, read string }{
		{"both lengths", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n", "200", "{}"},
		{"two different lengths", "Content-Length: 2\r\nContent-Length: 3\r\n", "{} ", "400", ""},
		{"unknown transfer encoding", "Transfer-Encoding: xchunked\r\n", "{}", "501", ""},
		{"twice chunked", "Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n", "501", ""},
		{"signed length", "Content-Length: +2\r\n", "{}", "400", ""},
		{"space before the colon", "Content-Length : 2\r\n", "{}", "400", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := open(t, &engine{}, nil)
			got := d.exchange(t, true, "POST /v1/chat/completions HTTP/1.1\r\nHost: p\r\n"+c.head+"\r\n"+c.body)
			if !strings.HasPrefix(got, "HTTP/1.1 "+c.status) || strings.Count(got, "HTTP/1.1 ") != 1 {
				t.Fatalf("got %q", got)
			}
			read := ""
			for _, b := range d.engine.bodies {
				read += string(b.Raw)
			}
			if read != c.read {
				t.Errorf("the engine read %q, want %q", read, c.read)
			}
		})
	}
}

func TestUpgradeOnInterceptedPath(t *testing.T) {
	d := open(t, &engine{}, nil)
	for _, protocol := range []string{"websocket", "WebSocket", "h2c, websocket"} {
		got := d.exchange(t, true, "GET /v1/responses HTTP/1.1\r\nHost: p\r\nConnection: Upgrade\r\nUpgrade: "+protocol+"\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 426") || !strings.Contains(got, `"code":"websocket_not_supported"`) {
			t.Errorf("%s: got %q", protocol, got)
		}
	}
}

// An upgrade on any other path reaches the upstream, through every wrapper on the way.
func TestUpgradePasses(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		line, _ := buffered.ReadString('\n')
		_, _ = io.WriteString(conn, "echo "+line)
	}))
	defer up.Close()
	client, err := upstream.New(upstream.Options{BaseURL: up.URL, IdleTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	pass := client.Passthrough(zap.NewNop(), func(w http.ResponseWriter, status int, message string) {
		server.WriteError(w, status, "server_error", "upstream_error", message)
	})
	d := open(t, &engine{}, pass.ServeHTTP)
	conn, err := net.Dial("tcp", d.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET /v1/realtime HTTP/1.1\r\nHost: p\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	reader := bufio.NewReader(conn)
	resp, err := http.ReadResponse(reader, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v %v", resp, err)
	}
	_, _ = io.WriteString(conn, "hello\n")
	if line, err := reader.ReadString('\n'); err != nil || line != "echo hello\n" {
		t.Errorf("%q %v", line, err)
	}
}

func TestPanics(t *testing.T) {
	t.Run("before the answer", func(t *testing.T) {
		d := open(t, &engine{serve: func(http.ResponseWriter, *http.Request) { panic("broken") }}, nil)
		resp, got := d.post(t, "", strings.NewReader("{}"))
		if resp.StatusCode != http.StatusInternalServerError || gjson.Get(got, "error.code").String() != "internal_error" {
			t.Errorf("got %d %s", resp.StatusCode, got)
		}
		if d.logs.FilterLevelExact(zapcore.ErrorLevel).Len() != 1 {
			t.Errorf("logs %v", d.logs.All())
		}
	})
	for name, c := range map[string]struct {
		value any
		logs  int
	}{"within the answer": {"broken", 1}, "quiet abort": {http.ErrAbortHandler, 0}} {
		t.Run(name, func(t *testing.T) {
			d := open(t, &engine{serve: func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "data: 1\n\n")
				_ = http.NewResponseController(w).Flush()
				panic(c.value)
			}}, nil)
			got := d.exchange(t, false, "POST /v1/responses HTTP/1.1\r\nHost: p\r\nContent-Length: 2\r\n\r\n{}")
			if !strings.Contains(got, "data: 1") || strings.HasSuffix(got, "0\r\n\r\n") {
				t.Errorf("the broken answer looks whole: %q", got)
			}
			if n := d.logs.FilterLevelExact(zapcore.ErrorLevel).Len(); n != c.logs {
				t.Errorf("%d errors logged, want %d", n, c.logs)
			}
		})
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A stream under way comes to its end, or is cut when the shutdown timeout is over.
func TestShutdown(t *testing.T) {
	for name, c := range map[string]struct {
		timeout time.Duration
		whole   bool
	}{"streams finish": {time.Minute, true}, "streams are cut": {20 * time.Millisecond, false}} {
		t.Run(name, func(t *testing.T) {
			stopping, handled := make(chan struct{}), make(chan struct{})
			ctx, cancel := context.WithCancel(t.Context())
			l, stopped := listen(t), make(chan error, 1)
			go func() {
				stopped <- server.Listener{
					Name: "test", ShutdownTimeout: c.timeout, Log: zap.NewNop(),
					Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						defer close(handled)
						_, _ = io.WriteString(w, "data: 1\n\n")
						_ = http.NewResponseController(w).Flush()
						<-stopping
						if !c.whole {
							<-r.Context().Done()
							if cause := context.Cause(r.Context()); !errors.Is(cause, http.ErrServerClosed) {
								t.Errorf("the cut has the cause %v", cause)
							}
							panic(http.ErrAbortHandler)
						}
						_, _ = io.WriteString(w, "data: 2\n\n")
					}),
				}.Run(ctx, l)
			}()
			transport := &http.Transport{DisableKeepAlives: true}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String(), nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := transport.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			cancel()
			close(stopping)
			got, err := io.ReadAll(resp.Body)
			if (err == nil) != c.whole || c.whole && string(got) != "data: 1\n\ndata: 2\n\n" {
				t.Errorf("got %q, %v", got, err)
			}
			if err := <-stopped; err != nil {
				t.Errorf("run: %v", err)
			}
			<-handled
		})
	}
}

func TestListenerFails(t *testing.T) {
	l := listen(t)
	_ = l.Close()
	err := server.Listener{Name: "clients", Handler: http.NotFoundHandler(), Log: zap.NewNop()}.Run(t.Context(), l)
	if err == nil || !strings.Contains(err.Error(), "serve clients on "+l.Addr().String()) {
		t.Errorf("got %v", err)
	}
}

func BenchmarkBody(b *testing.B) {
	plain := bytes.Repeat([]byte(`{"type":"function"},`), 3<<10)
	for _, encoding := range []string{"", "gzip", "zstd"} {
		body := plain
		if encoding != "" {
			body = encode(b, plain, encoding)
		}
		b.Run("encoding="+encoding, func(b *testing.B) {
			h := server.New(server.Options{Engine: &discarding{}, MaxBodyBytes: limit, Log: zap.NewNop()})
			b.ReportAllocs()
			b.SetBytes(int64(len(plain)))
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, "/v1/responses", bytes.NewReader(body))
				if encoding != "" {
					r.Header.Set("Content-Encoding", encoding)
				}
				h.ServeHTTP(httptest.NewRecorder(), r)
			}
		})
	}
}

// discarding keeps nothing.
type discarding struct{}

func (*discarding) Active(*http.Request) bool                                           { return true }
func (*discarding) Serve(http.ResponseWriter, *http.Request, openai.Dialect, turn.Body) {}
