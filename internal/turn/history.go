package turn

import (
	"crypto/sha256"
	"encoding/base64"

	"tool-search-proxy/internal/openai"
)

// history says what part of a request's items belongs to which ask.
type history struct {
	view *openai.View
	// continues says that the request goes on with an ask, and is not the user's next request.
	continues bool
	// start is the first item behind the user messages that began the ask: the ask's own rounds.
	start int
	// ends are the ends of the runs of user messages that began an ask, oldest first; the last one is start.
	ends []int
}

// readHistory finds out where asks begin. A run of user messages begins one, unless it follows a tool result directly: then
// it is a reminder, or steers the running ask. System messages, and items that are none of the conversation, do not count.
func readHistory(v *openai.View) history {
	h := history{view: v}
	last := openai.KindOther // of the items that count
	steering := false
	for i, item := range v.Items {
		switch item.Kind {
		case openai.KindSystem, openai.KindOther:
			continue
		case openai.KindUser:
			if last == openai.KindResult || last == openai.KindUser && steering {
				steering = true
				break
			}
			if last == openai.KindUser {
				h.ends[len(h.ends)-1] = i + 1
			} else {
				h.ends = append(h.ends, i+1)
			}
			steering = false
		default:
			steering = false
		}
		last = item.Kind
	}
	if n := len(h.ends); n > 0 {
		h.start = h.ends[n-1]
	}
	h.continues = last != openai.KindUser && last != openai.KindOther || steering
	return h
}

// digests returns the digests of the user's messages up to the beginning of each of the newest asks, newest first. The
// first one names the running ask.
func (h history) digests(most int) []string {
	if len(h.ends) == 0 {
		return nil
	}
	sum := sha256.New()
	var out []string
	from := 0
	for n, end := range h.ends {
		for _, item := range h.view.Items[from:end] {
			if item.Kind == openai.KindUser {
				h.view.WriteUserText(sum, item)
			}
		}
		from = end
		if len(h.ends)-n <= most {
			out = append(out, base64.RawURLEncoding.EncodeToString(sum.Sum(nil)[:12]))
		}
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// askOf returns which of the asks, counted from the newest, an item belongs to; -1 if it stands before all of them.
func (h history) askOf(item int) int {
	for n := len(h.ends) - 1; n >= 0; n-- {
		if h.ends[n] <= item {
			return len(h.ends) - 1 - n
		}
	}
	return -1
}

// newestCall returns the index of the newest item from item from on that holds calls, -1 if none does.
func (h history) newestCall(from int) int {
	for i := len(h.view.Items) - 1; i >= from; i-- {
		if len(h.view.Items[i].Calls) > 0 {
			return i
		}
	}
	return -1
}

// calls returns the function calls from item from on, newest first, at most so many.
func (h history) calls(from, most int) []openai.Call {
	var out []openai.Call
	for i := len(h.view.Items) - 1; i >= from && len(out) < most; i-- {
		calls := h.view.Items[i].Calls
		for k := len(calls) - 1; k >= 0 && len(out) < most; k-- {
			out = append(out, calls[k])
		}
	}
	return out
}

// answered reports whether the result of a call stands in the request.
func (h history) answered(id string) bool {
	for i := len(h.view.Items) - 1; i >= 0; i-- {
		if h.view.Items[i].ResultOf == id {
			return true
		}
	}
	return false
}
