package main

import (
	"os"
	"strconv"
	"syscall"
)

// childAttr has the kernel end a child when the thread that started it ends, so that nothing outlives the tool. It gets
// a process group of its own: a Ctrl-C at the terminal is the tool's to handle.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// fdatasync writes a file's data, and no more metadata than reading it back needs, to the disk.
func fdatasync(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }

// The file systems that one meets, by statfs's magic number.
var fileSystems = map[int64]string{
	0xef53: "ext4", 0x58465342: "xfs", 0x9123683e: "btrfs", 0x01021994: "tmpfs", 0x794c7630: "overlay", 0x2fc12fc1: "zfs", 0x6969: "nfs",
}

// fileSystem names what a folder lies on, "" when it cannot be told.
func fileSystem(dir string) string {
	var st syscall.Statfs_t
	if syscall.Statfs(dir, &st) != nil {
		return ""
	}
	if name, ok := fileSystems[st.Type]; ok {
		return name
	}
	return "file system 0x" + strconv.FormatInt(st.Type, 16)
}
