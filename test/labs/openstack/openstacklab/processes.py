"""Processes: started apart from us, remembered by pid and start time, and ended only when both still fit."""
import json
import os
import pathlib
import signal
import subprocess
import time


def stat(pid):
    """(state, parent, session, start time) of a process, or None when there is none."""
    try:
        with open('/proc/%d/stat' % pid) as f:
            # the name in parentheses may hold anything
            rest = f.read().rpartition(')')[2].split()
    except (OSError, ValueError):
        return None
    return rest[0], int(rest[1]), int(rest[3]), int(rest[19])


def running(pid, start):
    now = stat(pid)
    return bool(now) and now[0] not in 'ZX' and now[3] == start


class Registry:
    """One file a process below `folder`; its output goes below `logs`."""

    def __init__(self, folder, logs):
        self.folder, self.logs = pathlib.Path(folder), pathlib.Path(logs)

    def _file(self, name):
        return self.folder / (name + '.json')

    def read(self, name):
        try:
            return json.loads(self._file(name).read_text())
        except (OSError, ValueError):
            return None

    def names(self):
        return sorted(f.stem for f in self.folder.glob('*.json'))

    def pid(self, name):
        """The process's pid while it runs, else None."""
        r = self.read(name)
        return r['pid'] if r and running(r['pid'], r['start']) else None

    def forget(self, name):
        self._file(name).unlink(missing_ok=True)

    def spawn(self, name, argv, env, digest):
        """Starts a session of its own, so that a Ctrl-C here does not reach it and its children can be told."""
        with open(self.logs / (name + '.out'), 'ab') as out:
            child = subprocess.Popen(argv, env=env, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out,
                                     stderr=subprocess.STDOUT, start_new_session=True)
        now = stat(child.pid)
        write(self._file(name), {'pid': child.pid, 'start': now[3] if now else 0, 'digest': digest})
        return child.pid

    def family(self, name):
        """(pid, start) of every process in the session that the named process leads or led."""
        r = self.read(name)
        if not r:
            return []
        leader = stat(r['pid'])
        if leader and leader[3] != r['start']:
            return []               # its pid is somebody else's by now
        found = []
        for entry in os.listdir('/proc'):
            now = stat(int(entry)) if entry.isdigit() else None
            if now and now[2] == r['pid'] and now[0] not in 'ZX':
                found.append((int(entry), now[3]))
        return found

    def stop(self, names, patience):
        """Asks the named processes to end, and ends with KILL what is left of their sessions after `patience` seconds."""
        left = {name: self.family(name) for name in names}
        for name in names:
            if self.pid(name):
                kill(self.pid(name), signal.SIGTERM)
        until = time.monotonic() + patience
        while time.monotonic() < until and any(self.pid(n) for n in names):
            time.sleep(0.05)
        for name in names:
            for pid, start in set(left[name] + self.family(name)):
                if running(pid, start):
                    kill(pid, signal.SIGKILL)
            self.forget(name)

    def tail(self, name, lines=15):
        """The end of what a daemon has written: of its log when it has one, of its output, whichever is the newest."""
        files = [f for f in (self.logs / (name + '.log'), self.logs / (name + '.out')) if f.is_file() and f.stat().st_size]
        if not files:
            return '(it has written nothing)'
        newest = max(files, key=lambda f: f.stat().st_mtime)
        with open(newest, 'rb') as f:
            f.seek(max(0, newest.stat().st_size - 20000))
            text = f.read().decode(errors='replace').splitlines()[-lines:]
        return '\n'.join(['%s ends with:' % newest, *('  | ' + line[:300] for line in text)])


def write(path, value):
    temporary = path.with_suffix('.new')
    temporary.write_text(json.dumps(value) + '\n')
    temporary.rename(path)


def kill(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
