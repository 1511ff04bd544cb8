package pkgm

import (
	"container/list"
	"sync"
)

// lru keeps the values that were used last, at most max of them. It is safe for concurrent use.
type lru[K comparable, V any] struct {
	mu    sync.Mutex
	max   int
	order *list.List // of *lruEntry, the one used last in front
	by    map[K]*list.Element
}

type lruEntry[K comparable, V any] struct {
	key   K
	value V
}

func newLRU[K comparable, V any](limit int) *lru[K, V] {
	return &lru[K, V]{max: limit, order: list.New(), by: map[K]*list.Element{}}
}

func (c *lru[K, V]) get(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.by[key]
	if !ok {
		return value, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*lruEntry[K, V]).value, true
}

func (c *lru[K, V]) put(key K, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.by[key]; ok {
		e.Value.(*lruEntry[K, V]).value = value
		c.order.MoveToFront(e)
		return
	}
	c.by[key] = c.order.PushFront(&lruEntry[K, V]{key, value})
	for c.order.Len() > c.max {
		oldest := c.order.Back()
		delete(c.by, c.order.Remove(oldest).(*lruEntry[K, V]).key)
	}
}
