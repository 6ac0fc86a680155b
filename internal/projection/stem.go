package projection

// stem cuts the endings that English inflection adds: plural, -ing, -ed and the final e. It is deliberately light: tool
// names are short, and a stemmer that also merges derived words takes apart what they distinguish.
func stem(word string) string {
	if len(word) <= 3 {
		return word
	}
	for i := 0; i < len(word); i++ {
		if word[i] < 'a' || word[i] > 'z' {
			return word
		}
	}
	word = singular(word)
	switch {
	case ends(word, "ying") && len(word) > 5:
		return word[:len(word)-3]
	case ends(word, "ing") && hasVowel(word[:len(word)-3]) && len(word) > 5:
		return undouble(word[:len(word)-3])
	case ends(word, "ied") && len(word) > 4:
		return word[:len(word)-3] + "y"
	case ends(word, "eed"):
		return word
	case ends(word, "ed") && hasVowel(word[:len(word)-2]) && len(word) > 4:
		return undouble(word[:len(word)-2])
	case ends(word, "e") && len(word) > 3:
		return word[:len(word)-1]
	}
	return word
}

func singular(word string) string {
	n := len(word)
	switch {
	case ends(word, "ies") && n > 4:
		return word[:n-3] + "y"
	case ends(word, "sses"), ends(word, "xes"), ends(word, "ches"), ends(word, "shes"):
		return word[:n-2]
	case ends(word, "ss"), ends(word, "us"), ends(word, "is"):
		return word
	case ends(word, "s"):
		return word[:n-1]
	}
	return word
}

func undouble(word string) string {
	n := len(word)
	if n < 3 {
		return word
	}
	last := word[n-1]
	if last == 'e' && n > 3 {
		return word[:n-1]
	}
	if last == word[n-2] && last != 'l' && last != 's' && last != 'z' {
		return word[:n-1]
	}
	return word
}

func ends(word, suffix string) bool {
	return len(word) >= len(suffix) && word[len(word)-len(suffix):] == suffix
}

func hasVowel(s string) bool {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case 'a', 'e', 'i', 'o', 'u', 'y':
			return true
		}
	}
	return false
}
