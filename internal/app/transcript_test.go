package app

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"tool-search-proxy/internal/upstreamtest"
)

var update = flag.Bool("update", false, "write the golden parts of the transcripts: what the upstream is sent and what the client gets")

// The fixed rule text beside the directory is left out of the transcripts: it has tests of its own.
const (
	ruleStart = "More tools exist than are shown."
	ruleEnd   = "<available_deferred_tools"
)

// A transcript is a conversation as a txtar archive, one file a case. Files of client request N, in this order:
//
//	settings              section.key=value, one a line; only in the beginning, may be missing
//	N.client.request      the request line, header fields, an empty line, the body
//	N.K.upstream.request  golden: the body of round K as the upstream gets it
//	N.K.upstream.answer   scripted: an optional status line ("HTTP 404") and the body, an event stream if it looks like one
//	N.client.answer       golden: the status, the content type and the body that the client gets
//
// Every body ends before the last line break of its file.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/transcripts/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				archive.Files = playTranscript(t, archive.Files, 0)
				if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			// However the upstream's bytes are cut, the same bytes arrive.
			for _, chunk := range []int{0, upstreamtest.ByEvent, 1, 7} {
				compareTranscripts(t, chunk, archive.Files, playTranscript(t, archive.Files, chunk))
			}
		})
	}
}

// playTranscript plays the requests and scripted answers of a transcript, the streams in writes of chunk bytes, and
// returns the transcript as it went.
func playTranscript(t *testing.T, script []txtar.File, chunk int) (played []txtar.File) {
	t.Helper()
	upstream := upstreamtest.New(t, upstreamtest.OptionFunc(func(s *upstreamtest.Script) { s.StreamChunk = chunk }))
	var settings []string
	if script[0].Name == "settings" {
		settings = strings.Fields(string(script[0].Data))
		played, script = append(played, script[0]), script[1:]
	}
	_, url, _ := startProxy(t, upstream.URL+"/v1", settings)
	sent := 0
	for number := 1; len(script) > 0; number++ {
		request := script[0]
		if request.Name != fmt.Sprintf("%d.client.request", number) {
			t.Fatalf("%q stands where client request %d should", request.Name, number)
		}
		var answers []txtar.File
		for script = script[1:]; len(script) > 0 && !strings.HasSuffix(script[0].Name, "client.request"); script = script[1:] {
			if strings.HasSuffix(script[0].Name, "upstream.answer") {
				answers = append(answers, script[0])
				upstream.Add(scriptedAnswer(t, script[0].Data))
			}
		}
		played = append(played, request)
		reply := sendTranscribed(t, url, request.Data)
		for i, q := range upstream.Requests()[sent:] {
			name := fmt.Sprintf("%d.%d.upstream", number, i+1)
			played = append(played, txtar.File{Name: name + ".request", Data: append(withoutRule(q.Body), '\n')})
			if i < len(answers) {
				played = append(played, answers[i])
			}
		}
		sent = len(upstream.Requests())
		if n := upstream.Remaining(); n > 0 {
			t.Errorf("%d answers to client request %d were not asked for", n, number)
		}
		played = append(played, txtar.File{Name: fmt.Sprintf("%d.client.answer", number), Data: append(withoutRule(reply), '\n')})
	}
	return played
}

func compareTranscripts(t *testing.T, chunk int, want, got []txtar.File) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("chunks of %d: the transcript has %d parts, want %d:\n%s", chunk, len(got), len(want), txtar.Format(&txtar.Archive{Files: got}))
	}
	for i := range want {
		if got[i].Name != want[i].Name || !bytes.Equal(got[i].Data, want[i].Data) {
			t.Fatalf("chunks of %d: %s is\n%s\nwant %s\n%s", chunk, got[i].Name, got[i].Data, want[i].Name, want[i].Data)
		}
	}
}

// scriptedAnswer reads an upstream.answer.
func scriptedAnswer(t *testing.T, data []byte) upstreamtest.Answer {
	t.Helper()
	answer := upstreamtest.Answer{Body: bytes.TrimSuffix(data, []byte("\n"))}
	if line, body, found := bytes.Cut(answer.Body, []byte("\n")); bytes.HasPrefix(line, []byte("HTTP ")) {
		if _, err := fmt.Sscanf(string(line), "HTTP %d", &answer.Status); err != nil || !found {
			t.Fatalf("%q is no status line: %v", line, err)
		}
		answer.Body = body
	}
	return answer
}

// sendTranscribed sends a client.request and returns what becomes the client.answer.
func sendTranscribed(t *testing.T, url string, data []byte) []byte {
	t.Helper()
	head, body, found := bytes.Cut(bytes.TrimSuffix(data, []byte("\n")), []byte("\n\n"))
	line, fields, _ := strings.Cut(string(head), "\n")
	method, path, ok := strings.Cut(line, " ")
	if !found || !ok {
		t.Fatalf("%q is no request", head)
	}
	header, err := textproto.NewReader(bufio.NewReader(strings.NewReader(fields + "\n\n"))).ReadMIMEHeader()
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, url+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = http.Header(header)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return append(fmt.Appendf(nil, "%d %s\n", response.StatusCode, response.Header.Get("Content-Type")), got...)
}

// withoutRule returns a body whose rule text is one word.
func withoutRule(body []byte) []byte {
	before, after, found := bytes.Cut(body, []byte(ruleStart))
	if !found {
		return body
	}
	_, after, found = bytes.Cut(after, []byte(ruleEnd))
	if !found {
		return body
	}
	return bytes.Join([][]byte{before, []byte("RULE"), []byte(ruleEnd), after}, nil)
}
