package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"
)

// Listener serves a handler until it is told to stop.
type Listener struct {
	Name              string // in logs
	Handler           http.Handler
	MaxHeaderBytes    int
	ReadHeaderTimeout time.Duration
	IdleTimeout       time.Duration // of a kept connection between two requests
	ShutdownTimeout   time.Duration // for running requests to finish
	Log               *zap.Logger
}

// Run serves until ctx is done, and then lets running requests finish for as long as ShutdownTimeout says. Those that it cuts
// then have a context whose cause is http.ErrServerClosed. It closes l.
func (s Listener) Run(ctx context.Context, l net.Listener) error {
	base, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	server := &http.Server{
		Handler:           s.Handler,
		BaseContext:       func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: s.ReadHeaderTimeout,
		IdleTimeout:       s.IdleTimeout,
		MaxHeaderBytes:    s.MaxHeaderBytes,
		ErrorLog:          zap.NewStdLog(s.Log),
		// No ReadTimeout and no WriteTimeout: both span whole bodies and would cut healthy streams.
	}
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(l) }()
	s.Log.Info("listening", zap.String("listener", s.Name), zap.String("address", l.Addr().String()))
	select {
	case err := <-stopped:
		return fmt.Errorf("serve %s on %s: %w", s.Name, l.Addr(), err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.ShutdownTimeout)
	defer cancel()
	err := server.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		s.Log.Warn("requests were still running at the end of the shutdown timeout and are cut",
			zap.String("listener", s.Name), zap.Duration("shutdown_timeout", s.ShutdownTimeout))
		cut(http.ErrServerClosed) // so that nobody takes the clients for gone
		err = server.Close()
	}
	<-stopped
	return err
}
