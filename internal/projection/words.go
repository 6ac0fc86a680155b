package projection

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// longestWord bounds a word, in bytes. What is longer (base64, hashes) is cut: it is nothing one searches by.
const longestWord = 48

// token is one word of a text, lower-cased and not yet stemmed.
type token struct {
	text string
	// glued says that no separator stands before the word: it was split off by a change of case or between letters and
	// digits.
	glued bool
	// blank says that a blank, or the start of the text, stands before the word or before the term that holds it.
	blank bool
	// clause says that punctuation which ends a clause, or the start of the text, stands before the word.
	clause bool
	// han says that the token is a run of a script that is written without blanks between words.
	han bool
}

// class is what the splitting of words knows of a character.
type class uint8

const (
	separator class = iota
	lower           // also letters without case
	upper
	digit
	unspaced // a letter of a script that puts no blanks between words
	mark     // belongs to the character before it
)

func classOf(r rune) class {
	if r < utf8.RuneSelf {
		switch {
		case 'a' <= r && r <= 'z':
			return lower
		case 'A' <= r && r <= 'Z':
			return upper
		case '0' <= r && r <= '9':
			return digit
		}
		return separator
	}
	switch {
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao,
		unicode.Khmer, unicode.Myanmar) && unicode.In(r, unicode.L, unicode.M):
		return unspaced
	case unicode.IsUpper(r):
		return upper
	case unicode.IsLetter(r):
		return lower
	case unicode.Is(unicode.M, r):
		return mark
	case unicode.IsDigit(r):
		return digit
	}
	return separator
}

// tokens splits text into words and appends them to list: at everything that is neither letter nor digit, where small
// letters meet capitals (camelCase, HTTPServer), between letters and digits, and at the borders of unspaced scripts.
func tokens(list []token, text string) []token {
	if !ascii(text) {
		text = norm.NFKC.String(strings.ToValidUTF8(text, " "))
	}
	var (
		before       = separator
		start        = -1
		glued        bool
		blank        = true
		clause       = true
		nextIsBlank  = true
		nextIsClause = true
	)
	flush := func(end int) {
		if start < 0 {
			return
		}
		word := text[start:end]
		if before != unspaced {
			word = strings.ToLower(word)
			if len(word) > longestWord {
				word = strings.ToValidUTF8(word[:longestWord], "")
			}
		}
		list = append(list, token{word, glued, blank, clause, before == unspaced})
		start = -1
	}
	for i, r := range text {
		c := classOf(r)
		if c == mark {
			if start < 0 {
				continue
			}
			c = before
		}
		if c == separator {
			flush(i)
			switch r {
			case ' ', '\t', '\n', '\r', '\u3000':
				nextIsBlank = true
			case ',', ';', '/', '|', '!', '?', '(', ')', '\u3002', '\u3001':
				nextIsClause = true
			case '.':
				// A full stop ends a clause where a blank follows; otherwise it joins the parts of a name.
				if i+1 == len(text) || text[i+1] == ' ' || text[i+1] == '\n' {
					nextIsClause = true
				}
			}
			before = c
			continue
		}
		border := start < 0
		if !border && c != before {
			switch {
			case c == lower && before == upper:
			case c == upper && before == lower, c == digit || before == digit, c == unspaced || before == unspaced:
				border = true
			}
		} else if !border && c == upper && lowerFollows(text[i+utf8.RuneLen(r):]) {
			border = true
		}
		if border {
			isGlued := start >= 0
			flush(i)
			start, glued = i, isGlued
			blank, clause = nextIsBlank, nextIsClause
			nextIsBlank, nextIsClause = false, false
		}
		before = c
	}
	flush(len(text))
	return list
}

// lowerFollows says whether rest begins with a small letter that starts a word: "Server" in HTTPServer, but not the
// plural of URLs.
func lowerFollows(rest string) bool {
	r, size := utf8.DecodeRuneInString(rest)
	if classOf(r) != lower {
		return false
	}
	if r != 's' {
		return true
	}
	next, _ := utf8.DecodeRuneInString(rest[size:])
	return classOf(next) == lower
}

func ascii(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// grams calls emit with each character of an unspaced run and with each two neighbours.
func grams(run string, emit func(gram string)) {
	previous := -1
	for i, r := range run {
		end := i + utf8.RuneLen(r)
		if previous >= 0 {
			emit(run[previous:end])
		}
		emit(run[i:end])
		previous = i
	}
}
