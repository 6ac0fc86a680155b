package toolfile

import (
	"strings"
	"testing"
)

func TestReadTakesWhatPeopleHave(t *testing.T) {
	const chat = `{"type":"function","function":{"name":"a","description":"one","parameters":{"type":"object"}}}`
	tests := map[string]struct {
		file string
		want string // name:description:parameters, blank-separated
	}{
		"array":            {`[` + chat + `]`, `a:one:{"type":"object"}`},
		"chat request":     {`{"model":"m","tools":[` + chat + `]}`, `a:one:{"type":"object"}`},
		"flat":             {`[{"type":"function","name":"b","parameters":{"x":1}}]`, `b::{"x":1}`},
		"mcp list":         {`{"tools":[{"name":"c","description":"d","inputSchema":{"y":2}}]}`, `c:d:{"y":2}`},
		"one tool":         {chat, `a:one:{"type":"object"}`},
		"one tool a line":  {chat + "\n\n" + `{"name":"e"}` + "\r\n", `a:one:{"type":"object"} e::`},
		"namespace group":  {`[{"type":"namespace","name":"n","tools":[{"type":"function","name":"m"}]}]`, `n.m::`},
		"other kinds":      {`[{"type":"web_search"},{"type":"custom","name":"x"},{"name":"f"}]`, `f::`},
		"repeated":         {`[{"name":"f","description":"first"},{"name":"f"}]`, `f:first:`},
		"group in a line":  {`{"type":"namespace","name":"n","tools":[{"name":"m"}]}` + "\n" + `{"name":"o"}`, `n.m:: o::`},
		"byte order mark":  {"\ufeff" + `[{"name":"f"}]`, `f::`},
		"nameless is none": {`[{"description":"?"},{"name":"f"}]`, `f::`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tools, err := Read([]byte(test.file))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, tool := range tools {
				got = append(got, tool.Name+":"+tool.Description+":"+string(tool.Parameters))
			}
			if s := strings.Join(got, " "); s != test.want {
				t.Errorf("got %s, want %s", s, test.want)
			}
		})
	}
}

func TestReadSaysWhatIsWrong(t *testing.T) {
	for file, want := range map[string]string{
		"":                       "no function tool",
		`{"model":"m"}`:          "no function tool",
		"{\"name\":\"a\"}\n{bad": "line 2 is not valid JSON",
	} {
		if _, err := Read([]byte(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", file, err, want)
		}
	}
}
