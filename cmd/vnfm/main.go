// Command vnfm is an ETSI SOL003 VNF manager: the server, its administration, and its command line client.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}
