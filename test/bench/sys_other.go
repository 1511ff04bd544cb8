//go:build !linux

package main

import (
	"os"
	"syscall"
)

func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func fdatasync(f *os.File) error { return f.Sync() }

func fileSystem(string) string { return "" }
