package app

import (
	"sync/atomic"

	"tool-search-proxy/internal/config"
	"tool-search-proxy/internal/projection"
	"tool-search-proxy/internal/turn"
)

// policyOf translates the configuration into the policy of projection.
func policyOf(c *config.Config) projection.Policy {
	s := &c.Skills
	return projection.Policy{
		Enabled:         s.ToolSearchEnabled,
		Audit:           s.ToolSearchAudit,
		AlwaysLoaded:    s.ToolSearchAlwaysLoaded,
		Hidden:          s.ToolSearchHiddenTools,
		Prefetch:        s.PrefetchTools,
		PrefetchHide:    s.PrefetchToolsHide,
		BypassModels:    s.ToolSearchBypassModels,
		VirtualName:     s.ToolSearchName,
		Strict:          s.ToolSearchStrict,
		MaxResults:      s.ToolSearchMaxResults,
		MaxRounds:       s.ToolSearchMaxRounds,
		MaxExposed:      s.ToolSearchMaxExposed,
		MinDeferred:     s.ToolSearchMinDeferred,
		TimeLimit:       s.ToolSearchTimeLimit,
		PassUnloaded:    s.ToolSearchUnloadedCalls == config.UnloadedPass,
		TextCalls:       s.ToolSearchTextCalls,
		FailOpen:        s.ToolSearchFailOpen,
		BilledUsage:     s.ToolSearchUsage == config.UsageBilled,
		UsageDetails:    s.ToolSearchUsageDetails,
		KeepResponseID:  s.ToolSearchResponseID == config.ResponseIDFirst,
		Conversation:    s.ToolSearchScope == config.ScopeConversation,
		KeepUsed:        s.ToolSearchKeepUsed,
		DotSeparator:    s.ToolNameDotSeparator,
		DebugHeaders:    s.ToolSearchDebugHeaders,
		AllowHeader:     s.ToolSearchAllowHeader,
		RequestIDHeader: s.ToolSearchRequestIDHeaders,
	}
}

// policies makes the policy of a configuration once, not once a request.
type policies struct {
	last atomic.Pointer[policyFor]
}

type policyFor struct {
	config *config.Config
	policy *turn.Policy
}

// of returns the policy of a configuration.
func (p *policies) of(c *config.Config) *turn.Policy {
	if last := p.last.Load(); last != nil && last.config == c {
		return last.policy
	}
	made := &policyFor{c, turn.NewPolicy(policyOf(c))}
	p.last.Store(made)
	return made.policy
}

// Policy returns the policy of a configuration with tool search on, whatever it says: for trying things out.
func Policy(c *config.Config) *turn.Policy {
	p := policyOf(c)
	p.Enabled, p.Audit = true, false
	return turn.NewPolicy(p)
}
