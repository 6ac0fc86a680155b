package upstream

import (
	"net/http"
	"net/textproto"
	"strings"

	"tool-search-proxy/internal/openai"
)

// hopByHop are the headers that concern one connection only (RFC 9110, 7.6.1), and those that no proxy should pass on.
var hopByHop = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade",
}

// ownPrefix begins the headers that are between the client and the proxy.
const ownPrefix = "X-Tool-Search"

// removeHopByHop removes the headers of the connection, those that Connection names included.
func removeHopByHop(h http.Header) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			if name = textproto.TrimString(name); name != "" {
				h.Del(name)
			}
		}
	}
	for _, name := range hopByHop {
		delete(h, name)
	}
}

// header returns the headers that the upstream gets: the client's, without those of the connection and of the proxy.
func (c *Client) header(in http.Header) http.Header {
	h := in.Clone()
	removeHopByHop(h)
	delete(h, "Content-Length")
	for name := range h {
		if strings.HasPrefix(name, ownPrefix) {
			delete(h, name)
		}
	}
	c.authorize(h)
	if _, ok := h["User-Agent"]; !ok {
		h["User-Agent"] = nil // the transport would add its own
	}
	return h
}

// authorize adds the operator's key where the client sends no credentials.
func (c *Client) authorize(h http.Header) {
	if c.options.APIKey == "" {
		return
	}
	for _, name := range openai.CredentialHeaders {
		if h.Get(name) != "" {
			return
		}
	}
	h.Set("Authorization", "Bearer "+c.options.APIKey)
	if strings.HasSuffix(c.base.Hostname(), ".azure.com") {
		h.Set("Api-Key", c.options.APIKey)
	}
}
