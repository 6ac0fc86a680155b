package turn

import (
	"bytes"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"tool-search-proxy/internal/openai"
)

// Audit is what projection would have done to a request that passed through untouched.
type Audit struct {
	// Tools are the bytes of the tools array that the first round would have had.
	Tools int
	// Calls are the tools that the model called.
	Calls []AuditCall
	// Tokens are the usage of the answer, as the upstream measured it.
	Tokens openai.Tokens
	// Unread says that the answer could not be looked at: it was compressed, too large or cut.
	Unread bool
}

// AuditCall is a tool that the model called with all tools at hand. The ranks count from 1; 0 is not found among the first
// auditDepth. A search for the words of the name, and one for the user's own words, show how the model could have come to
// the tool with nothing but the directory.
type AuditCall struct {
	Name         string
	AlwaysLoaded bool
	RankByName   int
	RankByWords  int
}

const (
	auditDepth    = 50
	maxAuditBytes = 4 << 20
	maxAuditWords = 2000 // bytes of the user's message that are searched for
)

// audit passes the request through untouched and reports what projection would have saved.
func (t *turn) audit() {
	a := &Audit{Tools: len(t.plan.render(nil, false)), Unread: true}
	t.report.ClientTools, t.report.Directory = t.catalog.tools.Raw, t.plan.text
	t.report.Audit, t.report.NewAsk = a, !t.history.continues
	copied := &copying{ResponseWriter: t.client.w}
	t.client.w = copied
	t.passthrough(reasonAudit)
	round, ok := t.readAudited(copied)
	a.Unread = !ok
	a.Tokens = openai.ReadTokens(round.Usage)
	words := t.userWords()
	for _, call := range round.Calls {
		i, known := t.plan.Function(call.Name)
		if !known {
			continue
		}
		c := AuditCall{Name: call.Name, AlwaysLoaded: t.plan.Keep[i]}
		if !c.AlwaysLoaded {
			c.RankByName = t.rankOf(call.Name, nameWords.Replace(call.Name))
			c.RankByWords = t.rankOf(call.Name, words)
		}
		a.Calls = append(a.Calls, c)
	}
}

var nameWords = strings.NewReplacer("_", " ", ".", " ", "-", " ")

// rankOf returns the place of a tool among the results of a query.
func (t *turn) rankOf(name, query string) int {
	for i, hit := range t.plan.index().Search(query, auditDepth).Hits {
		if hit.Name == name {
			return i + 1
		}
	}
	return 0
}

// userWords returns the text of the user messages that began the ask.
func (t *turn) userWords() string {
	var raw bytes.Buffer
	for _, item := range t.view.Items[:t.history.start] {
		switch item.Kind {
		case openai.KindUser:
			t.view.WriteUserText(&raw, item)
		case openai.KindAssistant, openai.KindCall, openai.KindResult:
			raw.Reset()
		}
	}
	text := raw.Bytes()
	text = text[:min(len(text), maxAuditWords)]
	var words strings.Builder
	for part := range bytes.SplitSeq(text, []byte{0}) {
		words.WriteString(gjson.Parse(`"` + string(part) + `"`).String())
		words.WriteByte(' ')
	}
	return words.String()
}

// readAudited reads the calls out of a copied answer.
func (t *turn) readAudited(c *copying) (round openai.Round, ok bool) {
	h := c.Header()
	if c.overflow || t.client.status != http.StatusOK || h.Get("Content-Encoding") != "" {
		return round, false
	}
	answer := t.dialect.NewAnswer(t.view, openai.AnswerOptions{})
	answer.Begin(allVisible{})
	if !isEventStream(h) {
		answer.Whole(c.copied.Bytes())
		return answer.End(), true
	}
	reader := openai.NewEventReader(&c.copied, maxAuditBytes)
	var spare []byte
	for answer.Progress() != openai.Over {
		ev, err := reader.Next()
		if err != nil {
			break
		}
		spare = answer.Event(spare[:0], ev)
	}
	return answer.End(), true
}

// allVisible takes every call for the client's.
type allVisible struct{}

func (allVisible) Classify(string) openai.Class { return openai.Visible }
func (allVisible) MayBeHidden(string) bool      { return false }

// copying keeps a bounded copy of what is written.
type copying struct {
	http.ResponseWriter
	copied   bytes.Buffer
	overflow bool
}

func (c *copying) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *copying) Write(b []byte) (int, error) {
	if c.overflow = c.overflow || c.copied.Len()+len(b) > maxAuditBytes; !c.overflow {
		c.copied.Write(b)
	}
	return c.ResponseWriter.Write(b)
}
