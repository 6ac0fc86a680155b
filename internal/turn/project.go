package turn

import (
	"tool-search-proxy/internal/openai"
)

// Projected is a request as the upstream would get it in the first round of a new ask.
type Projected struct {
	Body []byte
	// Reason says why the request would pass through instead; Body is then the client's.
	Reason   openai.Reason
	Deferred []string
	// ToolsBefore and ToolsAfter are the bytes of the tools array, Directory those of the directory.
	ToolsBefore, ToolsAfter, Directory int
}

// Project projects one request without sending it anywhere.
func Project(d openai.Dialect, p *Policy, body []byte) (Projected, error) {
	out := Projected{Body: body}
	view, err := d.View(body, nil)
	if err != nil {
		return out, err
	}
	if view.Tools != nil {
		out.ToolsBefore, out.ToolsAfter = len(view.Tools.Raw), len(view.Tools.Raw)
	}
	if out.Reason = view.Passthrough; out.Reason != "" {
		return out, nil
	}
	t := &turn{policy: p, view: view, history: readHistory(view), ask: &ask{}}
	t.catalog = &catalog{tools: view.Tools}
	t.plan = t.catalog.plan(p, &view.Choice, nil, d)
	switch {
	case t.plan.Collision:
		out.Reason = reasonCollision
		return out, nil
	case !t.defers():
		out.Reason = reasonNothing
		return out, nil
	}
	tools := t.plan.render(nil, false)
	projection := openai.Projection{Tools: tools, Directory: t.plan.quoted, Mode: t.plan.mode}
	if t.plan.Encodes() {
		projection.Encode = t.plan.Encode
	}
	out.Body = d.Compose(view, projection)
	out.Deferred = t.plan.Deferred
	out.ToolsAfter, out.Directory = len(tools), len(t.plan.text)
	return out, nil
}
