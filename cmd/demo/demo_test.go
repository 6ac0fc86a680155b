package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestDemoTellsOfTheWholeConversation(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"sends 120 tools", "a directory of 120 names", `called tool_search {"query":"create calendar event"}`,
		`"loaded":["calendar_create_event"`, "is asked to run calendar_create_event", "lunch with Ada is in your calendar",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &out)
		}
	}
}
