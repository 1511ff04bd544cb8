package notify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// message returns the body of a notification's delivery: what was stored, with the attributes that differ by
// subscription (SOL003 v2.6.1 §5.5.2.17-19). Notifications of identifiers have their links under the name "links" as
// well, where Tacker's users look for them.
func message(endpoint string, sub *lcm.Subscription, d *lcm.Delivery) ([]byte, error) {
	const api = "/vnflcm/v1/"
	links := map[string]sol003.Link{
		"vnfInstance":  {Href: endpoint + api + "vnf_instances/" + d.InstanceID},
		"subscription": {Href: endpoint + api + "subscriptions/" + sub.ID},
	}
	head := struct {
		ID             string                 `json:"id"`
		SubscriptionID string                 `json:"subscriptionId"`
		TimeStamp      time.Time              `json:"timeStamp"`
		Links          map[string]sol003.Link `json:"_links"`
		Tackers        map[string]sol003.Link `json:"links,omitempty"`
	}{d.NotificationID, sub.ID, d.At.UTC(), links, nil}
	if d.OpOccID != "" {
		links["vnfLcmOpOcc"] = sol003.Link{Href: endpoint + api + "vnf_lcm_op_occs/" + d.OpOccID}
	} else {
		head.Tackers = links
	}
	out, err := json.Marshal(head)
	if err != nil {
		return nil, fmt.Errorf("encode notification %s: %w", d.NotificationID, err)
	}
	body := bytes.TrimSpace(d.Body)
	if len(body) < 2 || body[0] != '{' || body[len(body)-1] != '}' {
		return nil, fmt.Errorf("notification %s is stored as no JSON object", d.NotificationID)
	}
	rest := bytes.TrimSpace(body[1:])
	if len(rest) == 1 {
		return out, nil
	}
	out[len(out)-1] = ','
	return append(out, rest...), nil
}
