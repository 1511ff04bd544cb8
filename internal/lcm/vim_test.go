package lcm

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestVimLimits(t *testing.T) {
	for _, tt := range []struct {
		most, rate any
		want       VimLimits
		invalid    bool
	}{
		{nil, nil, VimLimits{}, false},
		{"None", "", VimLimits{}, false},
		{8.0, 1.0, VimLimits{8, 1}, false},
		{8.0, 1.5, VimLimits{8, 1.5}, false},
		{"8", " 20 ", VimLimits{8, 20}, false},
		{json.Number("8"), json.Number("1e3"), VimLimits{8, 1000}, false},
		{10000, 1e6, VimLimits{10000, 1e6}, false},
		{0.0, nil, VimLimits{}, true},
		{-1.0, nil, VimLimits{}, true},
		{2.5, nil, VimLimits{}, true},
		{10001.0, nil, VimLimits{}, true},
		{"many", nil, VimLimits{}, true},
		{true, nil, VimLimits{}, true},
		{[]any{1.0}, nil, VimLimits{}, true},
		{nil, 0.0, VimLimits{}, true},
		{nil, 0.99, VimLimits{}, true},
		{nil, "NaN", VimLimits{}, true},
		{nil, "Inf", VimLimits{}, true},
		{nil, map[string]any{}, VimLimits{}, true},
	} {
		got, err := (&VIM{Extra: map[string]any{ExtraMaxConcurrent: tt.most, ExtraRequestsPerSecond: tt.rate}}).Limits()
		if tt.invalid != Is(err, KindInvalid) || err == nil && got != tt.want {
			t.Errorf("%v, %v: %+v %v", tt.most, tt.rate, got, err)
		}
	}
}

func TestBackoff(t *testing.T) {
	busy := &Error{Kind: KindRetryable, Again: 5 * time.Minute}
	for name, tt := range map[string]struct {
		err         error
		left        time.Duration
		least, most time.Duration
	}{
		"nothing asked for":  {errors.New("unclassed"), time.Hour, time.Second, 2 * time.Second},
		"a second":           {&Error{Kind: KindRetryable, Again: time.Second + 1}, time.Hour, time.Second + 1, 2*time.Second + 1},
		"some":               {fmt.Errorf("around: %w", &Error{Kind: KindRetryable, Again: 20 * time.Second}), time.Hour, 20 * time.Second, 24 * time.Second},
		"long":               {busy, time.Hour, 5 * time.Minute, 6 * time.Minute},
		"more than is left":  {busy, 3 * time.Minute, 3 * time.Minute, 3 * time.Minute},
		"hardly any is left": {busy, time.Millisecond, time.Millisecond, time.Millisecond},
		"none is left":       {busy, -time.Millisecond, 0, 0},
	} {
		for range 100 {
			if got := backoff(tt.err, tt.left); got < tt.least || got > tt.most {
				t.Fatalf("%s: %s", name, got)
			}
		}
	}
}
