package openai

import (
	"crypto/rand"
	"errors"
)

// TextCall is a tool call that the model wrote as text.
type TextCall struct {
	ID, Name  string
	Arguments []byte
}

// TextCallPrefix watches a text as it arrives.
type TextCallPrefix struct{}

// Feed takes the next piece and reports whether the text may still be nothing but calls.
func (*TextCallPrefix) Feed([]byte) bool { return false }

// ErrNotTextCalls says that a text is not nothing but calls.
var ErrNotTextCalls = errors.New("openai: not text calls")

// ParseTextCalls reads a text that is nothing but calls of known tools.
func ParseTextCalls(text []byte, known func(string) bool) ([]TextCall, error) { return nil, nil }

func newTextCallID() string { return "call_txt_" + rand.Text() }
