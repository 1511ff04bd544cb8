//go:build !crashpoint

package main

// crashPoint is where the crash tests kill the process; programs that are shipped have none.
var crashPoint func(point string)
