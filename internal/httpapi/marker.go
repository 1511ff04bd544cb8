package httpapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// marker is where a further page begins: what was asked for, and the last resource of the page before. It lives in the
// link alone, so that any server can go on with it. It gives nobody any right: a page is read on behalf of whoever asks for it.
type marker struct {
	Resource string   `json:"r"`
	Query    string   `json:"q,omitempty"` // of the request, filter and selectors, as it came
	After    string   `json:"a"`
	Until    int64    `json:"u"` // the Unix time from which on it is good no more
	_        struct{} // keyed fields only
}

// markerLife is how long a page's marker is good for.
const markerLife = 24 * time.Hour

func markerMAC(key, payload []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("vnfm page marker 1\x00"))
	mac.Write(payload)
	return mac.Sum(nil)
}

// encode writes the marker as text that needs no escapes in a URI.
func (m marker) encode(key []byte) (string, error) {
	payload, err := json.Marshal(m)
	if err != nil {
		return "", fmt.Errorf("write a page marker: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(append(markerMAC(key, payload), payload...)), nil
}

// decodeMarker reads a marker of the resource. Invalid: it is not one that this installation made, or has expired.
func decodeMarker(text, resource string, key []byte, now time.Time) (marker, error) {
	bad := lcm.Errorf(lcm.KindInvalid, "Invalid query parameter 'nextpage_opaque_marker': it is not a marker of this list")
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) < sha256.Size || !hmac.Equal(raw[:sha256.Size], markerMAC(key, raw[sha256.Size:])) {
		return marker{}, bad
	}
	var m marker
	if err := json.Unmarshal(raw[sha256.Size:], &m); err != nil || m.Resource != resource {
		return marker{}, bad
	}
	if now.Unix() >= m.Until {
		return marker{}, lcm.Errorf(lcm.KindInvalid, "Invalid query parameter 'nextpage_opaque_marker': it has expired; begin with the first page")
	}
	return m, nil
}
