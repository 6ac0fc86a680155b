package upstreamtest

import (
	"bytes"
	"slices"

	"github.com/tidwall/gjson"
)

// state is what the real API remembers between requests. The Server's mutex guards it.
type state struct {
	stored        map[string][]item // whole context behind each stored response, by response id
	conversations map[string][]item // created by their first use
	locked        map[string]bool   // conversations with a request under way
	items         map[string]item   // stored items by id
	emitted       map[string]emission
	reasoning     map[string]spoken // Chat: reasoning beside a call, by call id
}

// emission is an output item that the server once sent, stored or not.
type emission struct {
	reasoning     string // id of the reasoning item that this item needs before it
	partner       item   // of a reasoning item: what must follow it
	encrypted     string
	authorization string // of the request that it answered
	unstored      bool   // the request said store:false
}

// spoken is a reasoning member of a Chat message.
type spoken struct{ member, text string }

func newState() *state {
	return &state{
		stored: map[string][]item{}, conversations: map[string][]item{},
		locked: map[string]bool{}, items: map[string]item{}, emitted: map[string]emission{}, reasoning: map[string]spoken{},
	}
}

func (s *state) unstoredHint(id string) string {
	if s.emitted[id].unstored {
		return " Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this " +
			"item from your input."
	}
	return ""
}

// learn takes in what an exchange leaves behind. played is nil for answers that failed or were cut.
func (s *state) learn(exchange *exchange) {
	if exchange.locks != "" {
		delete(s.locked, exchange.locks)
	}
	if exchange.played == nil {
		return
	}
	switch exchange.dialect {
	case chat:
		s.learnChat(exchange.played)
	case responses:
		s.learnResponse(exchange)
	}
}

func (s *state) learnChat(played []byte) {
	message := AccumulateChat(played)
	for _, member := range []string{"reasoning_content", "reasoning"} {
		text := gjson.GetBytes(message, member)
		if text.Type != gjson.String {
			continue
		}
		for _, call := range gjson.GetBytes(message, "tool_calls").Array() {
			s.reasoning[call.Get("id").String()] = spoken{member, text.String()}
		}
	}
}

func (s *state) learnResponse(exchange *exchange) {
	response, output := finalResponse(exchange.played)
	id := response.Get("id").String()
	switch response.Get("status").String() {
	case "completed", "incomplete":
	default:
		return
	}
	store := exchange.json.Get("store")
	persisted := store.Type != gjson.False
	items := make([]item, len(output))
	for i, value := range output {
		items[i] = newItem(value)
	}
	thought := ""
	for i, next := range items {
		known := emission{
			encrypted:     next.json.Get("encrypted_content").String(),
			authorization: exchange.request.Header.Get("Authorization"),
			unstored:      !persisted,
		}
		if next.kind == "reasoning" {
			thought = next.id
			if i+1 < len(items) {
				known.partner = items[i+1]
			}
		} else {
			known.reasoning = thought
		}
		if next.id != "" {
			s.emitted[next.id] = known
		}
	}
	whole := append(slices.Clone(exchange.context), items...)
	conversation := conversationID(exchange.json)
	if conversation != "" {
		s.conversations[conversation] = whole
	}
	if persisted {
		s.stored[id] = whole
	}
	if persisted || conversation != "" {
		for _, next := range append(slices.Clone(exchange.fresh), items...) {
			if next.id != "" {
				s.items[next.id] = next
			}
		}
	}
}

// finalResponse reads the response object and its output items from a whole answer, streamed or not. Items come from
// their done events where the final object has none.
func finalResponse(played []byte) (response gjson.Result, output []gjson.Result) {
	if trimmed := bytes.TrimSpace(played); bytes.HasPrefix(trimmed, []byte("{")) {
		response = gjson.ParseBytes(trimmed)
		return response, response.Get("output").Array()
	}
	list, _ := events(played)
	var done []gjson.Result
	for _, next := range list {
		data := gjson.Parse(next.data)
		switch data.Get("type").String() {
		case "response.output_item.done":
			done = append(done, data.Get("item"))
		case "response.completed", "response.incomplete", "response.failed":
			response = data.Get("response")
		}
	}
	if output = response.Get("output").Array(); len(output) == 0 {
		output = done
	}
	return response, output
}
