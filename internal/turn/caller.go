package turn

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
)

// caller is who sends a request, as far as it matters: sessions are found only by the credential that opened them. The
// secret itself is never kept, only its keyed digest.
type caller struct{ credential string }

// credentialHeaders are the headers in which clients carry their secret.
var credentialHeaders = []string{"Authorization", "Api-Key", "X-Api-Key", "X-Goog-Api-Key"}

func (e *Engine) caller(h http.Header) caller {
	mac := hmac.New(sha256.New, e.Secret)
	for _, name := range credentialHeaders {
		for _, value := range h.Values(name) {
			mac.Write([]byte(name))
			mac.Write([]byte{0})
			mac.Write([]byte(value))
			mac.Write([]byte{0})
		}
	}
	return caller{string(mac.Sum(nil))}
}

// key returns the digest under which a name of the given kind leads to a session of this caller. The credential is a digest
// of fixed length in front, and half of the sum is cut off, so that no longer name can be made from a digest: HMAC would
// hash twice for nothing.
func (c caller) key(kind, name string) string {
	var room [256]byte
	text := append(append(append(append(room[:0], c.credential...), kind...), 0), name...)
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}
