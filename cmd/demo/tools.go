package main

import (
	"fmt"
	"strings"
)

// makeTools returns a tools array as an agent with many servers sends it: twelve made-up services with ten actions each.
func makeTools() []byte {
	services := []struct{ name, thing string }{
		{"github", "pull request"}, {"calendar", "event"}, {"mail", "message"}, {"drive", "document"},
		{"crm", "customer"}, {"billing", "invoice"}, {"jira", "ticket"}, {"slack", "channel"},
		{"weather", "station"}, {"travel", "booking"}, {"shop", "order"}, {"music", "playlist"},
	}
	actions := []struct{ name, text string }{
		{"create", "Create a new %s and return its identifier together with the address under which it can be opened."},
		{"get", "Get one %s by its identifier, with all of its fields and the time of its last change."},
		{"list", "List every %s that the user may see, page by page, newest first, optionally filtered by a text."},
		{"update", "Change fields of an existing %s. Fields that are left out keep their value."},
		{"delete", "Delete a %s for good. This cannot be undone, so ask the user first."},
		{"search", "Search for a %s by words in its title, its text and its comments, best match first."},
		{"share", "Share a %s with other people by their mail addresses, with a role of reader, writer or owner."},
		{"export", "Export a %s as a file in one of several formats and return a link that is valid for an hour."},
		{"archive", "Archive a %s, so that it no longer shows in lists but can still be found by search."},
		{"history", "Show who changed a %s, when, and what exactly, newest change first."},
	}
	var s strings.Builder
	for _, service := range services {
		for _, action := range actions {
			if s.Len() > 0 {
				s.WriteByte(',')
			}
			fmt.Fprintf(&s, `{"type":"function","function":{"name":"%s_%s_%s","description":%q,"parameters":{`+
				`"type":"object","properties":{"id":{"type":"string","description":"Identifier of the %s."},`+
				`"title":{"type":"string","description":"Title, at most 200 characters."},`+
				`"start":{"type":"string","format":"date-time","description":"When it begins, as an RFC 3339 time."},`+
				`"people":{"type":"array","items":{"type":"string"},"description":"Mail addresses of the people concerned."},`+
				`"page":{"type":"integer","minimum":1,"description":"Page to return, from 1."}},`+
				`"required":["id"],"additionalProperties":false}}}`,
				service.name, action.name, strings.ReplaceAll(service.thing, " ", "_"),
				fmt.Sprintf(action.text, service.thing), service.thing)
		}
	}
	return []byte("[" + s.String() + "]")
}
