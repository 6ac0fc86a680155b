package openai

// Responses is the dialect of POST …/responses.
var Responses Dialect = chat{}
