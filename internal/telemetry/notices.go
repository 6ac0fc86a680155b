package telemetry

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"tool-search-proxy/internal/openai"
	"tool-search-proxy/internal/turn"
)

// NoticeOptions say which calls give a notice, what it says and where it goes.
type NoticeOptions struct {
	Mode       string // none, agent, tools, clean or all
	Text       string // the notice of a search; the name in it gives way to a target tool's
	Delivery   string // log, sse or webhook
	WebhookURL string
}

// notices delivers call notices. It never delays a request: what cannot be queued is dropped, and said so.
type notices struct {
	NoticeOptions
	log   *zap.Logger
	queue chan string
	done  chan struct{}
	stop  context.CancelFunc
}

const (
	searchName     = "tool_search" // in the text of a notice
	maxNotices     = 256
	webhookTimeout = 10 * time.Second
)

func newNotices(o NoticeOptions, log *zap.Logger) *notices {
	n := &notices{NoticeOptions: o, log: log, done: make(chan struct{}), stop: func() {}}
	if !n.tells() || o.Delivery != "webhook" {
		close(n.done)
		return n
	}
	ctx, cancel := context.WithCancel(context.Background())
	n.stop = cancel
	n.queue = make(chan string, maxNotices)
	go func() {
		defer close(n.done)
		transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
		defer transport.CloseIdleConnections()
		for {
			select {
			case text := <-n.queue:
				n.post(ctx, transport, text)
			case <-ctx.Done():
				return
			}
		}
	}()
	return n
}

// tells reports whether tool calls give notices. In "agent" only calls of agents do, and those are none of the proxy's.
func (n *notices) tells() bool { return n.Mode == "tools" || n.Mode == "clean" || n.Mode == "all" }

// close stops deliveries; what is still queued is given up.
func (n *notices) close() {
	n.stop()
	<-n.done
}

// notice delivers a notice; for delivery in the stream it returns the comment.
func (n *notices) notice(notice turn.Notice) string {
	if !n.tells() || n.Mode == "clean" && (notice.Silent || notice.Tool == "send_message" || notice.Tool == "end") {
		return ""
	}
	text := n.text(notice)
	switch n.Delivery {
	case "sse":
		return text
	case "webhook":
		select {
		case n.queue <- text:
		default:
			n.log.Warn("a call notice was dropped: too many wait for the webhook")
		}
	default:
		n.log.Info("call notice", zap.String("notice", text))
	}
	return ""
}

func (n *notices) text(notice turn.Notice) string {
	text := n.Text
	if notice.Kind == turn.NoticeTarget {
		if strings.Contains(text, searchName) {
			text = strings.ReplaceAll(text, searchName, notice.Tool)
		} else {
			text = notice.Tool + ": " + text
		}
	}
	if notice.Count > 1 {
		text += " x" + strconv.Itoa(notice.Count)
	}
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(text) // a comment is one line
}

func (n *notices) post(ctx context.Context, transport http.RoundTripper, text string) {
	ctx, cancel := context.WithTimeout(ctx, webhookTimeout)
	defer cancel()
	body := append(openai.AppendString([]byte(`{"text":`), text), '}')
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, n.WebhookURL, bytes.NewReader(body))
	if err != nil {
		n.log.Warn("a call notice could not be sent", zap.Error(err))
		return
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := transport.RoundTrip(request)
	if err != nil {
		n.log.Warn("a call notice could not be sent")
		return
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<16))
	if response.StatusCode >= http.StatusBadRequest {
		n.log.Warn("the webhook refused a call notice", zap.Int("status", response.StatusCode))
	}
}
