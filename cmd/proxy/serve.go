package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"tool-search-proxy/internal/app"
	"tool-search-proxy/internal/config"
)

// load parses the flags of a command and reads the configuration; what is wrong with either is a usage error.
func load(flags *pflag.FlagSet, args []string) (*config.Config, error) {
	config.AddFlags(flags)
	if err := parse(flags, args, 0); err != nil {
		return nil, err
	}
	c, err := config.Load(flags)
	if err != nil {
		return nil, usageError{fmt.Errorf("the configuration is wrong:\n%w", err)}
	}
	return c, nil
}

// serve runs the proxy until it is told to stop.
func serve(ctx context.Context, args []string, s streams) error {
	flags := newFlags("serve", s)
	c, err := load(flags, args)
	if err != nil {
		return err
	}
	log, level, err := app.NewLog(c.Log)
	if err != nil {
		return err
	}
	defer func() { _ = log.Sync() }()
	for _, warning := range c.Warnings {
		log.Warn(warning)
	}
	live := config.NewLive(c, flags, log, func(c *config.Config) {
		if l, err := zapcore.ParseLevel(c.Log.Level); err == nil {
			level.SetLevel(l)
		}
	})
	defer reloadOnHangup(live)()
	proxy, err := app.New(ctx, app.Options{Config: live, Log: log, Version: versionText()})
	if err != nil {
		return err
	}
	log.Info("starting", zap.String("version", versionText()), zap.String("configuration", c.Path),
		zap.Bool("tool_search_enabled", c.Skills.ToolSearchEnabled), zap.Bool("tool_search_audit", c.Skills.ToolSearchAudit))
	return errors.Join(proxy.Run(ctx), proxy.Close())
}

// reloadOnHangup reloads the configuration on SIGHUP until the returned function is called.
func reloadOnHangup(live *config.Live) (stop func()) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range hangups {
			_ = live.Reload() // logged
		}
	}()
	return func() {
		signal.Stop(hangups)
		close(hangups)
		<-done
	}
}

// check validates the configuration and prints what is in force.
func check(_ context.Context, args []string, s streams) error {
	c, err := load(newFlags("check", s), args)
	if err != nil {
		return err
	}
	for _, warning := range c.Warnings {
		fmt.Fprintf(s.err, "warning: %s\n", warning)
	}
	return c.Print(s.out)
}

// healthcheck asks the proxy that runs with the same configuration whether it is alive.
func healthcheck(ctx context.Context, args []string, s streams) error {
	c, err := load(newFlags("healthcheck", s), args)
	if err != nil {
		return err
	}
	if c.Admin.Listen == "" {
		return usageError{errors.New("admin.listen is empty: there is nothing to ask")}
	}
	host, port, err := net.SplitHostPort(c.Admin.Listen)
	if err != nil {
		return usageError{err}
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/healthz", nil)
	if err != nil {
		return err
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return fmt.Errorf("not healthy: %w", err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("not healthy: status %d", response.StatusCode)
	}
	return nil
}
