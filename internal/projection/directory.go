package projection

import "strings"

// The rule text stands beside the directory. It is fixed, so that the provider's prompt cache holds it.
const (
	ruleBefore = "More tools exist than are shown. The names below are deferred tools; they cannot be called yet.\n" +
		"- To use one, first call "
	ruleAfter = " with the query \"select:NAME\" if the name is known, or else with a few words for what it should do.\n" +
		"- The schema of a loaded tool arrives in the next turn. Only then call it; never search for a tool and call it " +
		"in the same turn.\n" +
		"- \"loaded\" in a search result means that the tool can be called. It does not mean that the task is done.\n"
	directoryStart = "<available_deferred_tools>\n"
	directoryEnd   = "</available_deferred_tools>"
)

// names are escaped so that they cannot be misread as the directory's own markup; one name is one line.
var directoryEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\n", "&#10;", "\r", "&#13;")

// Directory returns the rule text and the block with the names of all deferred tools, one a line and nothing else.
func (p *Plan) Directory() string {
	var s strings.Builder
	s.WriteString(ruleBefore + p.virtualName + ruleAfter + directoryStart)
	for _, name := range p.Deferred {
		_, _ = directoryEscaper.WriteString(&s, name)
		s.WriteByte('\n')
	}
	s.WriteString(directoryEnd)
	return s.String()
}

// Rejection is the result of a call of a tool that is not loaded.
func Rejection(name, virtualName string) string {
	dst := appendString([]byte(`{"error":`), "The tool "+name+" is not loaded, so this call was not run. Call "+virtualName+
		" with the query \"select:"+name+"\", and call the tool in the turn after that.")
	return string(append(dst, '}'))
}

// Refusal is the result of a call of a tool that the request or the operator keeps from the model.
func Refusal(name string) string {
	dst := appendString([]byte(`{"error":`), "The tool "+name+" is not available here, so this call was not run.")
	return string(append(dst, '}'))
}
