"""The daemons: how each is started, told to be ready, and kept in step with its configuration."""
import hashlib
import json
import os
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field

import requests

from . import LabError
from . import packages
from .processes import Registry, kill, write
from .settings import HOST, PORTS

PYTHON = '/usr/bin/python3'
STORES = ('memcached', 'epmd', 'rabbitmq', 'mariadb')
# Who listens where.
LISTENERS = {'keystone': 'keystone', 'placement': 'placement', 'glance': 'glance-api', 'nova': 'nova-api',
             'neutron': 'neutron-server', 'cinder': 'cinder-api', 'heat': 'heat-api', 'heat-cfn': 'heat-api-cfn',
             'memcached': 'memcached', 'epmd': 'epmd', 'rabbitmq': 'rabbitmq', 'rabbitmq-peers': 'rabbitmq'}
APIS = ('keystone', 'placement', 'glance', 'neutron', 'nova', 'cinder', 'heat', 'heat-cfn')


@dataclass
class Daemon:
    """A process that is started from here; `members` are those that a nursery (inside/vnfmlab/nursery.py) forks."""
    name: str
    argv: list
    env: dict = field(default_factory=dict)
    files: tuple = ()           # configuration it reads: a change of it is a reason to start it anew
    before: list = field(default_factory=list)
    members: list = field(default_factory=list)


class Services:

    def __init__(self, settings, files, say):
        self.s, self.files, self.say = settings, files, say
        self.registry = Registry(settings.run, settings.log)
        self.daemons = {d.name: d for d in self.table()}
        self.mark = ''

    # ---- the table --------------------------------------------------------------------------------------------------

    def table(self):
        s, etc = self.s, self.s.etc
        rabbit = s.dir / 'rabbitmq'
        epmd = {'ERL_EPMD_PORT': str(s.port_of('epmd')), 'ERL_EPMD_ADDRESS': HOST, 'ERL_EPMD_RELAXED_COMMAND_CHECK': '1'}
        yield Daemon('memcached', ['memcached', '-l', HOST, '-p', str(s.port_of('memcached')), '-U', '0', '-m', '64',
                                   *(['-u', 'root'] if os.getuid() == 0 else [])])
        yield Daemon('epmd', ['epmd', '-address', HOST, '-port', str(s.port_of('epmd'))], epmd)
        yield Daemon('rabbitmq', ['/usr/lib/rabbitmq/bin/rabbitmq-server'], {
            # Debian's own wrapper insists on the account rabbitmq and on /var/lib; the script behind it does not
            **epmd, 'HOME': str(rabbit), 'RABBITMQ_NODENAME': 'vnfmlab@localhost', 'detached': '1',
            'RABBITMQ_CONFIG_FILE': str(etc / 'rabbitmq.conf'), 'RABBITMQ_CONF_ENV_FILE': '/dev/null',
            'RABBITMQ_ENABLED_PLUGINS_FILE': str(etc / 'rabbitmq-plugins'),
            'RABBITMQ_MNESIA_BASE': str(rabbit), 'RABBITMQ_LOG_BASE': str(s.log), 'RABBITMQ_PID_FILE': str(rabbit / 'pid'),
            'RABBITMQ_DIST_PORT': str(s.port_of('rabbitmq-peers')), 'RABBITMQ_NODE_IP_ADDRESS': '', 'RABBITMQ_NODE_PORT': '',
            # idle schedulers sleep: busy waiting would eat this machine's few cores
            'RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS':
                '-kernel inet_dist_use_interface {127,0,0,1} +S 2:2 +A 16 +sbwt none +sbwtdcpu none +sbwtdio none'},
            ('rabbitmq.conf',))
        yield Daemon('mariadb', ['mariadbd', '--defaults-file=%s' % (etc / 'mariadb.cnf'),
                                 *(['--user=root'] if os.getuid() == 0 else [])], {}, ('mariadb.cnf',))
        yield self.uwsgi('keystone', 2, 1, {'OS_KEYSTONE_CONFIG_DIR': str(etc),
                                            'OS_KEYSTONE_CONFIG_FILES': str(etc / 'keystone.conf')}, ('keystone.conf',))
        yield self.uwsgi('placement', 1, 4, {'OS_PLACEMENT_CONFIG_DIR': str(etc / 'placement')},
                         ('placement/placement.conf',))
        yield self.nursery('neutron', ['neutron.cmd.eventlet.server'],
                           [('neutron-server', 'neutron.cmd.eventlet.server:main', ())])
        yield self.nursery(
            'nova', ['nova.cmd.api', 'nova.cmd.conductor', 'nova.cmd.scheduler', 'nova.cmd.compute',
                     'nova.objects:register_all', 'vnfmlab.nova:add_hypervisor', 'nova.virt.fake'],
            [('nova-' + n, 'nova.cmd.%s:main' % n, ()) for n in ('api', 'conductor', 'scheduler')]
            + [('nova-compute@' + host, 'nova.cmd.compute:main', ('nova-%s.conf' % host,)) for host, _ in s.computes])
        yield self.nursery(
            'heat', ['heat.cmd.api', 'heat.cmd.api_cfn', 'heat.cmd.engine', 'heat.engine.service',
                     'vnfmlab.heat:mend_signals'] + ['vnfmlab.heat:shorten_pauses'] * (s.pauses == 'short'),
            [('heat-api', 'heat.cmd.api:main', ()), ('heat-api-cfn', 'heat.cmd.api_cfn:main', ()),
             ('heat-engine', 'heat.cmd.engine:main', ())])
        yield self.nursery(
            'cinder', ['cinder.cmd.api', 'cinder.cmd.scheduler', 'cinder.cmd.volume', 'cinder.objects:register_all'],
            [('cinder-' + n, 'cinder.cmd.%s:main' % n, ()) for n in ('api', 'scheduler', 'volume')])
        yield self.nursery('glance', ['glance.cmd.api'], [('glance-api', 'glance.cmd.api:main', ())])

    def uwsgi(self, name, processes, threads, env, files):
        try:
            with open('/proc/sys/net/core/somaxconn') as f:
                backlog = min(int(f.read()), 1024)
        except OSError:
            backlog = 100
        return Daemon(name, [
            'uwsgi', '--plugin', 'python3', '--http-socket', '%s:%d' % (HOST, self.s.port_of(name)),
            '--module', 'vnfmlab.wsgi_' + name, '--need-app', '--master', '--no-orphans', '--die-on-term',
            '--processes', str(processes), '--threads', str(threads), '--enable-threads', '--thunder-lock',
            '--listen', str(backlog), '--buffer-size', '65535', '--skip-atexit', '--disable-logging',
            '--add-header', 'Connection: close', '--procname-prefix', name + ' '], env, files)

    def nursery(self, project, before, members):
        name = project + '.nursery'
        files = (project + '.conf',) + tuple(f for _, _, more in members for f in more)
        return Daemon(name, [PYTHON, '-m', 'vnfmlab.nursery', str(self.s.run / (name + '.plan'))], {}, files, before, [
            {'name': member, 'call': call, 'args': [
                *(a for f in (project + '.conf', *more) for a in ('--config-file', str(self.s.etc / f))),
                '--log-file', str(self.s.log / (member + '.log'))]} for member, call, more in members])

    def leaders(self):
        return list(self.daemons)

    def everyone(self):
        """Names of all processes that should run, those of nurseries included."""
        for d in self.daemons.values():
            yield d.name
            yield from (m['name'] for m in d.members)

    # ---- start ------------------------------------------------------------------------------------------------------

    def environment(self, extra):
        return {'PATH': '/usr/sbin:/usr/bin:/sbin:/bin', 'LC_ALL': 'C.UTF-8', 'HOME': str(self.s.dir),
                'PYTHONPATH': str(self.s.inside), 'PYTHONDONTWRITEBYTECODE': '1',
                # no proxy stands between services on one machine
                'no_proxy': '127.0.0.1,localhost', 'NO_PROXY': '127.0.0.1,localhost', **extra}

    def digest(self, d):
        """Of everything that the daemon was started with; another one than recorded is a reason to start it anew."""
        if not self.mark:
            h = hashlib.sha256(json.dumps(packages.versions(), sort_keys=True).encode())
            for f in sorted(self.s.inside.rglob('*')):
                if f.is_file():
                    h.update(f.read_bytes())
            self.mark = h.hexdigest()
        mine = [d.argv, d.env, d.before, d.members, [self.files[f] for f in d.files],
                '' if d.name in STORES else self.mark]
        return hashlib.sha256(json.dumps(mine, sort_keys=True, default=str).encode()).hexdigest()[:16]

    def start(self, *names):
        """Starts what does not run, and starts anew what runs with other settings or has lost its head."""
        for name in names:
            d, digest = self.daemons[name], self.digest(self.daemons[name])
            record, pid = self.registry.read(name), self.registry.pid(name)
            if pid and record['digest'] == digest:
                self.call_again(d, pid)
                continue
            if record:
                if pid:
                    self.say('%s has other settings now: starting it anew' % name)
                self.stop(name)
            if d.members:
                write(self.s.run / (name + '.plan'), {'run': str(self.s.run), 'log': str(self.s.log), 'digest': digest,
                                                      'before': d.before, 'daemons': d.members})
            self.registry.spawn(name, d.argv, self.environment(d.env), digest)

    def call_again(self, d, pid):
        """Has a nursery start again what has ended. One that is still loading has no records of daemons, and is let be."""
        ended = [m['name'] for m in d.members if self.registry.read(m['name']) and not self.registry.pid(m['name'])]
        if ended:
            self.say('had ended, started again: ' + ' '.join(ended))
            for name in ended:
                (self.s.run / (name + '.ended')).unlink(missing_ok=True)
            kill(pid, signal.SIGUSR1)

    def stop(self, *names, patience=4):
        known = [n for n in names if self.registry.read(n)]
        members = [m['name'] for n in names for m in self.daemons[n].members] if names else []
        self.registry.stop(known, patience)
        for name in members:
            self.registry.forget(name)
        for name in [*names, *members]:
            for suffix in ('.ended', '.plan'):
                (self.s.run / (name + suffix)).unlink(missing_ok=True)

    def stop_all(self):
        # settings may have changed since: what is recorded counts, not what would be started now
        recorded = self.registry.names()
        stores = [n for n in recorded if n in STORES]
        self.registry.stop([n for n in recorded if n not in STORES], 4)
        self.registry.stop([n for n in stores if n != 'epmd'], 30)
        self.registry.stop([n for n in stores if n == 'epmd'], 2)
        for f in (*self.s.run.glob('*.ended'), *self.s.run.glob('*.plan')):
            f.unlink()

    # ---- readiness --------------------------------------------------------------------------------------------------

    def check_ports(self):
        for service in PORTS:
            if self.registry.pid(LISTENERS[service]):
                continue
            port = self.s.port_of(service)
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind((HOST, port))
                except OSError:
                    pass
                else:
                    continue
            # a nursery that is just starting again what has died keeps the port of nobody else
            if not self.session_holds(port):
                raise LabError('port %d, for %s, is taken by %s\nEnd that, or set VNFM_LAB_OPENSTACK_PORT '
                               '(the lab takes %d ports from there)' % (port, service, holder(port), len(PORTS)))

    def session_holds(self, port):
        """Whether the port belongs to what is left of a daemon of ours whose head has died."""
        ours = {pid for name in self.registry.names() for pid, _ in self.registry.family(name)}
        return bool(ours & set(holders(port)))

    def check(self, *names):
        """LabError with the end of its log when one of the named daemons, or of their members, has died."""
        for name in names:
            if not self.registry.pid(name):
                self.died(name)
            for m in self.daemons[name].members:
                if (self.s.run / (m['name'] + '.ended')).exists():
                    self.died(m['name'])

    def died(self, name):
        ended = self.s.run / (name + '.ended')
        how = ' (%s)' % ended.read_text().strip() if ended.exists() else ''
        raise LabError('%s has died%s\n%s\nMend what it says and run `lab.py up` again. If its state is spoilt: '
                       '`lab.py down --wipe` first.' % (name, how, self.registry.tail(name)))

    def await_members(self):
        """Every nursery has loaded its code and started all of its daemons."""
        for d in self.daemons.values():
            self.wait(lambda: all(self.registry.pid(m['name']) for m in d.members),
                      d.name, 'has not started its daemons', 180)

    def await_port(self, name, service, seconds=120):
        def answers():
            with socket.socket() as s:
                s.settimeout(2)
                return s.connect_ex((HOST, self.s.port_of(service))) == 0
        self.wait(answers, name, 'does not listen on port %d' % self.s.port_of(service), seconds)

    def await_api(self, service, seconds=180):
        leader = service if service in self.daemons else service.partition('-')[0] + '.nursery'
        url = self.s.auth_url if service == 'keystone' else self.s.url(service, '/')
        self.wait(lambda: 0 < http_status(url) < 500, leader, 'does not answer at ' + url, seconds)

    def wait(self, condition, name, complaint, seconds):
        until = time.monotonic() + seconds
        while not condition():
            self.check(name)
            if time.monotonic() > until:
                raise LabError('%s %s after %d s\n%s' % (name, complaint, seconds, self.registry.tail(name)))
            time.sleep(0.2)


def http_status(url, timeout=20):
    session = requests.Session()
    session.trust_env = False
    try:
        return session.get(url, timeout=timeout).status_code
    except requests.RequestException:
        return 0


def holders(port):
    """Pids of those who listen on the port, as far as this account may see."""
    listed = subprocess.run(['ss', '-Hltnp', 'sport = :%d' % port],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return [int(part.partition(',')[0]) for part in listed.stdout.split('pid=')[1:]]


def holder(port):
    for pid in holders(port):
        try:
            with open('/proc/%d/cmdline' % pid, 'rb') as f:
                return 'pid %d: %s' % (pid, f.read().replace(b'\0', b' ').decode(errors='replace')[:120])
        except OSError:
            pass
    return 'another process'
