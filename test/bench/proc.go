package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// userHz is the unit of CPU times in /proc: Linux shows hundredths of a second on every machine.
const userHz = 100

// procStat is what of /proc/PID/stat is used here, times in seconds.
type procStat struct {
	parent   int
	own      float64 // utime + stime
	children float64 // of children that have ended and were waited for
}

// parseStat reads a line of /proc/PID/stat. The command's name may hold anything, so fields are counted from the last
// closing parenthesis.
func parseStat(line []byte) (procStat, error) {
	end := bytes.LastIndexByte(line, ')')
	if end < 0 {
		return procStat{}, errors.New("no command in the process's state")
	}
	f := bytes.Fields(line[end+1:]) // from field 3, the state
	if len(f) < 15 {
		return procStat{}, fmt.Errorf("%d fields in the process's state", len(f))
	}
	var n [5]int64
	for i, field := range []int{1, 11, 12, 13, 14} { // ppid utime stime cutime cstime
		v, err := strconv.ParseInt(string(f[field]), 10, 64)
		if err != nil {
			return procStat{}, fmt.Errorf("field %d of the process's state: %w", field+3, err)
		}
		n[i] = v
	}
	return procStat{parent: int(n[0]), own: float64(n[1]+n[2]) / userHz, children: float64(n[3]+n[4]) / userHz}, nil
}

// processCPU returns the CPU seconds of one process.
func processCPU(pid int) (procStat, error) {
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return procStat{}, err
	}
	return parseStat(line)
}

// familyCPU returns the CPU seconds of a process, of its children that live and of those that have ended: all of a
// PostgreSQL server, whose backends are its postmaster's children.
func familyCPU(pid int) (float64, error) {
	head, err := processCPU(pid)
	if err != nil {
		return 0, err
	}
	sum := head.own + head.children
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		st, err := processCPU(child)
		if err == nil && st.parent == pid {
			sum += st.own
		}
	}
	return sum, nil
}

// machineBusy parses the first line of /proc/stat: the CPU seconds that all processors have spent on anything, those
// that the hypervisor gave to others among them.
func machineBusy(stat []byte) (float64, error) {
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	f := strings.Fields(string(line))
	if len(f) < 9 || f[0] != "cpu" {
		return 0, errors.New("no cpu line in /proc/stat")
	}
	sum := 0.0
	for _, i := range []int{1, 2, 3, 6, 7, 8} { // user nice system irq softirq steal
		v, err := strconv.ParseFloat(f[i], 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/stat: %w", err)
		}
		sum += v / userHz
	}
	return sum, nil
}

// cpuTimes are CPU seconds spent so far.
type cpuTimes struct {
	at                             time.Time
	server, postgres, self, anyone float64
}

// cpuNow reads the CPU times of the server (none with pid 0), of PostgreSQL, of this process and of the machine. What
// cannot be read counts as nothing.
func cpuNow(serverPID, postgresPID int) cpuTimes {
	t := cpuTimes{at: time.Now()}
	if serverPID > 0 {
		if st, err := processCPU(serverPID); err == nil {
			t.server = st.own
		}
	}
	if sum, err := familyCPU(postgresPID); err == nil {
		t.postgres = sum
	}
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var ru syscall.Rusage
		if syscall.Getrusage(who, &ru) == nil {
			t.self += float64(ru.Utime.Nano()+ru.Stime.Nano()) / 1e9
		}
	}
	if stat, err := os.ReadFile("/proc/stat"); err == nil {
		if busy, err := machineBusy(stat); err == nil {
			t.anyone = busy
		}
	}
	return t
}

// CPU is what one operation cost, in µs of CPU time, and what the rest of the machine did meanwhile.
type CPU struct {
	Server   float64 `json:"serverMicros"`
	Postgres float64 `json:"postgresMicros"`
	Client   float64 `json:"clientMicros"`
	// Others is the share of all cores that processes outside of the measurement used, 0 to 1.
	Others float64 `json:"others"`
}

// per divides the time between two readings by the operations done in it.
func (t cpuTimes) per(before cpuTimes, ops int) CPU {
	if ops == 0 {
		return CPU{}
	}
	each := func(now, then float64) float64 { return (now - then) / float64(ops) * 1e6 }
	ours := t.server - before.server + t.postgres - before.postgres + t.self - before.self
	whole := t.at.Sub(before.at).Seconds() * float64(runtime.NumCPU())
	others := 0.0
	if whole > 0 {
		others = min(1, max(0, (t.anyone-before.anyone-ours)/whole))
	}
	return CPU{
		Server: each(t.server, before.server), Postgres: each(t.postgres, before.postgres), Client: each(t.self, before.self), Others: others,
	}
}

// memory returns VmRSS and VmHWM (the most that VmRSS has been) of a process, in bytes.
func memory(pid int) (now, peak int64, err error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return 0, 0, err
	}
	return parseMemory(text)
}

func parseMemory(status []byte) (now, peak int64, err error) {
	for line := range strings.Lines(string(status)) {
		name, rest, _ := strings.Cut(line, ":")
		if name != "VmRSS" && name != "VmHWM" {
			continue
		}
		kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("%s: %w", name, err)
		}
		if name == "VmRSS" {
			now = kb << 10
		} else {
			peak = kb << 10
		}
	}
	if now == 0 {
		return 0, 0, errors.New("the process's state has no VmRSS")
	}
	return now, peak, nil
}
