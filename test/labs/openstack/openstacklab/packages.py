"""What is installed: Debian's packages of OpenStack's code, none of its daemons' packages.

The daemons' packages (nova-api and the like) would bring init scripts, questions about databases, libvirt and qemu:
several hundred megabytes for nothing, since the python3-* packages have the same code and this lab starts it itself.
Of the daemons' packages only the pipelines of their API servers (paste.ini files) are needed; they are unpacked into
a folder of their own without being installed.
"""
import contextlib
import os
import pathlib
import subprocess
import tempfile

from . import LabError

LAB = pathlib.Path(__file__).resolve().parents[1] / 'lab.py'
SHARE = pathlib.Path('/usr/local/share/vnfm-lab-openstack')
CODE = ('keystone', 'glance', 'placement', 'nova', 'neutron', 'cinder', 'heat')
PACKAGES = tuple('python3-' + p for p in CODE) + (
    'python3-pymysql', 'python3-memcache', 'uwsgi-core', 'uwsgi-plugin-python3',
    'rabbitmq-server', 'mariadb-server-core', 'mariadb-client-core', 'memcached', 'iproute2')
PIPELINES = {
    'nova': 'usr/share/nova-common/api-paste.ini', 'neutron': 'usr/share/neutron-common/api-paste.ini',
    'cinder': 'usr/share/cinder-common/api-paste.ini', 'glance': 'usr/share/glance-common/glance-api-paste.ini',
    'heat': 'etc/heat/api-paste.ini'}
NO_STARTS = pathlib.Path('/usr/sbin/policy-rc.d')


def pipeline(project):
    return SHARE / (project + '-paste.ini')


def versions():
    """Package -> version, of those PACKAGES that are installed."""
    query = subprocess.run(['dpkg-query', '-W', '-f', '${db:Status-Abbrev} ${Package} ${Version}\n', *PACKAGES],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    lines = (line.split() for line in query.stdout.splitlines())
    return {name: version for status, name, version in lines if status == 'ii'}


def upstream():
    """Project -> upstream's version: 1:19.0.0-3 is 19.0.0."""
    have = versions()
    return {p: have['python3-' + p].rpartition(':')[2].partition('-')[0] for p in CODE if 'python3-' + p in have}


def missing():
    have = versions()
    return [p for p in PACKAGES if p not in have] + [str(pipeline(p)) for p in PIPELINES if not pipeline(p).is_file()]


def require():
    lacking = missing()
    if lacking:
        raise LabError('not installed: %s\nTo install it: sudo %s install' % (' '.join(lacking), LAB))


def install(settings, say):
    """Installs what is missing and makes the account that the daemons run as. Needs root and a package mirror."""
    lacking = missing()
    if os.getuid() != 0:
        if lacking:
            raise LabError('not installed: %s\nTo install it: sudo %s install' % (' '.join(lacking), LAB))
        say('everything is installed')
        return
    with open('/etc/os-release') as f:
        release = dict(line.rstrip().replace('"', '').split('=', 1) for line in f if '=' in line)
    if (release.get('ID'), release.get('VERSION_ID')) != ('debian', '12'):
        raise LabError('this is %s: the lab is made for the packages of Debian 12 (OpenStack Zed)'
                       % release.get('PRETTY_NAME', 'not Debian'))
    wanted = [p for p in lacking if p in PACKAGES]
    pipelines = [p for p in PIPELINES if not pipeline(p).is_file()]
    if wanted or pipelines:
        apt('update')
    if wanted:
        say('installing ' + ' '.join(wanted))
        with nothing_starts():
            # dpkg's fsyncs take longer than its unpacking
            apt('install', '--yes', '--no-install-recommends', '-o', 'Dpkg::Options::=--force-unsafe-io', *wanted)
    if pipelines:
        say('fetching the pipelines of ' + ' '.join(pipelines))
        fetch_pipelines(pipelines)
    if settings.user != 'root' and subprocess.run(['id', settings.user], stdout=subprocess.DEVNULL,
                                                  stderr=subprocess.DEVNULL).returncode:
        run('useradd', '--system', '--user-group', '--no-create-home', '--home-dir', '/nonexistent',
            '--shell', '/usr/sbin/nologin', settings.user)
        say('made the account ' + settings.user)
    say('installed: ' + ', '.join('%s %s' % item for item in sorted(versions().items())))


def fetch_pipelines(projects):
    with tempfile.TemporaryDirectory() as folder:
        apt('download', *(p + '-common' for p in projects), '-o', 'APT::Sandbox::User=root', cwd=folder)
        for deb in pathlib.Path(folder).glob('*.deb'):
            run('dpkg-deb', '-x', str(deb), os.path.join(folder, 'tree'))
        SHARE.mkdir(parents=True, exist_ok=True)
        for p in projects:
            pipeline(p).write_bytes(pathlib.Path(folder, 'tree', PIPELINES[p]).read_bytes())
            pipeline(p).chmod(0o644)


@contextlib.contextmanager
def nothing_starts():
    """While packages are installed their services (RabbitMQ, memcached) must not start on their usual ports."""
    mine = not NO_STARTS.exists()
    if mine:
        NO_STARTS.write_text('#!/bin/sh\nexit 101\n')
        NO_STARTS.chmod(0o755)
    try:
        yield
    finally:
        if mine:
            NO_STARTS.unlink()


def apt(*args, cwd=None):
    run('apt-get', '-qq', '-o', 'DPkg::Lock::Timeout=900', '-o', 'Acquire::Retries=3', '-o', 'Dpkg::Use-Pty=0',
        *args, cwd=cwd)


def run(*argv, cwd=None):
    done = subprocess.run(argv, cwd=cwd, env=dict(os.environ, DEBIAN_FRONTEND='noninteractive', LC_ALL='C.UTF-8'),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors='replace')
    if done.returncode:
        tail = done.stdout.splitlines()[-15:]
        raise LabError('%s: exit status %d\n%s' % (' '.join(argv), done.returncode, '\n'.join(tail)))
