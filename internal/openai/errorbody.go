package openai

// ErrorBody returns an error object in the form of the OpenAI API: {"error":{"message","type","param","code"}}, with
// param null. An empty code becomes null too.
func ErrorBody(message, kind, code string) []byte {
	dst := append(make([]byte, 0, 96+len(message)), `{"error":{"message":`...)
	dst = AppendString(dst, message)
	dst = append(dst, `,"type":`...)
	dst = AppendString(dst, kind)
	dst = append(dst, `,"param":null,"code":`...)
	if code == "" {
		dst = append(dst, `null`...)
	} else {
		dst = AppendString(dst, code)
	}
	return append(dst, "}}"...)
}
