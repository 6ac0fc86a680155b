package openai

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
)

// readEvents reads a stream to its end: name|data of every event, ":" for one without data.
func readEvents(t testing.TB, from io.Reader, limit int) (events []string, raw []byte, err error) {
	t.Helper()
	r := NewEventReader(from, limit)
	for {
		ev, err := r.Next()
		if err != nil {
			return events, raw, err
		}
		raw = append(raw, ev.Raw...)
		line := string(ev.Name) + "|" + string(ev.Data)
		if ev.Data == nil {
			line = ":"
		}
		if ev.HasID {
			line += "|id"
		}
		if ev.dataAt >= 0 && ev.Data != nil && string(ev.Raw[ev.dataAt:ev.dataAt+len(ev.Data)]) != string(ev.Data) {
			t.Errorf("the data of %q are not at %d", ev.Raw, ev.dataAt)
		}
		events = append(events, line)
	}
}

// inTwo gives a stream in two pieces.
func inTwo(stream string, at int) io.Reader {
	return io.MultiReader(strings.NewReader(stream[:at]), strings.NewReader(stream[at:]))
}

func TestEventReader(t *testing.T) {
	cases := []struct {
		name, stream string
		want         []string
		added        string // to the raw bytes, at the end
	}{
		{"nothing", "", nil, ""},
		{"one", "data: a\n\n", []string{"|a"}, ""},
		{"PC-013 no space", "data:a\nevent:b\nid:c\n\n", []string{"b|a|id"}, ""},
		{"only one space is trimmed", "data:  a \n\n", []string{"| a "}, ""},
		{"PC-037 CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"|a", "|b"}, ""},
		{"PC-037 CR", "data: a\r\rdata: b\r\r", []string{"|a", "|b"}, ""},
		{"PC-037 mixed line ends", "data: a\r\n\ndata: b\n\r\ndata: c\r\r\ndata: d\n\rdata: e\r\n\r\n",
			[]string{"|a", "|b", "|c", "|d", "|e"}, ""},
		{"several data lines", "data: a\ndata: b\ndata\ndata: c\n\n", []string{"|a\nb\n\nc"}, ""},
		{"empty data", "data:\n\ndata\n\n", []string{"|", "|"}, ""},
		{"PC-035 comments", ": OPENROUTER PROCESSING\n\ndata: a\n: within\n\n:\n\n", []string{":", "|a", ":"}, ""},
		{"a name without data", "event: ping\n\ndata: a\n\n", []string{":", "|a"}, ""},
		{"unknown fields", "retry: 10\nx: y\nevent: n\ndata: a\n\n", []string{"n|a"}, ""},
		{"the last name counts", "event: a\nevent: b\ndata: x\n\n", []string{"b|x"}, ""},
		{"blank lines between", "\n\ndata: a\n\n\n\ndata: b\n\n\n", []string{"|a", "|b"}, "-"},
		{"a byte order mark", "\xef\xbb\xbfdata: a\n\n", []string{"|a"}, "-"},
		{"a second byte order mark is none", "data: a\n\n\xef\xbb\xbfdata: b\n\n", []string{"|a", ":"}, ""},
		{"colons in the data", "data: {\"a\":1}\n\n", []string{`|{"a":1}`}, ""},
		{"PC-092 no blank line at the end", "data: {\"a\":1}\n", []string{`|{"a":1}`}, "\n\n"},
		{"no line end at the end", "data: [DONE]", []string{"|[DONE]"}, "\n\n"},
		{"no blank line behind CR", "data: {}\r", []string{"|{}"}, "\n\n"},
		{"an event that was cut", "data: a\n\ndata: {\"a\":", []string{"|a"}, "-"},
		{"a comment that was cut", "data: a\n\n: x", []string{"|a"}, "-"},
		{"a name that was cut", "data: a\n\nevent: x\nda", []string{"|a"}, "-"},
		{"PC-014 a long line", "data: " + strings.Repeat("x", 200_000) + "\n\ndata: b\n\n", []string{"|" +
			strings.Repeat("x", 200_000), "|b"}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			check := func(how string, from io.Reader) {
				events, raw, err := readEvents(t, from, 1<<20)
				if err != io.EOF || strings.Join(events, "\x00") != strings.Join(c.want, "\x00") {
					t.Errorf("%s got %q and %v, want %q", how, events, err, c.want)
				}
				if c.added != "-" && string(raw) != c.stream+c.added && string(raw)+"\n" != c.stream {
					t.Errorf("%s the bytes became %q", how, raw)
				}
			}
			check("whole", strings.NewReader(c.stream))
			check("with the end", iotest.DataErrReader(strings.NewReader(c.stream)))
			if len(c.stream) < 1000 {
				check("byte by byte", iotest.OneByteReader(strings.NewReader(c.stream)))
				for at := range len(c.stream) {
					check("cut at "+strconv.Itoa(at), inTwo(c.stream, at))
				}
			}
		})
	}
}

// TestEventReaderPromptness: an event is there with its last byte, whatever may follow.
func TestEventReaderPromptness(t *testing.T) {
	for _, end := range []string{"\n\n", "\r\n\r", "\r\r", "\n\r"} {
		blocked := errors.New("read on although an event was there")
		r := NewEventReader(io.MultiReader(strings.NewReader("data: a"+end), iotest.ErrReader(blocked)), 1<<20)
		if ev, err := r.Next(); err != nil || string(ev.Data) != "a" {
			t.Errorf("with %q got %q and %v", end, ev.Data, err)
		}
		if _, err := r.Next(); err != blocked {
			t.Errorf("with %q got the error %v", end, err)
		}
	}
	r := NewEventReader(strings.NewReader("data: a\n\ndata: b\n\ndata: c"), 1<<20)
	if r.Buffered() {
		t.Error("an event is there before anything was read")
	}
	for _, want := range []bool{true, false} {
		if _, err := r.Next(); err != nil || r.Buffered() != want {
			t.Errorf("a further event is there: %v, want %v", !want, want)
		}
	}
}

func TestEventReaderErrors(t *testing.T) {
	broken := errors.New("broken")
	events, _, err := readEvents(t, io.MultiReader(strings.NewReader("data: a\n\ndata: {}"),
		iotest.ErrReader(broken)), 1<<20)
	if err != broken || len(events) != 1 {
		t.Errorf("of a broken stream got %q and %v", events, err)
	}
	endless := io.MultiReader(strings.NewReader("data: a\n\ndata: "), bytes.NewReader(make([]byte, 1<<20)))
	if events, _, err := readEvents(t, endless, 1<<16); err != ErrEventTooLong || len(events) != 1 {
		t.Errorf("of an endless line got %d events and %v", len(events), err)
	}
	long := "data: " + strings.Repeat("x", 1<<15) + "\n\n"
	if events, _, err := readEvents(t, strings.NewReader(strings.Repeat(long, 20)), 1<<16); err != io.EOF ||
		len(events) != 20 {
		t.Errorf("of long lines within the limit got %d events and %v", len(events), err)
	}
}

func TestEventAppendWith(t *testing.T) {
	for stream, want := range map[string]string{
		"id: 1\r\nevent: a\r\ndata:x\r\n: c\r\n\r\n": "id: 1\r\nevent: a\r\ndata:{}\r\n: c\r\n\r\n",
		"data: x\n\n":                    "data: {}\n\n",
		"event: n\ndata: [\ndata: ]\n\n": "event: n\ndata: {}\n\n",
	} {
		ev, err := NewEventReader(strings.NewReader(stream), 1<<20).Next()
		if err != nil {
			t.Fatal(err)
		}
		if got := string(ev.appendWith([]byte("before "), []byte("{}"))); got != "before "+want {
			t.Errorf("%q became %q, want %q", stream, got, want)
		}
	}
	if got := string(appendEvent(nil, "n", []byte("a\nb"))); got != "event: n\ndata: a\ndata: b\n\n" {
		t.Errorf("data of two lines became %q", got)
	}
}

// plainEvents reads a stream as the standard says, line by line and all at once.
func plainEvents(stream string) (events []string) {
	stream = strings.TrimPrefix(stream, "\xef\xbb\xbf")
	stream = strings.ReplaceAll(strings.ReplaceAll(stream, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(stream, "\n")
	var data []string
	name := ""
	begun, id := false, false
	for i, line := range lines {
		if i == len(lines)-1 {
			break // a line without an end
		}
		if line == "" {
			if begun {
				event := ":"
				if data != nil {
					event = name + "|" + strings.Join(data, "\n")
				}
				if id {
					event += "|id"
				}
				events = append(events, event)
			}
			data, name, begun, id = nil, "", false, false
			continue
		}
		begun = true
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "data":
			data = append(data, value)
		case "event":
			name = value
		case "id":
			id = true
		}
	}
	return events
}

func FuzzEventReader(f *testing.F) {
	f.Add("data: a\r\n\r\n: c\n\nevent: x\rdata:b\rdata: c\r\r\n\ndata: d\n\n", 3)
	f.Add("\xef\xbb\xbf\n\ndata\n\nid\ndata: \n\n", 1)
	f.Add("\r\n\r\rdata: a\n\r\n", 2)
	f.Fuzz(func(t *testing.T, stream string, step int) {
		ended := stream + "\n\n" // what no blank line ends is looked at in a table
		want := strings.Join(plainEvents(ended), "\x00")
		for _, from := range []io.Reader{strings.NewReader(ended), iotest.OneByteReader(strings.NewReader(ended)),
			&pieces{[]byte(ended), max(step, 1)}} {
			events, _, err := readEvents(t, from, 1<<20)
			if got := strings.Join(events, "\x00"); got != want || err != io.EOF {
				t.Fatalf("%q gave %q and %v, want %q", stream, got, err, want)
			}
		}
		if _, _, err := readEvents(t, strings.NewReader(stream), 1<<20); err != io.EOF {
			t.Fatalf("%q gave the error %v", stream, err)
		}
	})
}

func BenchmarkEventReader(b *testing.B) {
	for name, stream := range map[string][]byte{
		"short": bytes.Repeat([]byte("data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"}}]}\n\n"), 200),
		"long":  []byte("data: " + strings.Repeat("x", 1<<20) + "\n\n"),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(stream)))
			for b.Loop() {
				r := NewEventReader(bytes.NewReader(stream), 1<<24)
				for {
					if _, err := r.Next(); err != nil {
						break
					}
				}
			}
		})
	}
}
