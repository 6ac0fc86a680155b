package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// invoke runs a command in a folder of its own and returns its exit status and what it wrote.
func invoke(t *testing.T, in string, arguments ...string) (status int, out, errs string) {
	t.Helper()
	t.Chdir(t.TempDir())
	var stdout, stderr bytes.Buffer
	status = run(t.Context(), arguments, streams{strings.NewReader(in), &stdout, &stderr})
	return status, stdout.String(), stderr.String()
}

// file writes a file and returns its path.
func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.json")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const someTools = `[{"type":"function","function":{"name":"music.search_songs","description":"Find songs."}},` +
	`{"type":"function","function":{"name":"get_weather","description":"Weather of a city."}}]`

func TestExitStatusAndMessages(t *testing.T) {
	t.Setenv("UPSTREAM_BASE_URL", "")
	for _, test := range []struct {
		arguments []string
		status    int
		want      string // of standard error
	}{
		{[]string{"check"}, exitOK, ""},
		{[]string{"version"}, exitOK, ""},
		{[]string{"help"}, exitOK, ""},
		{[]string{"search", "--help"}, exitOK, "--max-results"},
		{[]string{"chekc"}, exitUsage, `there is no command "chekc"`},
		{[]string{"check", "--set", "log.level=loud"}, exitUsage, `--set: log.level: "loud" is none of the choices; allowed: "debug", "info", "warn", "error"`},
		{[]string{"serve", "--config", "gone.toml"}, exitUsage, "--config: the file gone.toml does not exist"},
		{[]string{"check", "more"}, exitUsage, `unexpected argument "more"`},
		{[]string{"search", "x"}, exitUsage, "--tools FILE is missing"},
		{[]string{"search", "--tools", "gone.json", "x"}, exitFailure, "gone.json"},
		{[]string{"search", "--tools", "gone.json", "--max-results", "0", "x"}, exitUsage, "at least 1"},
		{[]string{"project"}, exitUsage, "--request FILE is missing"},
		{[]string{"healthcheck", "--admin-listen", ""}, exitUsage, "admin.listen is empty"},
		{[]string{"healthcheck", "--admin-listen", "127.0.0.1:1"}, exitFailure, "not healthy"},
		{[]string{"serve", "--listen", "203.0.113.1:1"}, exitFailure, "203.0.113.1:1"},
	} {
		status, _, errs := invoke(t, "", test.arguments...)
		if status != test.status || !strings.Contains(errs, test.want) {
			t.Errorf("%q: status %d, want %d; %q does not hold %q", test.arguments, status, test.status, errs, test.want)
		}
	}
}

func TestSearchPrintsOneLineAQuery(t *testing.T) {
	path := file(t, someTools)
	_, out, _ := invoke(t, "", "search", "--tools", path, "search_songs")
	if gjson.Get(out, "query").String() != "search_songs" || gjson.Get(out, "names").Raw != `["music.search_songs"]` || gjson.Get(out, "scores.#").Int() != 1 {
		t.Errorf("got %s", out)
	}
	if !regexp.MustCompile(`^\{"query":"search_songs","names":\["music.search_songs"\],"scores":\[[0-9.]+\]\}\n$`).MatchString(out) {
		t.Errorf("the line is %q", out)
	}
	_, out, _ = invoke(t, "weather\n\n<none>\r\nselect:get_weather,music.search_songs", "search", "--tools", path, "--max-results", "1")
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	want := []string{`["get_weather"]`, `[]`, `[]`, `["get_weather"]`}
	if len(lines) != len(want) {
		t.Fatalf("got %q", lines)
	}
	for i, line := range lines {
		if gjson.Get(line, "names").Raw != want[i] {
			t.Errorf("line %d is %s, want %s", i+1, line, want[i])
		}
	}
	if gjson.Get(lines[2], "query").String() != "<none>" || !strings.Contains(lines[2], "<none>") {
		t.Errorf("the query comes as %s", lines[2])
	}
	_, out, _ = invoke(t, "", "search", "--tools", path, "--explain", "weather of a city")
	for _, want := range []string{"get_weather", "weather", "in name, description", "x1."} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}

func TestProjectPrintsTheRequestAndWhatItSaves(t *testing.T) {
	path := file(t, `{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":`+someTools+`}`)
	status, out, errs := invoke(t, "", "project", "--request", path)
	if status != exitOK || gjson.Get(out, "tools.#.function.name").Raw != `["tool_search"]` || !strings.Contains(out, "<available_deferred_tools>") {
		t.Errorf("status %d: %s", status, out)
	}
	for _, want := range []string{"2 tools deferred", "tokens", "estimated"} {
		if !strings.Contains(errs, want) {
			t.Errorf("%q is missing in %s", want, errs)
		}
	}
	_, out, errs = invoke(t, `{"model":"m","input":"x","tools":[]}`, "project", "--request", "-")
	if out != `{"model":"m","input":"x","tools":[]}`+"\n" || !strings.Contains(errs, "no_tools") {
		t.Errorf("got %s, %s", out, errs)
	}
}

func TestServeStopsWhenItIsTold(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	t.Chdir(t.TempDir())
	var stdout, stderr bytes.Buffer
	if status := run(ctx, []string{"serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"}, streams{strings.NewReader(""), &stdout, &stderr}); status != exitOK {
		t.Errorf("status %d: %s", status, &stderr)
	}
}

func TestEveryDependencyHasItsReason(t *testing.T) {
	modules, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	reasons, err := os.ReadFile("../../docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(modules)) {
		if module, _, ok := strings.Cut(strings.TrimSpace(line), " v"); ok && !strings.Contains(line, "// indirect") {
			n++
			if module = strings.TrimSuffix(strings.TrimSuffix(module, "/sdk"), "/trace"); !strings.Contains(string(reasons), "`"+module+"`") {
				t.Errorf("docs/dependencies.md does not say why %s is here", module)
			}
		}
	}
	if n < 10 {
		t.Errorf("only %d modules were read", n)
	}
}
