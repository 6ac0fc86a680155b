package main

import (
	"os"
	"runtime"
)

// ballastSize is how much the heap seems larger than it is.
const ballastSize = 6 << 20

// ballast keeps the garbage collector from running all the time: what lives in the proxy is small, what passes through is
// not, and the collector starts whenever the heap has doubled. The bytes are never touched, so they take no memory but
// addresses. Who sets GOGC gets what it says. The returned function ends it.
func ballast() (release func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	weight := make([]byte, ballastSize)
	return func() { runtime.KeepAlive(&weight) }
}
