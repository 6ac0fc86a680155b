package idle

import (
	"testing"
	"time"
)

func TestALongWaitIsEnded(t *testing.T) {
	ended := make(chan struct{})
	timer := New(50*time.Millisecond, func() { close(ended) })
	defer timer.Stop()
	timer.Wait()
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Error("the wait goes on")
	}
}

func TestShortWaitsAndWorkAreNot(t *testing.T) {
	timer := New(200*time.Millisecond, func() { t.Error("it was ended") })
	for range 12 {
		timer.Wait()
		time.Sleep(20 * time.Millisecond)
		timer.Wait() // something came, and the wait begins anew
		time.Sleep(20 * time.Millisecond)
		timer.Done()
	}
	time.Sleep(450 * time.Millisecond) // nobody waits
	timer.Stop()
}

func TestStopped(t *testing.T) {
	timer := New(20*time.Millisecond, func() { t.Error("it was ended") })
	timer.Wait()
	timer.Stop()
	time.Sleep(60 * time.Millisecond)
}

func BenchmarkWait(b *testing.B) {
	timer := New(time.Hour, func() {})
	defer timer.Stop()
	b.ReportAllocs()
	for b.Loop() {
		timer.Wait()
	}
}
