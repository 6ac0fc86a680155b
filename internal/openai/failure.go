package openai

import (
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/tidwall/gjson"
)

var chunkPool = sync.Pool{New: func() any { return new(chunk) }}

func appendInt(dst []byte, n int64) []byte { return strconv.AppendInt(dst, n, 10) }

// textCallID gives a call that was written as text an id: its own, or a new one.
func textCallID(w TextCall) string {
	if w.ID != "" {
		return w.ID
	}
	return newTextCallID()
}

func readFailure(body []byte) *Failure {
	f := FailureOf(0, body)
	return &f
}

// FailureOf reads an upstream's error, in whatever form it writes it: OpenAI's object, a flat object, an error that is a
// string, an array around it, HTML or plain text. status is its HTTP status, 0 for an error within a stream.
func FailureOf(status int, body []byte) Failure {
	f := Failure{Status: status}
	root := gjson.ParseBytes(body)
	if !gjson.ValidBytes(body) {
		root = gjson.Result{}
	}
	if root.IsArray() {
		root = root.Get("0")
	}
	e := root.Get("error")
	switch {
	case e.IsObject():
	case e.Type == gjson.String:
		f.Message = e.String()
		e = root
	default:
		e = root
		if nested := root.Get("response.error"); nested.IsObject() {
			e = nested
		}
	}
	if f.Message == "" {
		f.Message = e.Get("message").String()
	}
	f.Code = e.Get("code").String()
	f.Type = e.Get("type").String()
	if f.Type == "error" {
		f.Type = ""
	}
	if f.Message == "" {
		f.Message = strings.TrimSpace(strings.ToValidUTF8(string(body[:min(len(body), 2000)]), ""))
	}
	if f.Message == "" {
		f.Message = http.StatusText(status)
	}
	if f.Message == "" {
		f.Message = "the upstream gave no reason"
	}
	if f.Type == "" {
		f.Type = errorType(status)
	}
	if f.Code == "" {
		f.Code = "server_error"
		if status == http.StatusTooManyRequests {
			f.Code = "rate_limit_exceeded"
		}
	}
	return f
}

func errorType(status int) string {
	switch {
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status >= 400 && status < 500:
		return "invalid_request_error"
	}
	return "server_error"
}
