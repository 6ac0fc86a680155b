package telemetry

import (
	"hash/maphash"
	"sync"

	"github.com/maypok86/otter/v2"
	"github.com/tidwall/gjson"
	"github.com/tiktoken-go/tokenizer"

	"tool-search-proxy/internal/turn"
)

// codec is the tokenizer of the estimates. Its vocabulary takes time and memory to open, so that is done at first use.
var codec = sync.OnceValue(func() tokenizer.Codec {
	c, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		panic(err) // the vocabulary is part of the program
	}
	return c
})

// CountTokens estimates the tokens of a text by the o200k_base vocabulary. Providers write tools in forms of their own, so
// for JSON this is an estimate.
func CountTokens(text []byte) int {
	n, err := codec().Count(string(text))
	if err != nil {
		return len(text) / 4
	}
	return n
}

// savings are the estimated tokens of one request.
type savings struct {
	// Before are the tokens of the client's tools. After are those of the tools and the directory that the upstream got,
	// over all rounds.
	Before, After int
	// Net is what projection saved: Before less After, less the whole input and output of hidden rounds beside their tools.
	Net int
	// Audited says that nothing was projected, and the numbers tell what could have been.
	Audited bool
}

// account estimates what projection saves. It counts beside the requests, in one goroutine, and remembers the tokens of
// single tools.
type account struct {
	queue  chan *turn.Report
	quit   chan struct{}
	done   chan struct{}
	tools  *otter.Cache[uint64, int]
	seed   maphash.Seed
	report func(savings)
	lost   func()
}

const (
	maxQueued     = 256
	maxTokenTools = 20000
)

// newAccount begins to count. report is told of each request, lost of each that was left out.
func newAccount(report func(savings), lost func()) *account {
	a := &account{
		queue: make(chan *turn.Report, maxQueued), quit: make(chan struct{}), done: make(chan struct{}),
		seed:   maphash.MakeSeed(),
		tools:  otter.Must(&otter.Options[uint64, int]{MaximumSize: maxTokenTools}),
		report: report, lost: lost,
	}
	go func() {
		defer close(a.done)
		for {
			select {
			case t := <-a.queue:
				a.report(a.estimate(t))
			case <-a.quit:
				return
			}
		}
	}()
	return a
}

// add queues a request. It never waits.
func (a *account) add(t *turn.Report) {
	if t.ClientTools == nil || len(t.Rounds) == 0 && t.Audit == nil || t.FailOpen {
		return
	}
	select {
	case a.queue <- t:
	default:
		a.lost()
	}
}

func (a *account) close() {
	close(a.quit) // the queue stays open: a request that is being cut may still come to its end
	<-a.done
	a.tools.StopAllGoroutines()
}

func (a *account) estimate(t *turn.Report) savings {
	s := savings{Before: a.count(t.ClientTools)}
	directory := a.count(t.Directory)
	if t.Audit != nil {
		s.After = a.count(t.Audit.Tools) + directory
		s.Net, s.Audited = s.Before-s.After, true
		return s
	}
	s.Net = s.Before
	for _, round := range t.Rounds {
		tools := a.count(round.Tools)
		if tools == 0 {
			tools = s.Before // sent as the client wrote it
		} else {
			tools += directory
		}
		s.After += tools
		s.Net -= tools
		if round.Hidden {
			s.Net -= max(int(round.Tokens.Input)-tools, 0) + int(round.Tokens.Output)
		}
	}
	return s
}

// count returns the tokens of an array of tools or of a text, and keeps the number with it.
func (a *account) count(c *turn.Counted) int {
	if c == nil || len(c.Raw) == 0 {
		return 0
	}
	if n := c.Tokens(); n > 0 {
		return n
	}
	n := 0
	if c.Raw[0] == '[' {
		gjson.ParseBytes(c.Raw).ForEach(func(_, tool gjson.Result) bool {
			n += a.countTool(tool.Raw) + 1
			return true
		})
		n++
	} else {
		n = CountTokens(c.Raw)
	}
	c.SetTokens(n)
	return n
}

func (a *account) countTool(raw string) int {
	sum := maphash.String(a.seed, raw)
	if n, ok := a.tools.GetIfPresent(sum); ok {
		return n
	}
	n := CountTokens([]byte(raw))
	a.tools.Set(sum, n)
	return n
}
