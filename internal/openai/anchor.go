package openai

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/pretty"
)

// An anchor names a visible item of a conversation, so that it is found again in a later request:
//
//	call:ID#DIGEST     a tool call; ids repeat on some servers, so name and arguments are part of it
//	item:ID            an item with an id of its own (Responses)
//	encrypted:DIGEST   reasoning by its encrypted content, for clients that leave ids out (Responses)
//
// A text is no anchor: two conversations may hold the same, and a hidden round belongs to one of them only. Digests are cut to
// 96 bits.

// CallAnchor names a call of an answer.
func CallAnchor(c Call) string { return callAnchor(c.ID, c.Name, c.Arguments) }

func callAnchor(id, name string, arguments []byte) string {
	h := sha256.New()
	h.Write([]byte(name))
	h.Write([]byte{0})
	h.Write(pretty.Ugly(arguments)) // clients may write the arguments with other white space
	return "call:" + id + "#" + digest(h.Sum(nil))
}

func itemAnchor(id string) string { return "item:" + id }

func encryptedAnchor(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "encrypted:" + digest(sum[:])
}

func digest(sum []byte) string { return base64.RawURLEncoding.EncodeToString(sum[:12]) }

// HasItem reports whether an item of the request bears this id.
func (v *View) HasItem(id string) bool {
	return slices.ContainsFunc(v.Items, func(item Item) bool { return item.ID == id })
}

// OutputAnchors returns anchors of the newest output items that are no calls, at most so many of them.
func (v *View) OutputAnchors(most int) []string {
	var out []string
	for i := len(v.Items) - 1; i >= 0 && most > 0; i-- {
		if v.Items[i].Kind == KindAssistant {
			most--
			if anchor := v.outputAnchor(i); anchor != "" {
				out = append(out, anchor)
			}
		}
	}
	return out
}

// outputAnchor returns the anchor of the output item at an index, "" if nothing tells it from others.
func (v *View) outputAnchor(i int) string {
	item := v.Items[i]
	if item.ID != "" {
		return itemAnchor(item.ID)
	}
	if encrypted := text(v.Body, find(v.Body, item.Start, "encrypted_content")); encrypted != "" {
		return encryptedAnchor(encrypted)
	}
	return ""
}

// anchoredCall returns the id of the call that an anchor names.
func anchoredCall(anchor string) string {
	id, _ := strings.CutPrefix(anchor, "call:")
	return id[:max(strings.LastIndexByte(id, '#'), 0)]
}

// Anchor returns the anchor of a call in the client's history.
func (v *View) Anchor(c Call) string {
	return callAnchor(c.ID, c.Name, v.arguments(c))
}

// arguments returns the JSON text of a call's arguments: mostly a string that holds it, on some servers the object itself.
func (v *View) arguments(c Call) []byte {
	if isString(v.Body, c.ArgumentsAt) {
		return unescaped(v.Body[c.ArgumentsAt.Start+1 : c.ArgumentsAt.End-1])
	}
	if isNull(v.Body, c.ArgumentsAt) {
		return nil
	}
	return c.ArgumentsAt.Of(v.Body)
}

// contentText joins the text of a message's content, a string or parts.
func contentText(b []byte, content Range) string {
	if !startsWith(b, content, '[') {
		return text(b, content)
	}
	var s strings.Builder
	for _, part := range elements(b, content.Start) {
		if startsWith(b, part, '{') {
			s.WriteString(gjson.GetBytes(part.Of(b), "text").String())
		}
	}
	return s.String()
}
