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
//	call:ID#DIGEST   a tool call; ids repeat on some servers, so name and arguments are part of it
//	item:ID          an item with an id of its own (Responses)
//	text:DIGEST      an assistant message without calls and ids
//
// Digests are cut to 96 bits.

// CallAnchor names a call of an answer.
func CallAnchor(c Call) string { return callAnchor(c.ID, c.Name, c.Arguments) }

func callAnchor(id, name string, arguments []byte) string {
	h := sha256.New()
	h.Write([]byte(name))
	h.Write([]byte{0})
	h.Write(pretty.Ugly(arguments)) // clients may write the arguments with other white space
	return "call:" + id + "#" + digest(h.Sum(nil))
}

// ItemAnchor names an item by its id.
func ItemAnchor(id string) string { return "item:" + id }

// TextAnchor names an assistant message by its text, outer white space aside.
func TextAnchor(text string) string {
	sum := sha256.Sum256([]byte(strings.TrimSpace(text)))
	return "text:" + digest(sum[:])
}

func digest(sum []byte) string { return base64.RawURLEncoding.EncodeToString(sum[:12]) }

// HasItem reports whether an item of the request bears this id.
func (v *View) HasItem(id string) bool {
	return slices.ContainsFunc(v.Items, func(item Item) bool { return item.ID == id })
}

// OutputAnchors returns anchors of the newest output items that are no calls, at most so many of them: of those with an id,
// and of reasoning that only its encrypted content tells.
func (v *View) OutputAnchors(most int) []string {
	var out []string
	for i := len(v.Items) - 1; i >= 0 && most > 0; i-- {
		item := v.Items[i]
		if item.Kind != KindAssistant {
			continue
		}
		most--
		if item.ID != "" {
			out = append(out, ItemAnchor(item.ID))
		} else if encrypted := text(v.Body, find(v.Body, item.Start, "encrypted_content")); encrypted != "" {
			out = append(out, TextAnchor(encrypted))
		}
	}
	return out
}

// OutputAnchors returns the anchors under which the last visible items of an answer come back, calls aside, at most so many.
func (s Splice) OutputAnchors(most int) []string {
	var out []string
	for i := len(s.Anchors) - 1; i >= 0 && len(out) < most; i-- {
		_, anchor, ok := strings.Cut(s.Anchors[i], ">")
		if kind, _, _ := strings.Cut(anchor, ":"); ok && (kind == "item" || kind == "text") {
			out = append(out, anchor)
		}
	}
	return out
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

// anchorIndex finds splices by the anchors of a request. Calls are looked up by id first, so that most of the history
// costs no digest.
type anchorIndex struct {
	byAnchor map[string]int
	callIDs  map[string]bool
	texts    bool
}

func indexAnchors(splices []Splice) anchorIndex {
	x := anchorIndex{byAnchor: make(map[string]int), callIDs: make(map[string]bool)}
	for i, s := range splices {
		for _, a := range s.Anchors {
			x.byAnchor[a] = i
			if id, ok := strings.CutPrefix(a, "call:"); ok {
				x.callIDs[id[:strings.LastIndexByte(id, '#')]] = true
			}
			x.texts = x.texts || strings.HasPrefix(a, "text:")
		}
	}
	return x
}

func (x anchorIndex) find(anchor string) int {
	if i, ok := x.byAnchor[anchor]; ok {
		return i
	}
	return -1
}

func (x anchorIndex) call(v *View, c Call) (int, bool) {
	if !x.callIDs[c.ID] {
		return 0, false
	}
	i, ok := x.byAnchor[v.Anchor(c)]
	return i, ok
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
