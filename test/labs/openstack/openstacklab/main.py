"""lab.py's commands."""
import argparse
import contextlib
import fcntl
import os
import pathlib
import pwd
import shutil
import sys
import time

from . import LabError
from . import packages
from . import settings as settings_module
from .config import Files

HERE = pathlib.Path(__file__).resolve().parents[1]
MARKER = '.vnfm-lab-openstack'
BEGUN = time.monotonic()
# What `down --wipe` leaves in the folder: a lock that others may wait for, and what makes the next start quick.
KEPT = (MARKER, 'lock', 'code', 'golden.tar.gz', 'golden.stamp')


def say(text):
    print('[%6.1fs] %s' % (time.monotonic() - BEGUN, text), flush=True)


def main(argv):
    parser = argparse.ArgumentParser(prog='lab.py', description='A real OpenStack on this machine, to test against.')
    commands = parser.add_subparsers(dest='command', required=True, metavar='COMMAND')
    commands.add_parser('install', help='install what it is made of (needs root, once a machine)')
    commands.add_parser('up', help='bring it up; what runs already is left alone')
    down = commands.add_parser('down', help='end it; what is in the cloud is kept for the next start')
    how = down.add_mutually_exclusive_group()
    how.add_argument('--wipe', action='store_true', help='drop what is in the cloud; the next start unpacks the golden copy')
    how.add_argument('--purge', action='store_true', help='remove its folder with everything in it')
    commands.add_parser('status', help='what runs, since when, with how much memory; exit status 1 unless everything does')
    commands.add_parser('env', help='print the path of the file with the settings that test suites read')
    args = parser.parse_args(argv)
    try:
        settings = settings_module.read(os.environ, os.getuid())
        if args.command == 'install':
            packages.install(settings, say)
        elif args.command == 'env':
            print(settings.dir / 'env')
        else:
            if args.command == 'up':
                packages.require()
            elif not (settings.dir / MARKER).is_file():
                return nothing(args.command, settings)
            step_down(settings, argv)
            claim(settings)
            with lock(settings):
                if args.command == 'up':
                    up(settings)
                elif args.command == 'status':
                    return status(settings)
                else:
                    down_(settings, args.wipe, args.purge)
    except LabError as e:
        print('lab.py: %s' % e, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print('lab.py: interrupted; `lab.py up` carries on, `lab.py down` ends what runs', file=sys.stderr)
        return 130
    return 0


def nothing(command, settings):
    print('no lab in %s' % settings.dir)
    return 1 if command == 'status' else 0


# ---- whose it is ----------------------------------------------------------------------------------------------------


def step_down(settings, argv):
    """Under root: makes the folder, and goes on as the unprivileged account. Never returns then."""
    if os.getuid() != 0 or settings.user == 'root':
        return
    try:
        account = pwd.getpwnam(settings.user)
    except KeyError:
        raise LabError('there is no account %s: run `lab.py install`, or set VNFM_LAB_OPENSTACK_USER' % settings.user)
    os.umask(0o022)
    settings.dir.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        settings.dir.mkdir()
    found = os.lstat(settings.dir)
    if settings.dir.is_symlink() or found.st_uid not in (0, account.pw_uid):
        raise LabError('%s is a link or belongs to somebody else' % settings.dir)
    if found.st_uid != account.pw_uid:
        if any(settings.dir.iterdir()):
            raise LabError('%s belongs to root and is not empty; set VNFM_LAB_OPENSTACK_DIR to another folder, or '
                           'VNFM_LAB_OPENSTACK_USER=root if root made the lab in it' % settings.dir)
        os.chown(settings.dir, account.pw_uid, account.pw_gid)
    os.chdir('/')
    os.setgroups([])
    os.setgid(account.pw_gid)
    os.setuid(account.pw_uid)
    if not os.access(settings.dir, os.R_OK | os.W_OK | os.X_OK):
        raise LabError('%s cannot get into %s: set VNFM_LAB_OPENSTACK_DIR to a folder below one that everybody may enter'
                       % (settings.user, settings.dir))
    claim(settings)
    # the checkout itself may lie where that account must not look
    with lock(settings):
        copy_code(settings)
    env = {k: v for k, v in os.environ.items() if k.startswith(settings_module.PREFIX)}
    env.update({'VNFM_LAB_OPENSTACK_DIR': str(settings.dir), 'PATH': '/usr/sbin:/usr/bin:/sbin:/bin', 'LC_ALL': 'C.UTF-8'})
    sys.stdout.flush()
    os.execve('/usr/bin/python3', ['/usr/bin/python3', '-B', str(settings.dir / 'code' / 'lab.py'), *argv], env)


def claim(settings):
    """The folder is ours, or is made ours when it is new or empty. Nothing else's folder is ever written to or emptied."""
    if (settings.dir / MARKER).is_file():
        owner = os.stat(settings.dir).st_uid
        if owner != os.getuid():
            raise LabError('the lab in %s belongs to uid %d: only that account can run it' % (settings.dir, owner))
        return
    settings.dir.mkdir(parents=True, exist_ok=True)
    if any(settings.dir.iterdir()):
        raise LabError('%s is in use for something else; set VNFM_LAB_OPENSTACK_DIR' % settings.dir)
    (settings.dir / MARKER).touch()


def copy_code(settings):
    """The daemons load the lab's plug-ins from a copy: a checkout that changes under them does not matter."""
    if HERE == settings.dir / 'code':
        return
    new = settings.dir / 'code.new'
    shutil.rmtree(new, ignore_errors=True)
    shutil.copytree(HERE, new, ignore=shutil.ignore_patterns('__pycache__'), copy_function=shutil.copyfile)
    shutil.rmtree(settings.dir / 'code', ignore_errors=True)
    new.rename(settings.dir / 'code')


@contextlib.contextmanager
def lock(settings):
    with open(settings.dir / 'lock', 'w') as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say('waiting for another lab.py at work here')
            fcntl.flock(f, fcntl.LOCK_EX)
        yield


# ---- commands -------------------------------------------------------------------------------------------------------


def parts(settings):
    # these import what `install` installs
    from .databases import Databases
    from .services import Services
    files = Files(settings)
    services = Services(settings, files.all(), say)
    return files, services, Databases(settings, files, services, say)


def up(settings):
    from . import outputs
    from . import seed
    from .services import APIS
    copy_code(settings)
    for folder in ('etc', 'log', 'run'):
        (settings.dir / folder).mkdir(exist_ok=True)
    files, services, databases = parts(settings)
    services.check_ports()
    for folder in files.folders():
        (settings.dir / folder).mkdir(parents=True, exist_ok=True)
    for name, text in files.all().items():
        (settings.etc / name).write_text(text)

    say(databases.up())
    # these need no messages, or take their time before they do
    services.start('memcached', 'epmd', 'rabbitmq', 'keystone', 'placement', 'neutron.nursery', 'glance.nursery')
    services.await_port('rabbitmq', 'rabbitmq')
    say('database and message queue are up')
    services.start(*services.leaders())
    services.await_members()
    for api in APIS:
        services.await_api(api)
    say('all APIs answer')
    seed.Content(settings, lambda: services.check(*services.leaders())).fill()
    path = outputs.write(settings, services)
    say('up: Keystone at %s' % settings.auth_url)
    print('          settings for tests: . %s\n          for people:         export OS_CLIENT_CONFIG_FILE=%s; '
          'openstack --os-cloud lab-nfv_user stack list' % (path, settings.dir / 'clouds.yaml'))


def down_(settings, wipe, purge):
    _, services, _ = parts(settings)
    services.stop_all()
    if wipe or purge:
        for entry in settings.dir.iterdir():
            if entry.name in KEPT and not (purge and entry.name != 'lock'):
                continue
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    if purge:
        (settings.dir / 'lock').unlink()
        with contextlib.suppress(OSError):
            settings.dir.rmdir()          # under root the folder above may not be ours to write to
    say('down' + (', and what was in it is gone' if wipe or purge else ''))


def status(settings):
    from .services import APIS, http_status
    _, services, _ = parts(settings)
    registry = services.registry
    ticks = os.sysconf('SC_CLK_TCK')
    with open('/proc/uptime') as f:
        uptime = float(f.read().split()[0])
    lacking, memory = 0, 0
    print('%-26s %8s %9s %9s %10s' % ('PROCESS', 'PID', 'UP', 'CPU', 'MEMORY'))
    for name in services.everyone():
        pid = registry.pid(name)
        if not pid:
            lacking += 1
            ended = settings.run / (name + '.ended')
            print('%-26s %8s  %s' % (name, '-', 'ended ' + ended.read_text().strip() if ended.exists() else 'does not run'))
            continue
        fields = pathlib.Path('/proc/%d/stat' % pid).read_text().rpartition(')')[2].split()
        pss = proportional(pid)
        memory += pss
        print('%-26s %8d %8.0fs %8.1fs %6.0f MiB' % (
            name, pid, uptime - int(fields[19]) / ticks, (int(fields[11]) + int(fields[12])) / ticks, pss))
    for api in APIS:
        url = settings.auth_url if api == 'keystone' else settings.url(api, '/')
        code = http_status(url, 10)
        well = 0 < code < 500
        lacking += not well
        print('%-26s %s' % ('API ' + api, url + (' answers' if well else ': %d' % code if code else ': no answer')))
    print('\n%s, %.1f GiB (children of these not counted); %s; logs: %s' % (
        'everything runs' if not lacking else '%d missing: `lab.py up` starts them' % lacking, memory / 1024,
        ' '.join('%s %s' % item for item in packages.upstream().items()), settings.log))
    return 1 if lacking else 0


def proportional(pid):
    """MiB of memory, what is shared divided among those who share it."""
    try:
        with open('/proc/%d/smaps_rollup' % pid) as f:
            return sum(int(line.split()[1]) for line in f if line.startswith('Pss:')) / 1024
    except OSError:
        return 0.0
