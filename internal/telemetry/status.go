package telemetry

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"tool-search-proxy/internal/turn"
)

// status remembers what the status page shows: recent asks, savings over time, which deferred tools are used. All of it is
// bounded, and none of it is message content: a search's query is not kept.
type status struct {
	mu      sync.Mutex
	started time.Time
	asks    []*askStatus // oldest first
	periods []period     // oldest first
	used    map[string]int
	totals  totals
	saved   savings // what projection saved
	could   savings // what it could have saved, by the audit
}

// Bounds of what is remembered.
const (
	maxAskStatus  = 200
	maxAskRounds  = 50
	maxPeriods    = 144
	periodLength  = 10 * time.Minute
	maxUsedTools  = 2000
	maxShownNames = 20
)

type totals struct {
	Requests   int `json:"requests"`
	Projected  int `json:"projected"`
	Passed     int `json:"passed"`
	Failed     int `json:"failed"`
	FailOpens  int `json:"fail_opens"`
	Asks       int `json:"asks"`
	Hidden     int `json:"hidden_rounds"`
	Searches   int `json:"searches"`
	Empty      int `json:"empty_searches"`
	Rejected   int `json:"rejected_calls"`
	BytesIn    int `json:"tools_bytes_client"`
	BytesOut   int `json:"tools_bytes_upstream"`
	Before     int `json:"tools_tokens_client_estimated"`
	After      int `json:"tools_tokens_upstream_estimated"`
	Net        int `json:"net_saved_tokens_estimated"`
	AuditNet   int `json:"audit_could_save_tokens_estimated"`
	Input      int `json:"input_tokens_measured"`
	CachedIn   int `json:"cached_input_tokens_measured"`
	Output     int `json:"output_tokens_measured"`
	AuditCalls struct {
		AlwaysLoaded int `json:"always_loaded"`
		First5       int `json:"first_5"`
		Later        int `json:"later"`
		NotFound     int `json:"not_found"`
	} `json:"audit_calls"`
}

// period is a stretch of time.
type period struct {
	Start    time.Time `json:"start"`
	Requests int       `json:"requests"`
	Net      int       `json:"net_saved_estimated"`

	saved savings
}

// askStatus is one ask as a timeline of rounds.
type askStatus struct {
	Time     time.Time     `json:"time"`
	Session  string        `json:"session,omitempty"`
	Dialect  string        `json:"dialect"`
	Model    string        `json:"model"`
	Outcome  string        `json:"outcome"`
	Reason   string        `json:"reason,omitempty"`
	Tools    int           `json:"tools"`
	Deferred int           `json:"deferred"`
	Loaded   []string      `json:"loaded,omitempty"`
	Rounds   []roundStatus `json:"rounds,omitempty"`
}

type roundStatus struct {
	Hidden     bool           `json:"hidden"`
	Status     int            `json:"status"`
	Millis     int64          `json:"ms"`
	ToolsBytes int            `json:"tools_bytes"`
	Input      int64          `json:"input_tokens"`
	Output     int64          `json:"output_tokens"`
	Searches   []searchStatus `json:"searches,omitempty"`
	Called     []string       `json:"called,omitempty"`
}

type searchStatus struct {
	Outcome string   `json:"outcome"`
	Loaded  []string `json:"loaded,omitempty"`
}

func newStatus(started time.Time) *status {
	return &status{started: started, used: make(map[string]int)}
}

func (s *status) turn(t *turn.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(t)
	p := s.period(t.End)
	p.Requests++
	if saved, ok := savingsOf(t); ok {
		s.saved.add(saved)
		p.saved.add(saved)
	}
	if t.Audit != nil {
		s.could.add(savings{Before: len(t.ClientTools), After: t.Audit.Tools + len(t.Directory)})
	}
	if t.Tools == 0 {
		return // it had no tools to speak of
	}
	ask := s.ask(t)
	ask.Outcome, ask.Reason = outcome(t), string(t.Reason)
	ask.Loaded = shown(t.Loaded)
	for i, round := range t.Rounds {
		r := roundStatus{
			Hidden: round.Hidden, Status: round.Status, Millis: round.Duration.Milliseconds(), Input: round.Tokens.Input,
			Output: round.Tokens.Output, ToolsBytes: round.Tools,
		}
		for _, search := range t.Searches {
			if search.Round == i {
				r.Searches = append(r.Searches, searchStatus{searchOutcome(search), shown(search.Loaded)})
			}
		}
		if !round.Hidden {
			r.Called = shown(t.Called)
		}
		if len(ask.Rounds) < maxAskRounds {
			ask.Rounds = append(ask.Rounds, r)
		}
	}
	for _, name := range t.Called {
		if slices.Contains(t.Loaded, name) {
			s.use(name)
		}
	}
	if t.Audit != nil {
		for _, call := range t.Audit.Calls {
			if !call.AlwaysLoaded {
				s.use(call.Name)
			}
		}
	}
}

// use counts a call of a deferred tool.
func (s *status) use(name string) {
	if _, known := s.used[name]; known || len(s.used) < maxUsedTools {
		s.used[name]++
	}
}

func shown(names []string) []string { return names[:min(len(names), maxShownNames)] }

func (s *status) count(t *turn.Report) {
	n := &s.totals
	n.Requests++
	switch outcome(t) {
	case "projected":
		n.Projected++
	case "passed":
		n.Passed++
	case "failed":
		n.Failed++
	}
	if t.FailOpen {
		n.FailOpens++
	}
	if t.NewAsk && (t.Reason == "" || t.Audit != nil) {
		n.Asks++
	}
	n.Searches += len(t.Searches)
	for _, search := range t.Searches {
		if search.Empty {
			n.Empty++
		}
	}
	n.Rejected += t.Rejected
	input, output, cached := tokens(t)
	n.Input, n.Output, n.CachedIn = n.Input+int(input), n.Output+int(output), n.CachedIn+int(cached)
	for _, round := range t.Rounds {
		if round.Hidden {
			n.Hidden++
		}
	}
	if t.Audit == nil {
		return
	}
	for _, call := range t.Audit.Calls {
		best := call.RankByWords
		if best == 0 || call.RankByName > 0 && call.RankByName < best {
			best = call.RankByName
		}
		switch {
		case call.AlwaysLoaded:
			n.AuditCalls.AlwaysLoaded++
		case best > 0 && best <= 5:
			n.AuditCalls.First5++
		case best > 0:
			n.AuditCalls.Later++
		default:
			n.AuditCalls.NotFound++
		}
	}
}

// ask returns the entry of the request's ask: a running one's, or a new one.
func (s *status) ask(t *turn.Report) *askStatus {
	if t.SessionID != "" && !t.NewAsk {
		for i := len(s.asks) - 1; i >= 0; i-- {
			if s.asks[i].Session == t.SessionID {
				return s.asks[i]
			}
		}
	}
	ask := &askStatus{Time: t.Start, Session: t.SessionID, Dialect: t.Dialect, Model: t.Model, Tools: t.Tools, Deferred: t.Deferred}
	if len(s.asks) >= maxAskStatus {
		s.asks = slices.Delete(s.asks, 0, 1)
	}
	s.asks = append(s.asks, ask)
	return ask
}

func (s *status) period(at time.Time) *period {
	start := at.Truncate(periodLength)
	if n := len(s.periods); n > 0 && !s.periods[n-1].Start.Before(start) {
		return &s.periods[n-1]
	}
	if len(s.periods) >= maxPeriods {
		s.periods = slices.Delete(s.periods, 0, 1)
	}
	s.periods = append(s.periods, period{Start: start})
	return &s.periods[len(s.periods)-1]
}

// savings returns what projection saved since the start, and what it could have saved, by the audit.
func (s *status) savings() (saved, could savings) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saved, s.could
}

// usedTool is a deferred tool that was called.
type usedTool struct {
	Name  string `json:"name"`
	Calls int    `json:"calls"`
	// Always says that it is used so often that it should be always loaded.
	Always bool `json:"always_loaded_recommended"`
}

// appendJSON writes everything for the status page.
func (s *status) appendJSON(version, configuration string, bytesPerToken float64, now time.Time) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.totals
	n.BytesIn, n.BytesOut = s.saved.Before, s.saved.After
	n.Before, n.After = int(float64(n.BytesIn)/bytesPerToken), int(float64(n.BytesOut)/bytesPerToken)
	n.Net, n.AuditNet = s.saved.net(bytesPerToken), s.could.net(bytesPerToken)
	for i := range s.periods {
		s.periods[i].Net = s.periods[i].saved.net(bytesPerToken)
	}
	used := make([]usedTool, 0, len(s.used))
	for name, calls := range s.used {
		// A search costs a round: a tool that one ask in five needs is cheaper always loaded.
		used = append(used, usedTool{name, calls, calls >= 5 && calls*5 >= s.totals.Asks})
	}
	slices.SortFunc(used, func(a, b usedTool) int {
		if a.Calls != b.Calls {
			return b.Calls - a.Calls
		}
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return json.Marshal(struct {
		Version       string       `json:"version"`
		Started       time.Time    `json:"started"`
		Now           time.Time    `json:"now"`
		Totals        totals       `json:"totals"`
		Periods       []period     `json:"periods"`
		Used          []usedTool   `json:"used_deferred_tools"`
		Asks          []*askStatus `json:"asks"`
		Configuration string       `json:"configuration"`
	}{version, s.started, now, n, s.periods, used[:min(len(used), 25)], s.asks, configuration})
}
