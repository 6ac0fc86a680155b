package turn

import (
	"bytes"
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"tool-search-proxy/internal/openai"
	"tool-search-proxy/internal/projection"
)

// catalog is what is known of one tools array: where its tools are, and what the policies in force make of them. Agents
// send the same array on every turn, so the last ones are remembered.
type catalog struct {
	tools *openai.Tools
	own   bool // the tools have bytes of their own

	mu    sync.Mutex
	plans map[string]*plan
}

// plan is a projection's plan with what follows from it alone.
type plan struct {
	*projection.Plan
	catalog *catalog
	virtual []byte // raw JSON of the virtual tool
	drop    []bool
	mode    string // replaces an allowed_tools choice
	text    string // the directory, "" if nothing is deferred
	quoted  []byte // the same as a raw JSON string, nil if nothing is deferred

	index   func() *projection.Index
	mu      sync.Mutex
	renders map[string][]byte // projected arrays by what is loaded
}

// Bounds of what one catalog remembers.
const (
	maxPlans   = 8
	maxRenders = 16
)

// plan returns the plan of the catalog's tools under a policy.
func (c *catalog) plan(p *Policy, choice *openai.Choice, prefetched []string, d openai.Dialect) *plan {
	key := planKey(p, choice, prefetched, d)
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.plans[key]; ok {
		return known
	}
	names := make([]string, len(c.tools.Functions))
	for i := range c.tools.Functions {
		names[i] = c.tools.Functions[i].Name
	}
	request := projection.Request{Names: names, Others: c.tools.CustomNames(), Prefetched: prefetched}
	if choice.Form == openai.AllowedTools {
		request.Allows = choice.Allows
	}
	request.Forced = c.tools.Forced(choice)
	made := &plan{
		Plan:    p.Plan(request),
		catalog: c,
		virtual: d.VirtualTool(p.VirtualName, p.Strict),
		drop:    c.tools.Dropped(choice),
		renders: make(map[string][]byte),
	}
	if choice.Form == openai.AllowedTools {
		made.mode = choice.Mode
	}
	if len(made.Deferred) >= max(p.MinDeferred, 1) {
		made.text = made.Directory()
		made.quoted = openai.AppendString(nil, made.text)
	}
	made.index = sync.OnceValue(made.buildIndex)
	if c.plans == nil || len(c.plans) >= maxPlans {
		c.plans = make(map[string]*plan)
	}
	c.plans[key] = made
	return made
}

func planKey(p *Policy, choice *openai.Choice, prefetched []string, d openai.Dialect) string {
	var s strings.Builder
	s.WriteString(d.Name())
	s.WriteString(p.encoded)
	for _, name := range prefetched {
		s.WriteString("\x00p" + name)
	}
	switch choice.Form {
	case openai.ChoiceFunction:
		s.WriteString("\x00f" + choice.Function)
	case openai.AllowedTools:
		s.WriteString("\x00m" + choice.Mode)
		for _, a := range choice.Allowed {
			s.WriteString("\x00a" + a.Type + "\x00" + a.Label)
		}
	}
	return s.String()
}

// builder compiles indexes; it remembers the words of single tools.
var builder projection.Builder

func (p *plan) buildIndex() *projection.Index {
	tools := p.catalog.tools
	list := make([]projection.Tool, 0, len(tools.Functions))
	for i := range tools.Functions {
		if p.Removed[i] {
			continue
		}
		f := &tools.Functions[i]
		list = append(list, projection.Tool{
			Name: f.Name, Description: tools.DescriptionText(f), Parameters: f.Parameters.Of(tools.Raw),
		})
	}
	return builder.Index(list)
}

// render returns the tools array of a round: what is kept, the virtual tool, what is loaded. all exposes every tool and
// leaves the virtual one out, for the last round at the bound.
func (p *plan) render(loaded []int, all bool) []byte {
	key := renderKey(loaded, all)
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, ok := p.renders[key]; ok {
		return known
	}
	s := openai.Selection{Keep: p.Keep, Drop: p.drop, Loaded: loaded}
	if p.text != "" && !all {
		s.Virtual = p.virtual
	}
	if p.text == "" || all {
		s.Keep = make([]bool, len(p.Keep))
		for i := range s.Keep {
			s.Keep[i] = !p.Removed[i]
		}
		s.Loaded = nil
	}
	if p.Encodes() {
		s.Encode = p.Encode
	}
	out := p.catalog.tools.Render([]byte{}, s)
	if len(p.renders) >= maxRenders {
		clear(p.renders)
	}
	p.renders[key] = out
	return out
}

func renderKey(loaded []int, all bool) string {
	if all {
		return "all"
	}
	key := make([]byte, 0, 4*len(loaded))
	for _, i := range loaded {
		key = append(key, byte(i), byte(i>>8), byte(i>>16), byte(i>>24))
	}
	return string(key)
}

// catalogs remembers the last tools arrays. An array is kept on its second sighting only, so that clients whose tools
// differ every time cost no copies; and each is found only by the credential that sent it.
type catalogs struct {
	mu     sync.RWMutex
	known  []*knownCatalog // the one found last first
	seen   [seenCatalogs]uint64
	next   int
	hashed maphash.Seed
}

type knownCatalog struct {
	credential string
	*catalog
}

const (
	maxCatalogs      = 32
	maxCatalogsBytes = 8 << 20
	seenCatalogs     = 256
)

func newCatalogs() catalogs { return catalogs{hashed: maphash.MakeSeed()} }

// find returns the catalog whose array stands at the start of rest, nil if none is known.
func (c *catalogs) find(credential string, rest []byte) *catalog {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, k := range c.known {
		if k.credential == credential && bytes.HasPrefix(rest, k.tools.Raw) {
			return k.catalog
		}
	}
	return nil
}

// add makes a catalog of tools, and remembers it if its array was seen before.
func (c *catalogs) add(credential string, tools *openai.Tools) *catalog {
	sum := maphash.Bytes(c.hashed, tools.Raw) ^ maphash.String(c.hashed, credential)
	c.mu.Lock()
	again := slices.Contains(c.seen[:], sum)
	if !again {
		c.seen[c.next%seenCatalogs] = sum
		c.next++
	}
	c.mu.Unlock()
	if !again {
		return &catalog{tools: tools}
	}
	added := &knownCatalog{credential, &catalog{tools: tools.Detach(), own: true}}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.known {
		if k.credential == credential && bytes.Equal(k.tools.Raw, tools.Raw) {
			return k.catalog // another request was faster
		}
	}
	list := []*knownCatalog{added}
	size := len(tools.Raw)
	for _, k := range c.known {
		if size += len(k.tools.Raw); len(list) >= maxCatalogs || size > maxCatalogsBytes {
			break
		}
		list = append(list, k)
	}
	c.known = list
	return added.catalog
}
