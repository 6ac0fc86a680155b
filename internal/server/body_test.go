package server

import "testing"

func TestBuffersAreUsedAgainWithinBounds(t *testing.T) {
	for takeKept(0) != nil {
		continue // what other tests left
	}
	const large = keptBytes/2 - 1
	for range 3 {
		giveBack(make([]byte, 10, large))
	}
	giveBack(make([]byte, 0, keptBytes+1))
	if n, bytes := len(buffers.list), buffers.bytes; n != 2 || bytes != 2*large {
		t.Errorf("%d buffers of %d bytes are kept", n, bytes)
	}
	for range 2 * keptBuffers {
		giveBack(make([]byte, 0, 100))
	}
	if n, bytes := len(buffers.list), buffers.bytes; n != keptBuffers || bytes != keptBuffers*100 {
		t.Errorf("%d small buffers of %d bytes are kept", n, bytes)
	}
	giveBack(make([]byte, 20, 64<<10))
	if b := borrow(50 << 10); cap(b) != 64<<10 || len(b) != 0 {
		t.Errorf("the buffer that fits was not used: %d of %d", len(b), cap(b))
	}
	if b := borrow(50 << 10); cap(b) < 50<<10 {
		t.Errorf("a buffer of %d is too small", cap(b))
	}
}
