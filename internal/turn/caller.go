package turn

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"

	"tool-search-proxy/internal/openai"
)

// caller is who sends a request, as far as it matters: sessions are found only by the credential that opened them. The
// secret itself is never kept, only its keyed digest.
//
// The keyed digests are SHA-256 with a key of fixed length in front. HMAC, which hashes twice, protects against lengthening
// a text whose digest is known; but nobody gets to see a credential's digest, and of a name's digest half is cut off.
type caller struct{ credential string }

func (e *Engine) caller(h http.Header) caller {
	text := make([]byte, 0, 256)
	text = append(text, e.secret.Load()[:]...)
	for _, name := range openai.CredentialHeaders {
		for _, value := range h[name] {
			text = append(append(append(append(text, name...), 0), value...), 0)
		}
	}
	sum := sha256.Sum256(text)
	return caller{string(sum[:])}
}

// key returns the digest under which a name of the given kind leads to a session of this caller.
func (c caller) key(kind, name string) string {
	text := make([]byte, 0, 256)
	text = append(append(append(append(text, c.credential...), kind...), 0), name...)
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}
