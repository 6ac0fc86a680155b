package config

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

var update = flag.Bool("update", false, "write the example file and the documentation's table")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// load loads with a file's content and flags; an empty content is no file.
func load(t *testing.T, content string, arguments ...string) (*Config, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	if content != "" {
		if err := os.WriteFile("config.toml", []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddFlags(flags)
	if err := flags.Parse(arguments); err != nil {
		t.Fatal(err)
	}
	return Load(flags)
}

func TestDefaultsAreTheContracts(t *testing.T) {
	c, err := load(t, "")
	if err != nil {
		t.Fatal(err)
	}
	s := c.Skills
	switch {
	case s.ToolSearchEnabled, !reflect.DeepEqual(s.ToolSearchAlwaysLoaded, []string{"send_message", "end"}),
		s.ToolSearchMaxResults != 5, len(s.PrefetchTools) != 0, !s.PrefetchToolsHide:
		t.Errorf("[skills] is %+v", s)
	case c.Server.Listen != "127.0.0.1:8787", c.Admin.Listen != "127.0.0.1:8788":
		t.Errorf("listeners are %s and %s", c.Server.Listen, c.Admin.Listen)
	case c.Upstream.BaseURL != "https://api.openai.com/v1", c.Upstream.APIKey != "":
		t.Errorf("[upstream] is %+v", c.Upstream)
	case c.Session.TTL != time.Hour, c.Session.MaxSessions != 100000, c.Session.MaxBytes != 256<<20, c.Session.Store != "memory":
		t.Errorf("[session] is %+v", c.Session)
	case c.Log.Level != "info", c.Log.Format != "json":
		t.Errorf("[log] is %+v", c.Log)
	}
}

func TestEveryKeyReachesItsField(t *testing.T) {
	seen := map[any]bool{}
	c := &Config{}
	for _, k := range keys {
		field := k.field(c)
		if seen[field] {
			t.Errorf("%s shares a field with another key", k.path())
		}
		seen[field] = true
		k.store(c, k.fallback)
		if !reflect.DeepEqual(k.load(c), k.fallback) {
			t.Errorf("%s does not keep its default", k.path())
		}
	}
	fields := 0
	for _, section := range []any{c.Server, c.Upstream, c.Skills, c.Session, c.Admin, c.Log, c.EasterEgg, c.Tracing} {
		fields += reflect.TypeOf(section).NumField()
	}
	if fields != len(keys) {
		t.Errorf("%d fields, %d keys", fields, len(keys))
	}
}

func TestLaterLayersWin(t *testing.T) {
	file := "[skills]\ntool_search_max_results = 2\ntool_search_enabled = true\ntool_search_max_rounds = 3\n"
	t.Setenv("TOOL_SEARCH_MAX_RESULTS", "3")
	t.Setenv("TOOL_SEARCH_MAX_ROUNDS", "4")
	t.Setenv("LOG_LEVEL", "") // empty is not set
	t.Setenv("ADMIN_LISTEN", "")
	t.Setenv("TOOL_SEARCH_ALWAYS_LOADED", " a, b_* ,")
	c, err := load(t, file, "--set", "skills.tool_search_max_rounds=5", "--listen", ":9")
	if err != nil {
		t.Fatal(err)
	}
	if s := c.Skills; !s.ToolSearchEnabled || s.ToolSearchMaxResults != 3 || s.ToolSearchMaxRounds != 5 ||
		!reflect.DeepEqual(s.ToolSearchAlwaysLoaded, []string{"a", "b_*"}) {
		t.Errorf("[skills] is %+v", s)
	}
	if c.Log.Level != "info" || c.Admin.Listen != "" || c.Server.Listen != ":9" {
		t.Errorf("level %q, admin %q, listen %q", c.Log.Level, c.Admin.Listen, c.Server.Listen)
	}
	for path, want := range map[string]string{
		"skills.tool_search_enabled": "config.toml", "skills.tool_search_max_results": "TOOL_SEARCH_MAX_RESULTS",
		"skills.tool_search_max_rounds": "--set", "server.listen": "--listen", "session.ttl": "default",
	} {
		if got := c.origin(path); got != want {
			t.Errorf("%s was set by %s, want %s", path, got, want)
		}
	}
}

func TestWrongValuesSayWhatWhereAndWhatIsAllowed(t *testing.T) {
	tests := map[string]struct {
		file      string
		env       [2]string
		arguments []string
		want      []string // parts of the error
	}{
		"unknown key":        {file: "[skills]\ntool_serch_enabled = true", want: []string{"config.toml", "skills.tool_serch_enabled", "did you mean skills.tool_search_enabled?"}},
		"wrong section":      {file: "[server]\ntool_search_enabled = true", want: []string{"did you mean skills.tool_search_enabled?"}},
		"no section":         {file: "listen = ':1'", want: []string{"listen", "did you mean server.listen?"}},
		"wrong type":         {file: "[skills]\ntool_search_enabled = 'yes'", want: []string{"skills.tool_search_enabled", "true or false"}},
		"text for a number":  {file: "[skills]\ntool_search_max_results = 'five'", want: []string{`"five" is no whole number`, "at least 1"}},
		"fraction":           {file: "[skills]\ntool_search_max_rounds = 1.5", want: []string{"1.5 is no whole number"}},
		"negative":           {file: "[skills]\ntool_search_max_rounds = -1", want: []string{"-1 is out of range", "at least 1"}},
		"negative size":      {file: "[session]\nmax_bytes = -5", want: []string{"session.max_bytes", "too small"}},
		"negative time":      {file: "[session]\nttl = '-1h'", want: []string{"session.ttl", "-1h0m0s is too small"}},
		"time without unit":  {file: "[session]\nttl = 3600", want: []string{"a unit is missing", `"1m30s"`}},
		"list as text":       {file: "[skills]\nprefetch_tools = 'a'", want: []string{"is no array"}},
		"number in a list":   {file: "[skills]\nprefetch_tools = [1]", want: []string{"the element 1 is no text"}},
		"broken glob":        {file: "[skills]\ntool_search_always_loaded = ['a[']", want: []string{`the glob "a[" does not compile`}},
		"none of the words":  {env: [2]string{"LOG_LEVEL", "loud"}, want: []string{"LOG_LEVEL: log.level", `"loud"`, `"debug", "info"`}},
		"broken TOML":        {file: "[log]\n[skills\n", want: []string{"config.toml", "no valid TOML: line 2, column 8"}},
		"huge number":        {file: "[skills]\ntool_search_max_rounds = 99999999999999999999", want: []string{"line 2"}},
		"the proxy itself":   {arguments: []string{"--upstream", "http://localhost:8787/v1"}, want: []string{"--upstream: upstream.base_url: it is the proxy itself"}},
		"one address twice":  {env: [2]string{"ADMIN_LISTEN", "127.0.0.1:8787"}, want: []string{"ADMIN_LISTEN: admin.listen: it is the address of server.listen"}},
		"a name with blanks": {file: "[skills]\ntool_search_name = 'a b'", want: []string{"skills.tool_search_name", `"a b"`}},
		"a wrong Redis URL":  {file: "[session]\nstore = 'redis'\nredis_url = 'http://x'", want: []string{"session.redis_url", "redis, rediss or unix"}},
		"flag":               {arguments: []string{"--upstream", "ftp://x"}, want: []string{"--upstream: upstream.base_url", `scheme is "ftp"`}},
		"set without value":  {arguments: []string{"--set", "log.level"}, want: []string{"--set: log.level: it has no value"}},
		"set unknown":        {arguments: []string{"--set", "log.levl=info"}, want: []string{"did you mean log.level?"}},
		"missing named file": {arguments: []string{"--config", "other.toml"}, want: []string{"--config: the file other.toml does not exist"}},
		"file by variable":   {env: [2]string{PathVariable, "gone.toml"}, want: []string{"PROXY_CONFIG: the file gone.toml does not exist"}},
		"redis without URL":  {env: [2]string{"SESSION_STORE", "redis"}, want: []string{"SESSION_STORE: session.redis_url", "no URL is set"}},
		"all at once":        {file: "[log]\nlevel = 'x'\nformat = 'y'", want: []string{"log.level", "log.format"}},
		"address":            {env: [2]string{"SERVER_LISTEN", "8787"}, want: []string{"SERVER_LISTEN", "host:port"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.env[0] != "" {
				t.Setenv(test.env[0], test.env[1])
			}
			_, err := load(t, test.file, test.arguments...)
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not hold %q", err, part)
				}
			}
		})
	}
}

func TestErrorsHoldNoSecret(t *testing.T) {
	t.Setenv("SESSION_REDIS_URL", "http://:hunter2@host")
	_, err := load(t, "[upstream]\napi_key = 5\n")
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}

func TestMaxResultsBelowOneCountsAsOne(t *testing.T) {
	for _, value := range []string{"0", "-7"} {
		c, err := load(t, "[skills]\ntool_search_max_results = "+value)
		if err != nil || c.Skills.ToolSearchMaxResults != 1 {
			t.Errorf("%s gives %v, %v", value, c, err)
		}
	}
}

func TestListsInVariables(t *testing.T) {
	for value, want := range map[string]string{
		"a, b":                 "a|b",
		"{get,list}_*,x":       "{get,list}_*|x",
		`["a", "b,c"]`:         "a|b,c",
		"":                     "",
		" , ":                  "",
		"[ab]_*,{a,{b,c}},d_e": "[ab]_*|{a,{b,c}}|d_e",
	} {
		t.Setenv("TOOL_SEARCH_ALWAYS_LOADED", value)
		c, err := load(t, "")
		if err != nil {
			t.Errorf("%q: %v", value, err)
			continue
		}
		if got := strings.Join(c.Skills.ToolSearchAlwaysLoaded, "|"); got != want {
			t.Errorf("%q is %q, want %q", value, got, want)
		}
	}
}

func TestSizesAndDurations(t *testing.T) {
	c, err := load(t, "[session]\nmax_bytes = '1.5KiB'\nttl = '90m'\n[server]\nmax_body_bytes = 2048\n")
	if err != nil || c.Session.MaxBytes != 1536 || c.Session.TTL != 90*time.Minute || c.Server.MaxBodyBytes != 2048 {
		t.Errorf("got %+v, %v", c, err)
	}
	for d, want := range map[time.Duration]string{
		time.Hour: "1h", 90 * time.Minute: "1h30m", 10 * time.Second: "10s", 0: "0s", time.Hour + time.Second: "1h0m1s",
	} {
		if got := formatDuration(d); got != want {
			t.Errorf("%v is shown as %s, want %s", d, got, want)
		}
	}
}

func TestMisspeltVariablesAreNamed(t *testing.T) {
	t.Setenv("TOOL_SEARCH_ENABLE", "true")
	t.Setenv("UPSTREAM_BASEURL", "x")
	t.Setenv("SKILLS_TOOL_SEARCH_AUDIT", "true")
	t.Setenv("UPSTREAM_SERVICE_HOST", "x") // Kubernetes writes such
	c, err := load(t, "")
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(c.Warnings, "\n")
	for _, want := range []string{"TOOL_SEARCH_ENABLE is not read; did you mean TOOL_SEARCH_ENABLED?", "did you mean TOOL_SEARCH_AUDIT?", "UPSTREAM_BASE_URL?"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q does not hold %q", got, want)
		}
	}
	if strings.Contains(got, "SERVICE_HOST") {
		t.Errorf("a variable of somebody else is complained of: %s", got)
	}
}

// TestSecretsAreTrimmed: a secret that was read from a file ends with a line break.
func TestSecretsAreTrimmed(t *testing.T) {
	t.Setenv("UPSTREAM_API_KEY", "sk-1\n")
	if c, err := load(t, ""); err != nil || c.Upstream.APIKey != "sk-1" {
		t.Errorf("got %+v, %v", c, err)
	}
	t.Setenv("UPSTREAM_API_KEY", "sk-1\r\nX: y")
	if _, err := load(t, ""); err == nil || !strings.Contains(err.Error(), "UPSTREAM_API_KEY") || strings.Contains(err.Error(), "sk-1") {
		t.Errorf("got %v", err)
	}
}

// TestRedisURLsAreRead as the store will read them.
func TestRedisURLsAreRead(t *testing.T) {
	for _, wrong := range []string{"redis://h/notadb", "redis://:hunter2@h/0?nope=1", "http://h"} {
		if _, err := load(t, "[session]\nstore = 'redis'\nredis_url = '"+wrong+"'\n"); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s gives %v", wrong, err)
		}
	}
}

func TestPrintMasksSecretsAndCanBeReadAgain(t *testing.T) {
	c, err := load(t, "[upstream]\napi_key = 'sk-secret'\n[session]\nredis_url = 'redis://me:hunter2@host/0'\n"+
		"[easter_egg]\nagent_call_message_webhook_url = 'https://host/hunter4?token=hunter3'\n")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := c.Print(&b); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"sk-secret", "hunter2", "hunter3", "hunter4"} {
		if strings.Contains(b.String(), secret) {
			t.Errorf("%s is printed:\n%s", secret, &b)
		}
	}
	if !strings.Contains(b.String(), "# config.toml") || !strings.Contains(b.String(), "# default") {
		t.Errorf("no origins in\n%s", &b)
	}
	if _, err := load(t, b.String()); err != nil {
		t.Errorf("what is printed cannot be read: %v", err)
	}
}

// checked compares a generated part with a file of the project.
func checked(t *testing.T, path string, begin, end, want string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil && !*update {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(content), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if begin == "" {
		before, after, ok, ok2 = "", "", true, true
	}
	if !ok || !ok2 {
		t.Fatalf("%s does not hold the marks %s and %s", path, begin, end)
	}
	whole := before + begin + want + end + after
	if *update {
		if err := os.WriteFile(path, []byte(whole), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(content) != whole {
		t.Errorf("%s is not what the keys say; go test ./internal/config -update writes it", path)
	}
}

func TestExampleAndDocumentationFollowTheKeys(t *testing.T) {
	checked(t, "../../configs/config.example.toml", "", "", string(Example()))
	checked(t, "../../docs/configuration.md", "<!-- keys:begin -->\n", "<!-- keys:end -->", string(Table()))
	c, err := load(t, string(Example()))
	if err != nil {
		t.Fatal(err)
	}
	if changes := Changes(defaults(t), c); len(changes) > 0 {
		t.Errorf("the example differs from the defaults: %v", changes)
	}
}

func defaults(t *testing.T) *Config {
	t.Helper()
	c := &Config{}
	for _, k := range keys {
		k.store(c, k.fallback)
	}
	return c
}

// live starts watching a configuration in a directory of its own, and returns the logs.
func live(t *testing.T, path string) (*Live, *observer.ObservedLogs) {
	t.Helper()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddFlags(flags)
	if err := flags.Parse([]string{"--config", path}); err != nil {
		t.Fatal(err)
	}
	c, err := Load(flags)
	if err != nil {
		t.Fatal(err)
	}
	core, logs := observer.New(zapcore.InfoLevel)
	l := NewLive(c, flags, zap.New(core), nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Watch(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l, logs
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 400 {
		if holds() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s did not happen", what)
}

const resultsFile = "[skills]\ntool_search_max_results = %\n"

func results(n string) string { return strings.ReplaceAll(resultsFile, "%", n) }

func TestHotReload(t *testing.T) {
	change := map[string]func(t *testing.T, dir, path string){
		"written in place": func(t *testing.T, _, path string) { write(t, path, results("7")) },
		"replaced by an editor": func(t *testing.T, dir, path string) {
			write(t, filepath.Join(dir, "config.toml~"), results("7"))
			if err := os.Rename(filepath.Join(dir, "config.toml~"), path); err != nil {
				t.Fatal(err)
			}
		},
		"emptied and written a while later": func(t *testing.T, _, path string) {
			write(t, path, "")
			time.Sleep(3 * settle)
			write(t, path, results("7"))
		},
		"removed and written anew": func(t *testing.T, _, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			write(t, path, results("7"))
		},
	}
	for name, do := range change {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "config.toml")
			write(t, path, results("2"))
			l, logs := live(t, path)
			do(t, dir, path)
			eventually(t, "the reload", func() bool { return l.Current().Skills.ToolSearchMaxResults == 7 })
			eventually(t, "the log entry", func() bool {
				return logs.FilterField(zap.String("key", "skills.tool_search_max_results")).Len() >= 1
			})
			if n := logs.FilterField(zap.String("key", "skills.tool_search_max_results")).Len(); n != 1 {
				t.Errorf("the value changed %d times", n)
			}
		})
	}
}

func TestAnEmptiedFileMeansTheDefaults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	write(t, path, results("2"))
	l, _ := live(t, path)
	write(t, path, "")
	eventually(t, "the reload", func() bool { return l.Current().Skills.ToolSearchMaxResults == 5 })
}

func TestHotReloadFollowsConfigMapSwaps(t *testing.T) {
	dir := t.TempDir()
	version := func(name, content string) {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name, "config.toml"), content)
	}
	version("..1", results("2"))
	path := filepath.Join(dir, "config.toml")
	for link, target := range map[string]string{filepath.Join(dir, "..data"): "..1", path: "..data/config.toml"} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	l, _ := live(t, path)
	for _, n := range []string{"3", "4"} {
		version(".."+n, results(n))
		temporary := filepath.Join(dir, "..data_tmp")
		if err := os.Symlink(".."+n, temporary); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(temporary, filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the swap to "+n, func() bool { return l.Current().Skills.ToolSearchMaxResults == int(n[0]-'0') })
	}
}

func TestBrokenReloadKeepsTheOldConfiguration(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config.toml")
	write(t, path, results("2"))
	l, logs := live(t, path)
	write(t, path, "[skills]\ntool_search_max_results = 'x'\n")
	eventually(t, "the error", func() bool { return logs.FilterLevelExact(zapcore.ErrorLevel).Len() == 1 })
	if n := l.Current().Skills.ToolSearchMaxResults; n != 2 {
		t.Errorf("max results are %d", n)
	}
	write(t, path, results("9"))
	eventually(t, "the repair", func() bool { return l.Current().Skills.ToolSearchMaxResults == 9 })
}

func TestReloadMasksSecretsAndLeavesWhatNeedsARestart(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config.toml")
	write(t, path, "[upstream]\napi_key = 'one'\n")
	l, logs := live(t, path)
	write(t, path, "[upstream]\napi_key = 'two-secret'\n[server]\nlisten = ':1'\n")
	eventually(t, "the reload", func() bool { return logs.FilterMessageSnippet("restart").Len() >= 2 })
	if l.Current().Server.Listen != "127.0.0.1:8787" || l.Current().Upstream.APIKey != "one" {
		t.Errorf("a value that needs a restart counts: %+v", l.Current())
	}
	for _, entry := range logs.All() {
		for _, f := range entry.Context {
			if strings.Contains(f.String, "secret") {
				t.Errorf("a secret is logged: %v", entry)
			}
		}
	}
}
