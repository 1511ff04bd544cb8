"""Forks the daemons of one project from one Python that has their code loaded already.

    python3 -m vnfmlab.nursery RUN/nova.nursery

Most of what a daemon of OpenStack does at its start is importing, seconds of it; here that is done once a project, and
the memory is shared. The file says which modules to import or functions to call first ("before"), where records and
outputs go ("run", "log"), and the daemons: name, "module:function", arguments. Modules that read their configuration
while they are imported must not be among those imported first.

Each daemon gets a record as lab.py writes it, and a file .ended with its exit status when it ends uncalled for. SIGUSR1
starts those again that are not running; SIGTERM ends them all.
"""
# Taken before anything is imported that might have eventlet put green threads in their place.
from os import WNOHANG, _exit, dup2, fork, getpid, getppid, waitpid
from signal import (SIG_BLOCK, SIG_UNBLOCK, SIGCHLD, SIGINT, SIGTERM, SIGUSR1, pthread_sigmask,
                    sigwaitinfo)
from time import strftime

import ctypes
import gc
import importlib
import json
import os
import pathlib
import sys
import traceback

CALLS = {SIGTERM, SIGINT, SIGUSR1, SIGCHLD}
PR_SET_PDEATHSIG = 1


def resolve(spec):
    module, _, function = spec.partition(':')
    module = importlib.import_module(module)
    return getattr(module, function) if function else lambda: None


class Nursery:

    def __init__(self, plan):
        self.plan = plan
        self.run = pathlib.Path(plan['run'])
        self.pids = {}

    def start_missing(self):
        for daemon in self.plan['daemons']:
            if daemon['name'] not in self.pids.values():
                self.start(daemon)

    def start(self, daemon):
        name, parent = daemon['name'], getpid()
        (self.run / (name + '.ended')).unlink(missing_ok=True)
        pid = fork()
        if pid == 0:
            self.become(daemon, parent)
        self.pids[pid] = name
        with open('/proc/%d/stat' % pid) as f:
            start = int(f.read().rpartition(')')[2].split()[19])
        record = self.run / (name + '.new')
        record.write_text(json.dumps({'pid': pid, 'start': start, 'digest': self.plan['digest']}) + '\n')
        record.rename(self.run / (name + '.json'))

    def become(self, daemon, parent):
        """In the child: never returns."""
        status = 1
        try:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(SIGTERM), 0, 0, 0)
            if getppid() != parent:
                _exit(1)
            pthread_sigmask(SIG_UNBLOCK, CALLS)
            out = os.open(os.path.join(self.plan['log'], daemon['name'] + '.out'),
                          os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            dup2(out, 1)
            dup2(out, 2)
            if 'eventlet' in sys.modules:
                # daemons that share their parent's epoll descriptor wake each other up without end
                importlib.import_module('eventlet.hubs').use_hub()
            sys.argv = [daemon['name'].partition('@')[0], *daemon['args']]
            status = resolve(daemon['call'])()
        except SystemExit as e:
            status = e.code
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            _exit(status if isinstance(status, int) else bool(status))

    def collect(self, leaving):
        while self.pids:
            pid, status = waitpid(-1, WNOHANG)
            if not pid:
                return
            name = self.pids.pop(pid, None)
            if name and not leaving:
                how = ('by signal %d' % os.WTERMSIG(status) if os.WIFSIGNALED(status)
                       else 'with status %d' % os.WEXITSTATUS(status))
                print('%s %s (pid %d) ended %s' % (strftime('%F %T'), name, pid, how), flush=True)
                (self.run / (name + '.ended')).write_text(how + '\n')

    def mind(self):
        leaving = False
        while self.pids or not leaving:
            call = sigwaitinfo(CALLS).si_signo
            if call == SIGCHLD:
                self.collect(leaving)
            elif call == SIGUSR1:
                self.start_missing()
            else:
                leaving = True
                for pid in self.pids:
                    os.kill(pid, SIGTERM)
                self.collect(leaving)


def main():
    pthread_sigmask(SIG_BLOCK, CALLS)
    nursery = Nursery(json.loads(pathlib.Path(sys.argv[1]).read_text()))
    for spec in nursery.plan['before']:
        resolve(spec)()
    gc.collect()
    gc.freeze()
    nursery.start_missing()
    nursery.mind()


if __name__ == '__main__':
    main()
