package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"strconv"
	"time"
)

// requestTimeout is how long an answer may take before the measurement fails.
const requestTimeout = 60 * time.Second

// conn is one kept-alive HTTP/1.1 connection of one client. It shares the machine with what it measures, so it does as
// little as a client can: requests are bytes put together, and of an answer's header only what is needed is read.
type conn struct {
	addr string
	c    net.Conn
	r    *bufio.Reader
	out  []byte
	body bytes.Buffer
}

// answer is a response; its body is valid until the next request on the connection.
type answer struct {
	status   int
	location string
	body     []byte
}

func newConn(addr string) *conn { return &conn{addr: addr} }

func (c *conn) close() {
	if c.c != nil {
		_ = c.c.Close()
		c.c = nil
	}
}

// do sends a request and reads the answer in full. body may be nil; contentType goes with a body.
func (c *conn) do(method, path, contentType string, body []byte) (answer, error) {
	if c.c == nil {
		nc, err := net.DialTimeout("tcp", c.addr, requestTimeout)
		if err != nil {
			return answer{}, err
		}
		c.c = nc
		if c.r == nil {
			c.r = bufio.NewReaderSize(nc, 64<<10)
		} else {
			c.r.Reset(nc)
		}
	}
	a, keep, err := c.exchange(method, path, contentType, body)
	if err != nil || !keep {
		c.close()
	}
	if err != nil {
		return answer{}, fmt.Errorf("%s %s: %w", method, path, err)
	}
	return a, nil
}

func (c *conn) exchange(method, path, contentType string, body []byte) (a answer, keep bool, err error) {
	b := append(c.out[:0], method...)
	b = append(append(append(b, ' '), path...), " HTTP/1.1\r\nHost: "...)
	b = append(append(b, c.addr...), "\r\nAccept: application/json\r\n"...)
	if body != nil {
		b = append(append(b, "Content-Type: "...), contentType...)
		b = append(b, "\r\nContent-Length: "...)
		b = append(strconv.AppendInt(b, int64(len(body)), 10), "\r\n"...)
	}
	b = append(append(b, "\r\n"...), body...)
	c.out = b
	if err := c.c.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return a, false, err
	}
	if _, err := c.c.Write(b); err != nil {
		return a, false, err
	}
	return c.read()
}

var errHTTP = errors.New("the answer is not HTTP/1.1")

// read reads one response.
func (c *conn) read() (a answer, keep bool, err error) {
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		return a, false, fmt.Errorf("read the status line: %w", err)
	}
	if len(line) < len("HTTP/1.1 200\n") || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return a, false, errHTTP
	}
	if a.status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return a, false, errHTTP
	}
	length, chunked := int64(-1), false
	keep = true
	for {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return a, false, fmt.Errorf("read the header: %w", err)
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			return a, false, errHTTP
		}
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.ParseInt(string(value), 10, 64); err != nil || length < 0 {
				return a, false, errHTTP
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			chunked = bytes.EqualFold(value, []byte("chunked"))
		case bytes.EqualFold(name, []byte("Location")):
			a.location = string(value)
		case bytes.EqualFold(name, []byte("Connection")):
			keep = !bytes.EqualFold(value, []byte("close"))
		}
	}
	c.body.Reset()
	switch {
	case a.status == 204 || a.status == 304:
	case chunked:
		if _, err := c.body.ReadFrom(httputil.NewChunkedReader(c.r)); err != nil {
			return a, false, fmt.Errorf("read the body: %w", err)
		}
		if line, err := c.r.ReadSlice('\n'); err != nil || len(bytes.TrimRight(line, "\r\n")) > 0 {
			return a, false, errHTTP // trailers are of no server that is measured here
		}
	case length >= 0:
		if _, err := io.CopyN(&c.body, c.r, length); err != nil {
			return a, false, fmt.Errorf("read the body: %w", err)
		}
	default:
		return a, false, errHTTP
	}
	a.body = c.body.Bytes()
	return a, keep, nil
}

// want does a request and fails unless the answer has the status; into, if not nil, gets the body's JSON.
func (c *conn) want(status int, method, path, contentType string, body []byte, into any) (answer, error) {
	a, err := c.do(method, path, contentType, body)
	if err != nil {
		return a, err
	}
	if a.status != status {
		return a, fmt.Errorf("%s %s answers %d, not %d: %.300s", method, path, a.status, status, a.body)
	}
	if into != nil {
		if err := json.Unmarshal(a.body, into); err != nil {
			return a, fmt.Errorf("%s %s: read the answer: %w", method, path, err)
		}
	}
	return a, nil
}

// get asks for a representation that is there.
func (c *conn) get(path string, into any) error {
	_, err := c.want(200, "GET", path, "", nil, into)
	return err
}
