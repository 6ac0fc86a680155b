package telemetry

import (
	"sync"

	"github.com/tiktoken-go/tokenizer/codec"

	"tool-search-proxy/internal/turn"
)

// vocabulary is the tokenizer of the estimates. It takes time and memory to open, so that is done when somebody first looks
// at an estimate. The codec is named directly, so that the program holds no vocabulary but this one.
var vocabulary = sync.OnceValue(codec.NewO200kBase)

// CountTokens estimates the tokens of a text by the o200k_base vocabulary. Providers write tools in forms of their own, so
// for JSON this is an estimate.
func CountTokens(text []byte) int {
	n, err := vocabulary().Count(string(text))
	if err != nil {
		return int(float64(len(text)) / usualBytesPerToken)
	}
	return n
}

// savings is what projection saved: bytes as they were counted, and the tokens of hidden rounds as the upstream measured
// them.
type savings struct {
	// Before are the bytes of the client's tools, once a request. After are those of the tools and the directory that the
	// upstream got, over all rounds.
	Before, After int
	// HiddenTokens are the input and output tokens of hidden rounds, and HiddenBytes the part of After that is in them.
	HiddenTokens, HiddenBytes int
}

func (s *savings) add(o savings) {
	s.Before += o.Before
	s.After += o.After
	s.HiddenTokens += o.HiddenTokens
	s.HiddenBytes += o.HiddenBytes
}

// net estimates the input tokens saved, less the whole cost of hidden rounds: everything they read and wrote beside the
// tools that After counts already.
func (s savings) net(bytesPerToken float64) int {
	hidden := max(float64(s.HiddenTokens)-float64(s.HiddenBytes)/bytesPerToken, 0)
	return int(float64(s.Before-s.After)/bytesPerToken - hidden)
}

// savingsOf sums up one request; ok is false if nothing was projected.
func savingsOf(t *turn.Report) (s savings, ok bool) {
	if t.ClientTools == nil || t.Reason != "" {
		return s, false
	}
	s.Before = len(t.ClientTools)
	for _, round := range t.Rounds {
		sent := s.Before // as the client wrote it
		if round.Tools > 0 {
			sent = round.Tools + len(t.Directory)
		}
		s.After += sent
		if round.Hidden {
			s.HiddenBytes += sent
			s.HiddenTokens += int(round.Tokens.Input + round.Tokens.Output)
		}
	}
	return s, true
}

// usualBytesPerToken is what JSON schemas of tools take in o200k_base, until samples of the real ones are counted.
const usualBytesPerToken = 4.4

// yardstick tells how many bytes of tools make a token, by counting samples of the tools that clients really send. It is
// asked when somebody looks; a request costs it nothing but a copy now and then.
type yardstick struct {
	mu      sync.Mutex
	samples [maxSamples][]byte
	seen    int
	counted int // of seen, at the last count
	bytes   float64
}

const (
	maxSamples     = 8
	maxSampleBytes = 16 << 10
	sampleEvery    = 100
)

// sample takes the beginning of a tools array now and then.
func (y *yardstick) sample(tools []byte) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.seen < maxSamples || y.seen%sampleEvery == 0 {
		at := y.seen % maxSamples
		if y.seen >= maxSamples {
			at = y.seen / sampleEvery % maxSamples
		}
		y.samples[at] = append(y.samples[at][:0], tools[:min(len(tools), maxSampleBytes)]...)
	}
	y.seen++
}

// usual returns the bytes of a token without counting anything.
func (y *yardstick) usual() float64 {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.bytes == 0 {
		return usualBytesPerToken
	}
	return y.bytes
}

// measure counts the samples, if there are new ones, and returns the bytes of a token.
func (y *yardstick) measure() float64 {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.seen == 0 {
		return usualBytesPerToken
	}
	if y.bytes == 0 || y.seen/sampleEvery != y.counted/sampleEvery {
		bytes, tokens := 0, 0
		for _, sample := range y.samples {
			bytes += len(sample)
			tokens += CountTokens(sample)
		}
		y.bytes, y.counted = float64(bytes)/float64(max(tokens, 1)), y.seen
	}
	return y.bytes
}
