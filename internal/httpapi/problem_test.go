package httpapi

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"testing"
)

// sqlError is what the database's driver returns.
type sqlError string

func (e sqlError) Error() string    { return "ERROR " + string(e) }
func (e sqlError) SQLState() string { return string(e) }

// TestLostConnections: a database that is away is no defect of ours, and says nothing of itself.
func TestLostConnections(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want int
	}{
		{sqlError("57P01"), http.StatusServiceUnavailable}, {sqlError("08006"), http.StatusServiceUnavailable},
		{sqlError("53300"), http.StatusServiceUnavailable}, {sqlError("42601"), http.StatusInternalServerError},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, http.StatusServiceUnavailable}, {errors.New("a defect"), http.StatusInternalServerError},
	} {
		p := problemOf(fmt.Errorf("read VNF instance x: %w", tt.err))
		if p.Status != tt.want || p.Detail == "" || p.Detail == tt.err.Error() {
			t.Errorf("%v: %+v", tt.err, p)
		}
	}
}
