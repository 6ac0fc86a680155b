package upstream_test

import (
	"bytes"
	"compress/flate"
	"compress/zlib"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"tool-search-proxy/internal/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts an upstream; it is closed at the end of the test.
func serve(t testing.TB, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func client(t testing.TB, o upstream.Options) *upstream.Client {
	t.Helper()
	c, err := upstream.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// pass starts a server that passes everything through to base.
func pass(t testing.TB, o upstream.Options) *httptest.Server {
	t.Helper()
	h := client(t, o).Passthrough(zap.NewNop(), func(w http.ResponseWriter, status int, message string) {
		http.Error(w, message, status)
	})
	return serve(t, h.ServeHTTP)
}

func post(t testing.TB, target string, header http.Header) *http.Request {
	t.Helper()
	in := httptest.NewRequest(http.MethodPost, target, nil)
	if header != nil {
		in.Header = header
	}
	return in
}

func TestTarget(t *testing.T) {
	for _, c := range []struct{ name, base, asked, want string }{
		{"base path stands for v1", "/api/v1", "/v1/chat/completions", "/api/v1/chat/completions"},
		{"v1 alone", "/api/v1", "/v1", "/api/v1"},
		{"v1 as a prefix of a name", "/api/v1", "/v1beta/models", "/v1beta/models"},
		{"other path", "/api/v1", "/openai/deployments/d/chat/completions?api-version=2024-10-21",
			"/openai/deployments/d/chat/completions?api-version=2024-10-21"},
		{"base without a path", "", "/v1/chat/completions", "/v1/chat/completions"},
		{"base with a slash only", "/", "/v1/responses", "/v1/responses"},
		{"base ends in a slash", "/v1/", "/v1/responses", "/v1/responses"},
		{"query stays raw", "/v1", "/v1/x?b=2&a=1;c&%zz&d=%2F", "/v1/x?b=2&a=1;c&%zz&d=%2F"},
		{"empty query", "/v1", "/v1/x?", "/v1/x?"},
		{"escaped slash", "/api/v1", "/v1/models/org%2Fname", "/api/v1/models/org%2Fname"},
		{"nothing is cleaned", "/api/v1", "/v1//a/../b/./c", "/api/v1//a/../b/./c"},
		{"two slashes lead", "/v1", "//v1/x", "//v1/x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			up := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.RequestURI) })
			o := upstream.Options{BaseURL: up.URL + c.base}
			resp, err := client(t, o).Send(t.Context(), post(t, "http://proxy"+c.asked, nil), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			raw(t, pass(t, o).Listener.Addr(), "GET "+c.asked+" HTTP/1.1\r\nHost: proxy\r\nConnection: close\r\n\r\n")
			if len(got) != 2 || got[0] != c.want || got[1] != c.want {
				t.Errorf("asked for %q, sent and passed %q, want %q", c.asked, got, c.want)
			}
		})
	}
}

// raw writes bytes to a server and returns all that comes back.
func raw(t testing.TB, address net.Addr, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

func TestBadBaseURL(t *testing.T) {
	for _, base := range []string{"", "api.example.com/v1", "ftp://x/v1", "http://", "http://a b"} {
		if _, err := upstream.New(upstream.Options{BaseURL: base}); err == nil {
			t.Errorf("%q was accepted", base)
		}
	}
}

func TestRequestHeaders(t *testing.T) {
	var got http.Header
	var host string
	up := serve(t, func(_ http.ResponseWriter, r *http.Request) { got, host = r.Header.Clone(), r.Host })
	c := client(t, upstream.Options{BaseURL: up.URL})
	in := post(t, "http://proxy/v1/chat/completions", http.Header{
		"Authorization": {"Bearer own"}, "Connection": {"keep-alive, X-Drop"}, "X-Drop": {"1"}, "Te": {"trailers"},
		"Keep-Alive": {"5"}, "Upgrade": {"h2c"}, "Proxy-Authorization": {"secret"}, "Expect": {"100-continue"},
		"Content-Encoding": {"zstd"}, "Content-Length": {"999"}, "X-Tool-Search": {"on"}, "X-Tool-Search-Silent": {"1"},
		"X-Many": {"a", "b"}, "X-Forwarded-For": {"10.0.0.1"}, "Accept-Encoding": {"gzip, compress, br;q=0.5"},
	})
	before := in.Header.Clone()
	resp, err := c.Send(t.Context(), in, []byte("{}"), func(h http.Header) { h.Set("Idempotency-Key", "k-2") })
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	want := http.Header{
		"Authorization": {"Bearer own"}, "X-Many": {"a", "b"}, "X-Forwarded-For": {"10.0.0.1"}, "Content-Length": {"2"},
		"Accept-Encoding": {"gzip, br;q=0.5"}, "Idempotency-Key": {"k-2"},
	}
	for name := range got {
		if strings.Join(got[name], "|") != strings.Join(want[name], "|") {
			t.Errorf("%s: got %q, want %q", name, got[name], want[name])
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if host != strings.TrimPrefix(up.URL, "http://") {
		t.Errorf("host %q", host)
	}
	if len(in.Header) != len(before) {
		t.Error("the client's own headers were changed")
	}
}

func TestPassedHeaders(t *testing.T) {
	var got http.Header
	up := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Clone() })
	raw(t, pass(t, upstream.Options{BaseURL: up.URL}).Listener.Addr(), "GET /v1/models HTTP/1.1\r\nHost: proxy\r\n"+
		"Connection: close, X-Drop\r\nX-Drop: 1\r\nX-Tool-Search: off\r\nX-Forwarded-Proto: https\r\n"+
		"X-Many: a\r\nX-Many: b\r\n\r\n")
	if len(got) != 2 || got.Get("X-Forwarded-Proto") != "https" || len(got["X-Many"]) != 2 {
		t.Errorf("got %v", got)
	}
}

func TestAPIKey(t *testing.T) {
	for _, c := range []struct {
		name, header, value, want string
	}{
		{"none of the client's", "", "", "Bearer operator"},
		{"bearer", "Authorization", "Bearer own", "Bearer own"},
		{"azure", "Api-Key", "own", ""},
		{"x-api-key", "X-Api-Key", "own", ""},
		{"google", "X-Goog-Api-Key", "own", ""},
		{"empty", "Authorization", "", "Bearer operator"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			up := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.Header.Get("Authorization")) })
			o := upstream.Options{BaseURL: up.URL, APIKey: "operator"}
			in := post(t, "http://proxy/v1/x", http.Header{})
			line := ""
			if c.header != "" {
				in.Header.Set(c.header, c.value)
				line = c.header + ": " + c.value + "\r\n"
			}
			resp, err := client(t, o).Send(t.Context(), in, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			raw(t, pass(t, o).Listener.Addr(), "GET /v1/x HTTP/1.1\r\nHost: p\r\nConnection: close\r\n"+line+"\r\n")
			if len(got) != 2 || got[0] != c.want || got[1] != c.want {
				t.Errorf("got %q, want %q twice", got, c.want)
			}
		})
	}
}

func TestAcceptEncoding(t *testing.T) {
	for asked, want := range map[string]string{
		"":               "identity",
		"gzip, deflate":  "gzip, deflate",
		"compress":       "identity",
		"*":              "gzip, deflate, br, zstd",
		"*;q=0":          "gzip;q=0, deflate;q=0, br;q=0, zstd;q=0",
		"identity;q=1,x": "identity;q=1",
	} {
		var got string
		up := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("Accept-Encoding") })
		in := post(t, "http://proxy/v1/x", http.Header{})
		if asked != "" {
			in.Header.Set("Accept-Encoding", asked)
		}
		resp, err := client(t, upstream.Options{BaseURL: up.URL}).Send(t.Context(), in, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if got != want {
			t.Errorf("%q: got %q, want %q", asked, got, want)
		}
	}
}

// flushWriter is a compressing writer.
type flushWriter interface {
	io.WriteCloser
	Flush() error
}

// encoders make writers of every coding that can be read.
var encoders = map[string]func(io.Writer) flushWriter{
	"gzip": func(w io.Writer) flushWriter { return gzip.NewWriter(w) },
	"br":   func(w io.Writer) flushWriter { return brotli.NewWriter(w) },
	"zstd": func(w io.Writer) flushWriter {
		e, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
		if err != nil {
			panic(err)
		}
		return e
	},
	"deflate": func(w io.Writer) flushWriter { return zlib.NewWriter(w) },
	"raw deflate": func(w io.Writer) flushWriter {
		f, err := flate.NewWriter(w, flate.DefaultCompression)
		if err != nil {
			panic(err)
		}
		return f
	},
}

// An event that the upstream has flushed is readable before the next one is written, whatever the coding.
func TestDecodesStreamsAsTheyCome(t *testing.T) {
	for name, encode := range encoders {
		t.Run(name, func(t *testing.T) {
			next := make(chan struct{})
			up := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", strings.TrimPrefix(name, "raw "))
				w.Header().Set("Etag", `"x"`)
				e := encode(w)
				for range 3 {
					_, _ = io.WriteString(e, "data: one\n\n")
					_ = e.Flush()
					_ = http.NewResponseController(w).Flush()
					<-next
				}
				_ = e.Close()
			})
			resp, err := client(t, upstream.Options{BaseURL: up.URL}).Send(t.Context(), post(t, "http://p/v1/x", nil), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.Header.Get("Content-Encoding") != "" || resp.Header.Get("Content-Length") != "" {
				t.Errorf("headers do not agree with the body: %v", resp.Header)
			}
			for range 3 {
				event := make([]byte, len("data: one\n\n"))
				if _, err := io.ReadFull(resp.Body, event); err != nil || string(event) != "data: one\n\n" {
					t.Fatalf("%q %v", event, err)
				}
				next <- struct{}{}
			}
			if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) != 0 {
				t.Errorf("%q %v", rest, err)
			}
		})
	}
}

func TestAnswerEncodings(t *testing.T) {
	var stacked bytes.Buffer
	outer := encoders["br"](&stacked)
	inner := encoders["gzip"](outer)
	_, _ = io.WriteString(inner, `{"a":1}`)
	_ = inner.Close()
	_ = outer.Close()
	for _, c := range []struct {
		name, encoding, body, want string
		fails                      bool
	}{
		{name: "plain", body: "x", want: "x"},
		{name: "identity", encoding: "identity", body: "x", want: "x"},
		{name: "stacked", encoding: "gzip, br", body: stacked.String(), want: `{"a":1}`},
		{name: "no body", encoding: "gzip"},
		{name: "unknown", encoding: "compress", body: "x", fails: true},
		{name: "too many", encoding: "gzip,gzip,gzip,gzip,gzip", body: "x", fails: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			up := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if c.encoding != "" {
					w.Header().Set("Content-Encoding", c.encoding)
				}
				_, _ = io.WriteString(w, c.body)
			})
			resp, err := client(t, upstream.Options{BaseURL: up.URL}).Send(t.Context(), post(t, "http://p/v1/x", nil), nil, nil)
			if c.fails {
				if !errors.Is(err, upstream.ErrEncoding) || resp != nil {
					t.Fatalf("got %v, %v", resp, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if got, err := io.ReadAll(resp.Body); err != nil || string(got) != c.want {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// An answer that is not what its coding says is an error to its reader, and can be closed.
func TestBrokenEncoding(t *testing.T) {
	for _, encoding := range []string{"gzip", "deflate", "br", "zstd", "gzip, gzip"} {
		up := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", encoding)
			_, _ = io.WriteString(w, `{"error":"plain after all"}`)
		})
		resp, err := client(t, upstream.Options{BaseURL: up.URL}).Send(t.Context(), post(t, "http://p/v1/x", nil), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(resp.Body); err == nil {
			t.Errorf("%s: read %q", encoding, got)
		}
		_ = resp.Body.Close()
	}
}

func TestRedirectIsHandedOn(t *testing.T) {
	up := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	c := client(t, upstream.Options{BaseURL: up.URL})
	resp, err := c.Send(t.Context(), post(t, "http://p/v1/x", nil), []byte("{}"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusTemporaryRedirect || resp.Header.Get("Location") != "/elsewhere" {
		t.Errorf("got %d %v", resp.StatusCode, resp.Header)
	}
}

// unused returns a base URL at which nothing listens.
func unused(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

func TestErrorsTellApart(t *testing.T) {
	silent := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // until then the server does not see that the other side is gone
		<-r.Context().Done()
	})
	t.Run("unreachable", func(t *testing.T) {
		c := client(t, upstream.Options{BaseURL: unused(t)})
		if _, err := c.Send(t.Context(), post(t, "http://p/v1/x", nil), nil, nil); !errors.Is(err, upstream.ErrUnreachable) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("headers do not come", func(t *testing.T) {
		c := client(t, upstream.Options{BaseURL: silent.URL, HeaderTimeout: 20 * time.Millisecond})
		_, err := c.Send(t.Context(), post(t, "http://p/v1/x", nil), nil, nil)
		var timeout interface{ Timeout() bool }
		if !errors.As(err, &timeout) || !timeout.Timeout() || errors.Is(err, upstream.ErrUnreachable) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("client gone", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Millisecond, cancel)
		c := client(t, upstream.Options{BaseURL: silent.URL})
		if _, err := c.Send(ctx, post(t, "http://p/v1/x", nil), nil, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("certificate", func(t *testing.T) {
		secure := httptest.NewTLSServer(http.NotFoundHandler())
		secure.Config.ErrorLog = zap.NewStdLog(zap.NewNop())
		defer secure.Close()
		c := client(t, upstream.Options{BaseURL: secure.URL})
		if _, err := c.Send(t.Context(), post(t, "http://p/v1/x", nil), nil, nil); !errors.Is(err, upstream.ErrUnreachable) {
			t.Errorf("send: got %v", err)
		}
		if err := c.Ready(t.Context()); !errors.Is(err, upstream.ErrUnreachable) {
			t.Errorf("ready: got %v", err)
		}
	})
}

func TestReady(t *testing.T) {
	asked := false
	up := serve(t, func(http.ResponseWriter, *http.Request) { asked = true })
	if err := client(t, upstream.Options{BaseURL: up.URL + "/v1"}).Ready(t.Context()); err != nil || asked {
		t.Errorf("got %v, asked %v", err, asked)
	}
	c := client(t, upstream.Options{BaseURL: unused(t), ConnectTimeout: time.Second})
	if err := c.Ready(t.Context()); !errors.Is(err, upstream.ErrUnreachable) {
		t.Errorf("got %v", err)
	}
}

// A kept connection that the upstream closes before a word of the next request is out costs no request.
func TestStaleConnection(t *testing.T) {
	up := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	c := client(t, upstream.Options{BaseURL: up.URL})
	for range 50 {
		resp, err := c.Send(t.Context(), post(t, "http://p/v1/x", nil), []byte("{}"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(resp.Body); err != nil || string(got) != "{}" {
			t.Fatalf("%q %v", got, err)
		}
		_ = resp.Body.Close()
		up.CloseClientConnections()
		time.Sleep(time.Millisecond) // the closing travels over the socket; a send that crosses it is another case
	}
}

// Answers are not cut when a fast upstream answers before it has read the body.
func TestPassesShortPosts(t *testing.T) {
	up := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for range 4 {
			_, _ = io.WriteString(w, "data: x\n\n")
			_ = http.NewResponseController(w).Flush()
		}
	})
	proxy := pass(t, upstream.Options{BaseURL: up.URL})
	transport := &http.Transport{DisableKeepAlives: true}
	want := strings.Repeat("data: x\n\n", 4)
	for i := range 1000 {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, proxy.URL+"/v1/x", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := transport.RoundTrip(request)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		got, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || string(got) != want {
			t.Fatalf("request %d: %q %v", i, got, err)
		}
	}
}

// A large body goes up and comes down byte for byte, of a known length or not, while both directions flow.
func TestPassesLargeBodies(t *testing.T) {
	up := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.Header().Set("X-Length", r.Header.Get("Content-Length"))
		_, _ = io.Copy(w, r.Body)
	})
	proxy := pass(t, upstream.Options{BaseURL: up.URL})
	body := bytes.Repeat([]byte("\x00\xff binary \r\n"), 1<<18)
	for name, reader := range map[string]io.Reader{
		"length": bytes.NewReader(body), "chunked": io.MultiReader(bytes.NewReader(body)),
	} {
		t.Run(name, func(t *testing.T) {
			resp, err := proxy.Client().Post(proxy.URL+"/v1/files", "multipart/form-data; boundary=X", reader)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			got, err := io.ReadAll(resp.Body)
			if err != nil || sha256.Sum256(got) != sha256.Sum256(body) {
				t.Errorf("%d bytes of %d, %v", len(got), len(body), err)
			}
		})
	}
}

// What is compressed passes as it is, its headers too.
func TestPassesEncodedAnswers(t *testing.T) {
	up := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Etag", `"e"`)
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "not really gzip")
	})
	got := raw(t, pass(t, upstream.Options{BaseURL: up.URL}).Listener.Addr(),
		"OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: p\r\nConnection: close\r\n\r\n")
	for _, want := range []string{"HTTP/1.1 400", "Content-Encoding: gzip", `Etag: "e"`, "Access-Control-Allow-Origin: *",
		"Content-Length: 15", "not really gzip"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
}

func TestPassthroughRefusals(t *testing.T) {
	silent := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // until then the server does not see that the other side is gone
		<-r.Context().Done()
	})
	for name, c := range map[string]struct {
		o    upstream.Options
		want int
	}{
		"unreachable": {upstream.Options{BaseURL: unused(t)}, http.StatusBadGateway},
		"too slow":    {upstream.Options{BaseURL: silent.URL, HeaderTimeout: 20 * time.Millisecond}, http.StatusGatewayTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			proxy := pass(t, c.o)
			resp, err := proxy.Client().Get(proxy.URL + "/v1/models")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != c.want {
				t.Errorf("got %d, want %d", resp.StatusCode, c.want)
			}
		})
	}
}

// A stream that falls silent is broken, so that nobody takes it for whole.
func TestPassesTrailers(t *testing.T) {
	got := make(chan string, 1)
	up := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		got <- r.Trailer.Get("X-Sum")
	})
	proxy := pass(t, upstream.Options{BaseURL: up.URL})
	raw(t, proxy.Listener.Addr(), "POST /v1/x HTTP/1.1\r\nHost: p\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\nab\r\n0\r\nX-Sum: 7\r\n\r\n")
	if sum := <-got; sum != "7" {
		t.Errorf("the trailer is %q", sum)
	}
}

func TestSilentStreamIsCut(t *testing.T) {
	up := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "data: 1\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	proxy := pass(t, upstream.Options{BaseURL: up.URL, IdleTimeout: 50 * time.Millisecond})
	resp, err := proxy.Client().Get(proxy.URL + "/v1/x")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); err == nil || string(got) != "data: 1\n\n" {
		t.Errorf("got %q, %v", got, err)
	}
}

// A client that reads slowly is no silence of the upstream.
func TestSlowReaderIsNotCut(t *testing.T) {
	body := bytes.Repeat([]byte("x"), 16<<20)
	up := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) })
	proxy := pass(t, upstream.Options{BaseURL: up.URL, IdleTimeout: 200 * time.Millisecond})
	resp, err := proxy.Client().Get(proxy.URL + "/v1/x")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	time.Sleep(500 * time.Millisecond) // longer than the idle timeout, while more is waiting than sockets hold
	if n, err := io.Copy(io.Discard, resp.Body); err != nil || n != int64(len(body)) {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// A client that leaves takes the upstream's request with it, in every phase.
func TestClientGone(t *testing.T) {
	for name, begin := range map[string]bool{"before the headers": false, "within the stream": true} {
		t.Run(name, func(t *testing.T) {
			arrived, cancelled := make(chan struct{}), make(chan struct{})
			up := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if begin {
					_ = http.NewResponseController(w).Flush()
				}
				close(arrived)
				<-r.Context().Done()
				close(cancelled)
			})
			proxy := pass(t, upstream.Options{BaseURL: up.URL})
			ctx, cancel := context.WithCancel(t.Context())
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, proxy.URL+"/v1/x", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				if resp, err := proxy.Client().Do(request); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			}()
			<-arrived
			cancel()
			<-cancelled // or the test run's own timeout says that it never was
			<-done
		})
	}
}

func BenchmarkPassthrough(b *testing.B) {
	answer := bytes.Repeat([]byte("x"), 4<<10)
	up := serve(b, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write(answer)
	})
	proxy := pass(b, upstream.Options{BaseURL: up.URL, IdleTimeout: time.Minute})
	target, err := url.Parse(proxy.URL + "/v1/x")
	if err != nil {
		b.Fatal(err)
	}
	body := bytes.Repeat([]byte("y"), 88<<10)
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		resp, err := proxy.Client().Post(target.String(), "application/json", bytes.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
}
