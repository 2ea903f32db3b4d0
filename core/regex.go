package core

import (
	"time"

	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/pattern"
)

// matcher searches keys for a pattern, within one time limit for all of them together.
type matcher struct {
	pattern *pattern.Pattern
	left    time.Duration
	clock   Clock
}

// compile prepares a pattern.
func (m *Master) compile(text string) (*matcher, error) {
	p, err := pattern.Compile(text)
	if err != nil {
		return nil, err
	}
	return &matcher{pattern: p, left: m.cfg.RegexTimeout, clock: m.clock}, nil
}

func (r *matcher) match(key string) (bool, error) {
	if r.left <= 0 {
		return false, pattern.ErrTimeout
	}
	start := r.clock.Now()
	ok, err := r.pattern.Match(key, r.left)
	r.left -= time.Duration(r.clock.Now() - start)
	return ok, err
}

// matching calls f, without locks, for every key that matches. Keys are collected bite by bite
// first, so that no lock is held while the engine runs.
func (m *Master) matching(k *keeper, r *matcher, f func(key string)) error {
	var keys []string
	return m.view(k, func(sh *object.Shard, o *object.Object) {
		keys = append(keys, sh.KeyCopy(o))
	}, func() error {
		for _, key := range keys {
			ok, err := r.match(key)
			if err != nil {
				return err
			}
			if ok {
				f(key)
			}
		}
		keys = keys[:0]
		return nil
	})
}
