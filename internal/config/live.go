package config

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/spf13/pflag"
	"go.uber.org/zap"
)

// Live holds the configuration in force, and takes over a new one as a whole.
type Live struct {
	flags   *pflag.FlagSet
	log     *zap.Logger
	current atomic.Pointer[Config]
	mu      sync.Mutex // one reload at a time
	changed func(*Config)
}

// NewLive begins with a loaded configuration. changed, if not nil, is told of each one that takes its place.
func NewLive(c *Config, flags *pflag.FlagSet, log *zap.Logger, changed func(*Config)) *Live {
	if changed == nil {
		changed = func(*Config) {}
	}
	l := &Live{flags: flags, log: log, changed: changed}
	l.current.Store(c)
	return l
}

// Current returns the configuration in force.
func (l *Live) Current() *Config { return l.current.Load() }

// Reload reads the configuration anew. A broken one is logged and returned as an error, and the old one stays in force.
// Values that count at the start only keep their old values until then.
func (l *Live) Reload() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.current.Load()
	next, err := Load(l.flags)
	if err != nil {
		l.log.Error("the configuration is wrong: the old one stays in force", zap.Error(err))
		return err
	}
	changes := Changes(old, next)
	for _, k := range keys {
		if k.restart {
			k.store(next, k.load(old))
		}
	}
	l.current.Store(next)
	for _, c := range changes {
		fields := []zap.Field{zap.String("key", c.Key), zap.String("from", c.From), zap.String("to", c.To)}
		if c.Restart {
			l.log.Warn("a configuration value has changed and counts after a restart only", fields...)
		} else {
			l.log.Info("a configuration value has changed", fields...)
		}
	}
	l.changed(next)
	return nil
}

// unwatched says that changes of the file will not be noticed.
func (l *Live) unwatched(err error) error {
	l.log.Warn("the configuration file cannot be watched: a change counts after SIGHUP only", zap.Error(err))
	return nil
}

// settle is how long the file must be left alone before it is read: editors write it in several steps. An empty file is valid,
// but more likely one that is about to be written: it must be left alone for longer.
const (
	settle      = 100 * time.Millisecond
	settleEmpty = time.Second
)

// Watch reloads whenever the file's content changes, until ctx is done. It watches the directories that the file and, if
// it is a symbolic link, its target stand in, so that editors that replace the file and ConfigMaps that swap a directory
// of links are noticed too. It returns at once if there is no file. A file that cannot be watched is no reason not to serve:
// that is logged, and Reload remains.
func (l *Live) Watch(ctx context.Context) error {
	path := l.Current().Path
	if path == "" {
		return nil
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return l.unwatched(err)
	}
	defer watcher.Close()
	watched := map[string]bool{}
	watch := func() error {
		directories := []string{filepath.Dir(path)}
		if target, err := filepath.EvalSymlinks(path); err == nil {
			directories = append(directories, filepath.Dir(target))
		}
		for i, directory := range directories {
			if watched[directory] {
				continue
			}
			if err := watcher.Add(directory); err != nil && i == 0 {
				return fmt.Errorf("watch the configuration file's directory: %w", err)
			}
			watched[directory] = true
		}
		return nil
	}
	if err := watch(); err != nil {
		return l.unwatched(err)
	}
	seen := l.Current().digest
	wasEmpty := false
	timer := time.NewTimer(settle) // once at the start: the file may have changed since it was read
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-watcher.Events:
			if !ok {
				return nil
			}
			timer.Reset(settle)
		case err := <-watcher.Errors:
			l.log.Warn("watching the configuration file", zap.Error(err))
			timer.Reset(settle)
		case <-timer.C:
			content, err := os.ReadFile(path)
			if err != nil {
				continue // it is being replaced; what replaces it makes another event
			}
			isEmpty := len(bytes.TrimSpace(content)) == 0
			if isEmpty && !wasEmpty {
				wasEmpty = true
				timer.Reset(settleEmpty)
				continue
			}
			wasEmpty = isEmpty
			if digest := sha256.Sum256(content); digest != seen {
				seen = digest
				_ = l.Reload() // logged
			}
			clear(watched) // the target of a link may be another one now; adding a directory again does no harm
			if err := watch(); err != nil {
				l.log.Warn("watching the configuration file", zap.Error(err))
			}
		}
	}
}
