package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrUnavailable says that the store cannot be reached. Requests go on with what the transcript tells.
var ErrUnavailable = errors.New("the session store cannot be reached")

// RedisOptions say where the sessions of several replicas are kept.
type RedisOptions struct {
	URL string        // redis, rediss or unix URL
	TTL time.Duration // idle time after which a session is dropped
}

// Redis keeps sessions in Redis or Valkey, so that several replicas share them. A session is one JSON value under its
// key, an alias a value that names the key; both expire after the idle time. A store that does not answer costs a request
// little: after a failure it is left alone for a moment.
type Redis struct {
	client *redis.Client
	ttl    time.Duration
	rests  atomic.Int64 // unix nanoseconds until which the store is left alone after a failure
}

const (
	redisPrefix  = "tool-search-proxy:"
	sessionName  = redisPrefix + "session:"
	aliasName    = redisPrefix + "alias:"
	secretName   = redisPrefix + "secret"
	redisTimeout = 250 * time.Millisecond
	redisRest    = 2 * time.Second
	mostAttempts = 16
)

// silent drops what the client library writes to standard error by itself; callers get every error.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

var silence = sync.OnceFunc(func() { redis.SetLogger(silent{}) })

// NewRedis makes a store; it connects when it is needed. The error says what is wrong with the URL.
func NewRedis(o RedisOptions) (*Redis, error) {
	silence()
	options, err := redis.ParseURL(o.URL)
	if err != nil {
		return nil, errors.New("[session] redis_url is no Redis URL") // the URL itself may hold a password
	}
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout = redisTimeout, redisTimeout, redisTimeout
	options.PoolTimeout = redisTimeout
	options.ContextTimeoutEnabled = true
	options.MaxRetries = 1
	options.DialerRetries = 1
	return &Redis{client: redis.NewClient(options), ttl: o.TTL}, nil
}

// Find implements Store.
func (r *Redis) Find(ctx context.Context, keys ...string) (*Session, string, int, error) {
	if len(keys) == 0 {
		return nil, "", 0, ErrNotFound
	}
	names := make([]string, 0, 2*len(keys))
	for _, key := range keys {
		names = append(names, sessionName+key, aliasName+key)
	}
	values, err := guard(r, func() ([]any, error) { return r.client.MGet(ctx, names...).Result() })
	if err != nil {
		return nil, "", 0, err
	}
	for i, key := range keys {
		value, direct := values[2*i].(string)
		if !direct {
			owner, ok := values[2*i+1].(string)
			if !ok {
				continue
			}
			key = owner
			value, err = guard(r, func() (string, error) { return r.client.Get(ctx, sessionName+key).Result() })
			if errors.Is(err, redis.Nil) {
				continue // the session is gone, its alias not yet
			}
			if err != nil {
				return nil, "", 0, err
			}
		}
		s := &Session{}
		if json.Unmarshal([]byte(value), s) != nil {
			continue // of another version
		}
		r.keepAlive(ctx, key, keys[i])
		return s, key, i, nil
	}
	return nil, "", 0, ErrNotFound
}

// keepAlive lets the idle time begin anew. That it failed shows soon enough elsewhere.
func (r *Redis) keepAlive(ctx context.Context, key, alias string) {
	_, _ = r.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Expire(ctx, sessionName+key, r.ttl)
		if alias != key {
			p.Expire(ctx, aliasName+alias, r.ttl)
		}
		return nil
	})
}

// Update implements Store, by optimistic concurrency: when another replica was faster, change runs again on its value.
func (r *Redis) Update(ctx context.Context, key string, aliases []string, change func(*Session)) (*Session, error) {
	name := sessionName + key
	var stored *Session
	attempt := func(tx *redis.Tx) error {
		next := &Session{}
		value, err := tx.Get(ctx, name).Result()
		switch {
		case errors.Is(err, redis.Nil):
		case err != nil:
			return err
		default:
			if json.Unmarshal([]byte(value), next) != nil {
				next = &Session{} // of another version
			}
		}
		change(next)
		next.trim()
		encoded, err := json.Marshal(next)
		if err != nil {
			return err
		}
		_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Set(ctx, name, encoded, r.ttl)
			for _, alias := range aliases {
				if alias != key {
					p.Set(ctx, aliasName+alias, key, r.ttl)
				}
			}
			return nil
		})
		stored = next
		return err
	}
	for range mostAttempts {
		_, err := guard(r, func() (struct{}, error) { return struct{}{}, r.client.Watch(ctx, attempt, name) })
		if errors.Is(err, redis.TxFailedErr) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return stored, nil
	}
	return nil, fmt.Errorf("%w: other replicas changed the session %d times in between", ErrUnavailable, mostAttempts)
}

// Secret returns the secret that all replicas on this store share; where there is none yet, own becomes it.
func (r *Redis) Secret(ctx context.Context, own []byte) ([]byte, error) {
	if err := r.client.SetNX(ctx, secretName, own, 0).Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	secret, err := r.client.Get(ctx, secretName).Result()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return []byte(secret), nil
}

// Stats implements Store; what other replicas hold is not counted.
func (r *Redis) Stats(context.Context) Stats {
	return Stats{Sessions: -1, Bytes: -1, Evictions: -1, Expired: -1}
}

// Ping implements Store.
func (r *Redis) Ping(ctx context.Context) error {
	if err := r.client.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

// Close implements Store.
func (r *Redis) Close() error { return r.client.Close() }

// guard runs a command, and leaves a store that does not answer alone for a moment, so that not every request waits.
func guard[T any](r *Redis, command func() (T, error)) (T, error) {
	var none T
	if time.Now().UnixNano() < r.rests.Load() {
		return none, fmt.Errorf("%w: it did not answer a moment ago", ErrUnavailable)
	}
	value, err := command()
	var answered redis.Error
	switch {
	case err == nil:
		return value, nil
	case errors.Is(err, redis.Nil), errors.Is(err, redis.TxFailedErr):
		return none, err
	case errors.Is(err, context.Canceled):
		return none, err // the client is gone; that says nothing about the store
	case !errors.As(err, &answered):
		r.rests.Store(time.Now().Add(redisRest).UnixNano())
	}
	return none, fmt.Errorf("%w: %w", ErrUnavailable, err)
}
