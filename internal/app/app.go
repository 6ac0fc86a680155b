// Package app puts the proxy together: out of a configuration it makes the engine, the client to the upstream, the session
// store and the listeners, and runs them until it is told to stop.
package app

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"

	"tool-search-proxy/internal/config"
	"tool-search-proxy/internal/server"
	"tool-search-proxy/internal/session"
	"tool-search-proxy/internal/telemetry"
	"tool-search-proxy/internal/turn"
	"tool-search-proxy/internal/upstream"
)

// App is the proxy put together.
type App struct {
	live     *config.Live
	log      *zap.Logger
	upstream *upstream.Client
	sessions session.Store
	recorder *telemetry.Recorder
	engine   *turn.Engine
	policies policies
	// shared, if not nil, is the store that holds the secret which replicas share; secret is the one in use.
	shared *session.Redis
	secret []byte

	// Clients answers clients, Operators answers operators.
	Clients, Operators http.Handler
}

// Options say what the parts are put together from.
type Options struct {
	Config  *config.Live
	Log     *zap.Logger
	Version string
}

// New makes the proxy. Close releases what it holds.
func New(ctx context.Context, o Options) (*App, error) {
	c := o.Config.Current()
	client, err := upstream.New(upstream.Options{
		BaseURL: c.Upstream.BaseURL, APIKey: c.Upstream.APIKey, ConnectTimeout: c.Upstream.ConnectTimeout,
		TLSTimeout: c.Upstream.TLSTimeout, HeaderTimeout: c.Upstream.HeaderTimeout, IdleTimeout: c.Upstream.IdleTimeout,
	})
	if err != nil {
		return nil, err
	}
	a := &App{live: o.Config, log: o.Log, upstream: client}
	secret, err := a.openSessions(ctx, c)
	if err != nil {
		return nil, err
	}
	a.recorder = telemetry.New(telemetry.Options{
		Log: o.Log, Version: o.Version, Sessions: a.sessions.Stats, OTLPEndpoint: c.Tracing.OTLPEndpoint,
		Notices: telemetry.NoticeOptions{
			Mode: c.EasterEgg.AgentCallMessageEnabled, Text: c.EasterEgg.AgentCallMessage,
			Delivery: c.EasterEgg.AgentCallMessageDelivery, WebhookURL: c.EasterEgg.AgentCallMessageWebhookURL,
		},
	})
	passthrough := client.Passthrough(o.Log, func(w http.ResponseWriter, status int, message string) {
		server.WriteError(w, status, "server_error", "upstream_error", message)
	})
	a.engine = turn.New(turn.Options{
		Upstream: client, Passthrough: passthrough, Sessions: a.sessions, Secret: secret,
		Policy:  func() *turn.Policy { return a.policies.of(a.live.Current()) },
		Observe: a.recorder.Turn, Notify: a.recorder.Notice, Log: o.Log,
		MaxAnswerBytes: c.Upstream.MaxAnswerBytes, MaxEventBytes: c.Upstream.MaxEventBytes,
		Heartbeat:     c.Server.Heartbeat,
		LatchRefusals: c.Upstream.LatchRefusals, LatchTime: c.Upstream.LatchTime,
	})
	a.Clients = server.New(server.Options{
		Engine: a.engine, Passthrough: passthrough, MaxBodyBytes: c.Server.MaxBodyBytes, Observe: a.recorder.Access, Log: o.Log,
	})
	a.Operators = a.recorder.Admin(telemetry.AdminOptions{
		Ready:  map[string]func(context.Context) error{"upstream": client.Ready, "sessions": a.sessions.Ping},
		Config: func(w io.Writer) error { return a.live.Current().Print(w) },
	})
	return a, nil
}

// openSessions opens the session store and returns the secret that keys its digests.
func (a *App) openSessions(ctx context.Context, c *config.Config) ([]byte, error) {
	secret := []byte(c.Session.Secret)
	if c.Session.Store == config.StoreMemory {
		a.sessions = session.NewMemory(session.MemoryOptions{
			TTL: c.Session.TTL, MaxSessions: c.Session.MaxSessions, MaxBytes: c.Session.MaxBytes,
		})
		if len(secret) == 0 {
			secret = []byte(rand.Text())
		}
		return secret, nil
	}
	store, err := session.NewRedis(session.RedisOptions{URL: c.Session.RedisURL, TTL: c.Session.TTL})
	if err != nil {
		return nil, err
	}
	a.sessions = store
	if len(secret) == 0 {
		a.shared, a.secret = store, []byte(rand.Text())
		if secret, err = store.Secret(ctx, a.secret); err != nil {
			a.log.Error("the session store is away: until it is back, sessions are rebuilt from the transcript", zap.Error(err))
			secret = a.secret
		}
		a.secret = secret
	}
	return secret, nil
}

// secretCheck is the time between two looks at the secret that replicas share.
const secretCheck = 2 * time.Second

// shareSecret keeps the secret of all replicas the same: a store that was away at the start tells its own, and one that has lost
// it is given it again.
func (a *App) shareSecret(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(secretCheck):
			a.checkSecret(ctx)
		}
	}
}

func (a *App) checkSecret(ctx context.Context) {
	secret, err := a.shared.Secret(ctx, a.secret)
	if err != nil || bytes.Equal(secret, a.secret) {
		return
	}
	a.secret = secret
	a.engine.UseSecret(secret)
	a.log.Info("the session store has told another secret: sessions are found under it from now on")
}

// Close releases everything.
func (a *App) Close() error {
	a.recorder.Close()
	a.upstream.Close()
	return a.sessions.Close()
}

// Run listens for clients and operators until ctx is done, and watches the configuration. Running requests may finish.
func (a *App) Run(ctx context.Context) error {
	c := a.live.Current()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	clients, err := listen(ctx, "server.listen", c.Server.Listen)
	if err != nil {
		return err
	}
	parts := []func() error{func() error { return a.live.Watch(ctx) }}
	if a.shared != nil {
		parts = append(parts, func() error { a.shareSecret(ctx); return nil })
	}
	if c.Admin.Listen != "" {
		operators, err := listen(ctx, "admin.listen", c.Admin.Listen)
		if err != nil {
			_ = clients.Close()
			return err
		}
		parts = append(parts, func() error {
			return server.Listener{
				Name: "admin", Handler: a.Operators, MaxHeaderBytes: 64 << 10, ReadHeaderTimeout: 10 * time.Second,
				IdleTimeout: time.Minute, ShutdownTimeout: time.Second, Log: a.log,
			}.Run(ctx, operators)
		})
	}
	parts = append(parts, func() error {
		return server.Listener{
			Name: "clients", Handler: a.Clients, MaxHeaderBytes: int(c.Server.MaxHeaderBytes),
			ReadHeaderTimeout: c.Server.ReadHeaderTimeout, IdleTimeout: c.Server.IdleTimeout,
			ShutdownTimeout: c.Server.ShutdownTimeout, Log: a.log,
		}.Run(ctx, clients)
	})
	// The first part that fails stops the others.
	results := make(chan error, len(parts))
	for _, part := range parts {
		go func() { results <- part() }()
	}
	for range parts {
		if failure := <-results; failure != nil {
			err = errors.Join(err, failure)
			cancel()
		}
	}
	return err
}

func listen(ctx context.Context, key, address string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s (%s): %w", address, key, err)
	}
	return l, nil
}
