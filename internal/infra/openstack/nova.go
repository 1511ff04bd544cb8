package openstack

import (
	"context"
	"net/http"
)

// server is a Nova server as far as the driver looks at it.
type server struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Status string `json:"status"`
	Task   string `json:"OS-EXT-STS:task_state"`
	Fault  struct {
		Message string `json:"message"`
	} `json:"fault"`
	Zone   string `json:"OS-EXT-AZ:availability_zone"`
	Flavor struct {
		ID string `json:"id"`
	} `json:"flavor"`
	Image any `json:"image"` // an object with an id; "" when the server has its system on a volume
}

// has tells whether the server has a zone, a flavor or an image.
func (s *server) has(what, value string) bool {
	switch what {
	case "zone":
		return s.Zone == value
	case "flavor":
		return s.Flavor.ID == value
	}
	image, _ := s.Image.(map[string]any)
	return text(image, "id") == value
}

// trouble is what is to be said of a server besides its status: what it is doing, what has befallen it.
func (s *server) trouble() string {
	switch {
	case s.Fault.Message != "":
		return ": " + cut(s.Fault.Message)
	case s.Task != "":
		return ": it is " + s.Task
	}
	return ""
}

// The statuses of servers that run, that do not, and that are broken.
const (
	serverActive = "ACTIVE"
	serverOff    = "SHUTOFF"
	serverError  = "ERROR"
)

// server reads a server, nil when there is none.
func (c *cloud) server(ctx context.Context, id string) (*server, error) {
	nova, err := c.nova(ctx)
	if err != nil {
		return nil, err
	}
	var one struct {
		Server server `json:"server"`
	}
	status, err := c.exchange(ctx, nova, "read server "+id, http.MethodGet, nil, &one, []int{http.StatusOK}, []string{"servers", id})
	if status == http.StatusNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &one.Server, nil
}

// The actions that bring servers into another state, as Nova's API has them.
var serverActions = map[string]any{
	"os-start": map[string]any{"os-start": nil},
	"os-stop":  map[string]any{"os-stop": nil},
	"reboot":   map[string]any{"reboot": map[string]any{"type": "HARD"}},
}

// serverAction has Nova do something to a server. That it is in no state for it (409) is for the next look to see.
func (c *cloud) serverAction(ctx context.Context, id, action string) error {
	nova, err := c.nova(ctx)
	if err != nil {
		return err
	}
	_, err = c.exchange(ctx, nova, action+" server "+id, http.MethodPost, serverActions[action], nil,
		[]int{http.StatusAccepted, http.StatusConflict}, []string{"servers", id, "action"})
	return err
}
