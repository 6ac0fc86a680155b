package config

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"
)

// PathVariable names the environment variable that may hold the configuration file's path.
const PathVariable = "PROXY_CONFIG"

// defaultPath is read if it is there.
const defaultPath = "config.toml"

// Problem is one thing that is wrong with a configuration.
type Problem struct {
	Source  string // the file, variable or flag
	Key     string // section.key
	What    string // what is wrong
	Allowed string // what would be right; may be empty
}

func (p *Problem) Error() string {
	s := p.Source + ": "
	if p.Key != "" {
		s += p.Key + ": "
	}
	s += p.What
	if p.Allowed != "" {
		s += "; allowed: " + p.Allowed
	}
	return s
}

// AddFlags adds the flags of the configuration to a set.
func AddFlags(flags *pflag.FlagSet) {
	flags.String("config", "", "configuration file (else $"+PathVariable+", else ./"+defaultPath+")")
	for _, k := range keys {
		switch {
		case k.flag == "":
		case k.kind == kindBool:
			flags.Bool(k.flag, k.fallback.(bool), k.help+" ["+k.path()+"]")
		default:
			flags.String(k.flag, k.fallback.(string), k.help+" ["+k.path()+"]")
		}
	}
	flags.StringArray("set", nil, "any other key, as section.key=value; may be repeated")
}

// Load reads the configuration: defaults, the file, environment variables, and the flags that AddFlags has added, a later
// one wins. Its error joins one *Problem for each thing that is wrong.
func Load(flags *pflag.FlagSet) (*Config, error) {
	c := &Config{origins: make(map[string]string)}
	var problems []error
	file, err := c.readFile(flags)
	if err != nil {
		problems = append(problems, err)
	}
	set, wrong := readSettings(flags)
	problems = append(problems, wrong...)
	inFile := map[string]any{}
	if file != nil {
		inFile = flatten(file.AllSettings())
		problems = append(problems, unknownKeys(c.Path, inFile)...)
	}
	for _, k := range keys {
		value, source := k.lookUp(flags, set, inFile, c.Path)
		if source == "" {
			k.store(c, k.fallback)
			continue
		}
		parsed, err := k.parse(value)
		if err != nil {
			problems = append(problems, &Problem{Source: source, Key: k.path(), What: err.Error(), Allowed: k.allowed()})
			continue
		}
		k.store(c, parsed)
		c.origins[k.path()] = source
	}
	if len(problems) == 0 {
		problems = c.checkTogether()
	}
	c.Warnings = misspeltVariables(os.Environ())
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	c.Upstream.BaseURL = strings.TrimRight(c.Upstream.BaseURL, "/")
	return c, nil
}

// readFile finds and reads the file. No file is fine unless one was named.
func (c *Config) readFile(flags *pflag.FlagSet) (*viper.Viper, error) {
	path, source := "", ""
	if f := flags.Lookup("config"); f != nil && f.Value.String() != "" {
		path, source = f.Value.String(), "--config"
	} else if named := os.Getenv(PathVariable); named != "" {
		path, source = named, PathVariable
	}
	named := path != ""
	if !named {
		path = defaultPath
	}
	content, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !named:
		return nil, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, &Problem{Source: source, What: fmt.Sprintf("the file %s does not exist", path)}
	case err != nil:
		return nil, &Problem{Source: path, What: err.Error()}
	}
	c.Path, c.digest = path, sha256.Sum256(content)
	file := viper.New()
	file.SetConfigType("toml")
	if err := file.ReadConfig(bytes.NewReader(content)); err != nil {
		return nil, &Problem{Source: path, What: "it is no valid TOML: " + syntax(err)}
	}
	return file, nil
}

// syntax says what the parser complains of, and where.
func syntax(err error) string {
	var decode *toml.DecodeError
	if !errors.As(err, &decode) {
		return strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", " ")
	}
	line, column := decode.Position()
	return fmt.Sprintf("line %d, column %d: %s", line, column, strings.TrimPrefix(decode.Error(), "toml: "))
}

// flatten turns sections into section.key.
func flatten(settings map[string]any) map[string]any {
	flat := make(map[string]any)
	for name, value := range settings {
		section, ok := value.(map[string]any)
		if !ok {
			flat[name] = value
			continue
		}
		for key, value := range section {
			flat[name+"."+key] = value
		}
		if len(section) == 0 && !isSection(name) {
			flat[name] = value
		}
	}
	return flat
}

func isSection(name string) bool {
	return slices.ContainsFunc(keys, func(k *key) bool { return k.section == name })
}

func findKey(path string) *key {
	for _, k := range keys {
		if k.path() == path {
			return k
		}
	}
	return nil
}

// unknownKeys complains about keys that do not exist, and suggests the nearest.
func unknownKeys(source string, values map[string]any) []error {
	var problems []error
	for path := range values {
		if findKey(path) == nil {
			problems = append(problems, unknownKey(source, path))
		}
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return problems
}

func unknownKey(source, path string) *Problem {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.path()
	}
	// A key in the wrong section is nearer than one of another name.
	_, name, _ := strings.Cut(path, ".")
	for _, k := range keys {
		if k.name == name || k.name == path {
			return &Problem{source, path, "there is no such key; did you mean " + k.path() + "?", ""}
		}
	}
	return &Problem{source, path, "there is no such key; did you mean " + nearest(path, names) + "?", ""}
}

// readSettings reads the repeatable --set.
func readSettings(flags *pflag.FlagSet) (map[string]string, []error) {
	list, err := flags.GetStringArray("set")
	if err != nil {
		return nil, nil // the flag was not added
	}
	set := make(map[string]string, len(list))
	var problems []error
	for _, setting := range list {
		path, value, ok := strings.Cut(setting, "=")
		path = strings.TrimSpace(path)
		switch {
		case !ok:
			problems = append(problems, &Problem{"--set", path, "it has no value", "section.key=value"})
		case findKey(path) == nil:
			problems = append(problems, unknownKey("--set", path))
		default:
			set[path] = value
		}
	}
	return set, problems
}

// lookUp returns the value of a key as it is written, and where; source is empty for a default.
func (k *key) lookUp(flags *pflag.FlagSet, set map[string]string, file map[string]any, path string) (value any, source string) {
	if k.flag != "" {
		if f := flags.Lookup(k.flag); f != nil && f.Changed {
			return f.Value.String(), "--" + k.flag
		}
	}
	if value, ok := set[k.path()]; ok {
		return value, "--set"
	}
	// An empty variable is one that was not set, except where empty is a value.
	if value, ok := os.LookupEnv(k.env()); ok && (value != "" || k.takesEmpty()) {
		return value, k.env()
	}
	if value, ok := file[k.path()]; ok {
		return fileValue{value}, path
	}
	return nil, ""
}

func (k *key) takesEmpty() bool {
	return k.kind == kindList || k.kind == kindText && k.choices == nil && (k.check == nil || k.check("") == nil)
}

// checkTogether checks what depends on several keys.
func (c *Config) checkTogether() []error {
	var problems []error
	if c.Session.Store == StoreRedis && c.Session.RedisURL == "" {
		problems = append(problems, &Problem{c.origin("session.store"), "session.redis_url",
			"the store is redis, but no URL is set", "a redis, rediss or unix URL"})
	}
	if c.EasterEgg.AgentCallMessageDelivery == DeliverWebhook && c.EasterEgg.AgentCallMessageWebhookURL == "" {
		problems = append(problems, &Problem{c.origin("easter_egg.agent_call_message_delivery"),
			"easter_egg.agent_call_message_webhook_url", "notices go to a webhook, but no URL is set",
			"an absolute http or https URL"})
	}
	if c.Admin.Listen != "" && c.Admin.Listen == c.Server.Listen && !strings.HasSuffix(c.Server.Listen, ":0") {
		problems = append(problems, &Problem{c.origin("admin.listen"), "admin.listen", "it is the address of server.listen",
			"another host:port, or empty"})
	}
	if c.callsItself() {
		problems = append(problems, &Problem{c.origin("upstream.base_url"), "upstream.base_url",
			"it is the proxy itself (server.listen is " + c.Server.Listen + ")", "the URL of the API behind the proxy"})
	}
	return problems
}

// callsItself reports whether the upstream is the proxy's own listener, as far as addresses tell.
func (c *Config) callsItself() bool {
	base, err := url.Parse(c.Upstream.BaseURL)
	host, port, splitErr := net.SplitHostPort(c.Server.Listen)
	if err != nil || splitErr != nil || port == "0" || base.Port() != port {
		return false
	}
	local := func(host string) bool {
		ip := net.ParseIP(host)
		return host == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
	}
	return base.Hostname() == host || local(base.Hostname()) && (host == "" || local(host))
}

// origin says where a key was set.
func (c *Config) origin(path string) string {
	if source, ok := c.origins[path]; ok {
		return source
	}
	return "default"
}

// misspeltVariables finds environment variables that look like keys and are none.
func misspeltVariables(environment []string) []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.env()
	}
	var warnings []string
	for _, variable := range environment {
		name, _, _ := strings.Cut(variable, "=")
		if slices.Contains(names, name) || name == PathVariable {
			continue
		}
		near := nearest(name, names)
		if bare := strings.TrimPrefix(name, "SKILLS_"); slices.Contains(names, bare) {
			near = bare
		}
		ours := false
		for _, prefix := range []string{"TOOL_SEARCH_", "PREFETCH_TOOLS", "SKILLS_"} {
			ours = ours || strings.HasPrefix(name, prefix)
		}
		if ours || len(name) > 6 && distance(name, near) <= 2 {
			warnings = append(warnings, fmt.Sprintf("the environment variable %s is not read; did you mean %s?", name, near))
		}
	}
	slices.Sort(warnings)
	return warnings
}

// nearest returns the name that takes the fewest edits.
func nearest(name string, names []string) string {
	return slices.MinFunc(names, func(a, b string) int { return distance(name, a) - distance(name, b) })
}

// distance is the number of edits between two names (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
