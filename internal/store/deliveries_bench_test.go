package store_test

import (
	"fmt"
	"testing"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// BenchmarkFanOut is an operation's three transactions, by how many subscriptions there are and whether they match.
func BenchmarkFanOut(b *testing.B) {
	for _, c := range []struct {
		subscriptions int
		project       string
	}{{0, ""}, {1, "p"}, {100, "elsewhere"}, {100, "p"}} {
		b.Run(fmt.Sprintf("%d of %q", c.subscriptions, c.project), func(b *testing.B) {
			p := newPlant(b)
			for range c.subscriptions {
				p.subscribe(b, lcm.Subscription{ProjectID: c.project})
			}
			i := p.create(b, lcm.Instance{Name: "i", VnfdID: "d"})
			for b.Loop() {
				op := p.accept(b, i, sol003.LcmOperationTypeScale)
				p.enter(b, op, nil, sol003.LcmOperationStateProcessing)
				p.enter(b, op, i, sol003.LcmOperationStateCompleted)
			}
		})
	}
}
