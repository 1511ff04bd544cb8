package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func testServer(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func TestConnReadsAnswers(t *testing.T) {
	long := strings.Repeat("0123456789", 20_000)
	peers := map[string]bool{}
	addr := testServer(t, func(w http.ResponseWriter, r *http.Request) {
		peers[r.RemoteAddr] = true
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/echo":
			w.Header().Set("Location", "http://x/things/42")
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, "%s %s %s", r.Method, r.Header.Get("Content-Type"), body)
		case "/long":
			_, _ = io.WriteString(w, long)
		case "/none":
			w.WriteHeader(http.StatusNoContent)
		case "/empty":
			w.WriteHeader(http.StatusAccepted)
		case "/close":
			w.Header().Set("Connection", "close")
			_, _ = io.WriteString(w, "bye")
		default:
			http.Error(w, "no such thing", http.StatusNotFound)
		}
	})
	c := newConn(addr)
	defer c.close()
	for _, tt := range []struct {
		method, path, body string
		status             int
		want, location     string
	}{
		{"POST", "/echo", `{"a":1}`, 201, `POST application/json {"a":1}`, "http://x/things/42"},
		{"GET", "/long", "", 200, long, ""},
		{"GET", "/none", "", 204, "", ""},
		{"PUT", "/empty", "x", 202, "", ""},
		{"GET", "/missing", "", 404, "no such thing\n", ""},
		{"GET", "/close", "", 200, "bye", ""},
		{"GET", "/long", "", 200, long, ""},
	} {
		var body []byte
		if tt.body != "" {
			body = []byte(tt.body)
		}
		a, err := c.do(tt.method, tt.path, jsonType, body)
		if err != nil {
			t.Fatalf("%s %s: %v", tt.method, tt.path, err)
		}
		if a.status != tt.status || string(a.body) != tt.want || a.location != tt.location {
			t.Errorf("%s %s: got %d %q %.80q", tt.method, tt.path, a.status, a.location, a.body)
		}
	}
	if len(peers) != 2 {
		t.Errorf("%d connections were made, want 2: one until it was closed, one after", len(peers))
	}
	if _, err := c.want(200, "GET", "/missing", "", nil, nil); err == nil || !strings.Contains(err.Error(), "answers 404, not 200: no such thing") {
		t.Errorf("want fails with %v", err)
	}
	var into struct{}
	if _, err := c.want(200, "GET", "/long", "", nil, &into); err == nil {
		t.Error("an answer that is no JSON passes")
	}
}

func TestConnRefusesWhatIsNotHTTP(t *testing.T) {
	for name, said := range map[string]string{
		"nothing":      "",
		"another tale": "SSH-2.0-OpenSSH_9.2\r\n",
		"no length":    "HTTP/1.1 200 OK\r\n\r\nx",
		"bad length":   "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"short body":   "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
		"no colon":     "HTTP/1.1 200 OK\r\nwhat\r\n\r\n",
		"bad chunk":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"no status":    "HTTP/1.1 abc OK\r\n\r\n",
		"short line":   "HTTP/1.1\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			go func() {
				nc, err := ln.Accept()
				if err != nil {
					return
				}
				buf := make([]byte, 1<<10)
				_, _ = nc.Read(buf)
				_, _ = io.WriteString(nc, said)
				_ = nc.Close()
			}()
			c := newConn(ln.Addr().String())
			defer c.close()
			if a, err := c.do("GET", "/", "", nil); err == nil {
				t.Errorf("it is read as %d %q", a.status, a.body)
			}
		})
	}
}
