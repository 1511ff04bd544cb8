"""Settings: read once from the environment, checked, and never changed afterwards."""
import os
import pathlib
import re
from dataclasses import dataclass, field

from . import LabError

PREFIX = 'VNFM_LAB_OPENSTACK_'
HOST = '127.0.0.1'
PORTS = ('keystone', 'glance', 'placement', 'nova', 'neutron', 'cinder', 'heat', 'heat-cfn',
         'rabbitmq', 'epmd', 'rabbitmq-peers', 'memcached')
# Everything is unlimited unless VNFM_LAB_OPENSTACK_QUOTA says otherwise.
QUOTAS = {
    'nova': ('instances', 'cores', 'ram', 'key_pairs', 'server_groups', 'server_group_members'),
    'neutron': ('network', 'subnet', 'port', 'router', 'floatingip', 'security_group', 'security_group_rule'),
    'cinder': ('volumes', 'snapshots', 'gigabytes'),
    'heat': ('stacks', 'resources'),
}


@dataclass(frozen=True)
class Settings:
    """All paths hang below `dir`; all ports are `port` and the ones right after it, in the order of PORTS."""
    dir: pathlib.Path
    port: int = 25000
    password: str = 'vnfm-lab'
    computes: tuple = (('compute-1', ''), ('compute-2', ''), ('compute-3', ''))     # host, zone ('': nova)
    regions: tuple = ('RegionOne', 'RegionTwo')
    quota: dict = field(default_factory=dict)
    heat_workers: int = 1
    neutron_workers: int = 2
    token_seconds: int = 3600
    pauses: str = 'short'
    debug: bool = False
    user: str = 'vnfm-lab'

    @property
    def etc(self):
        return self.dir / 'etc'

    @property
    def log(self):
        return self.dir / 'log'

    @property
    def run(self):
        return self.dir / 'run'

    @property
    def inside(self):
        return self.dir / 'code' / 'inside'

    @property
    def socket(self):
        return self.dir / 'mariadb.sock'

    @property
    def region(self):
        return self.regions[0]

    def port_of(self, service):
        return self.port + PORTS.index(service)

    def url(self, service, path=''):
        return 'http://%s:%d%s' % (HOST, self.port_of(service), path)

    @property
    def auth_url(self):
        return self.url('keystone', '/v3')

    def quota_of(self, name):
        return self.quota.get(name, -1)


def default_dir(env, uid):
    # root's daemons run as somebody else, who cannot look into root's cache
    base = '/var/tmp' if uid == 0 else env.get('XDG_CACHE_HOME') or '/var/tmp'
    return os.path.join(base, 'vnfm-lab-openstack')


def read(env, uid):
    """Settings from the environment; LabError names the variable that is wrong."""
    def get(name, default, pattern, parse=str):
        text = env.get(PREFIX + name, '') or default
        if not re.fullmatch(pattern, text):
            raise LabError('%s%s=%r: must look like %s' % (PREFIX, name, text, pattern))
        return parse(text)

    known = set('DIR PORT PASSWORD COMPUTES REGIONS QUOTA HEAT_WORKERS NEUTRON_WORKERS TOKEN_SECONDS PAUSES DEBUG USER'
                .split())
    for name in env:
        if name.startswith(PREFIX) and name[len(PREFIX):] not in known:
            raise LabError('%s: no such setting; there are: %s' % (name, ' '.join(sorted(known))))

    folder = pathlib.Path(env.get(PREFIX + 'DIR') or default_dir(env, uid))
    if not folder.is_absolute() or len(folder.parts) < 3 or '..' in folder.parts:
        raise LabError('%sDIR=%s: an absolute path with a folder above it is needed' % (PREFIX, folder))
    if len(str(folder)) > 85:
        raise LabError('%sDIR=%s: too long for the socket that is to lie in it' % (PREFIX, folder))
    if re.search(r'[^A-Za-z0-9/._-]', str(folder)):
        raise LabError('%sDIR=%s: only letters, digits, and . _ - /' % (PREFIX, folder))

    quota = {}
    names = [n for group in QUOTAS.values() for n in group]
    for item in env.get(PREFIX + 'QUOTA', '').split():
        name, _, value = item.partition('=')
        if name not in names or not re.fullmatch(r'-1|[0-9]{1,9}', value):
            raise LabError('%sQUOTA: %r: must be name=number, of %s' % (PREFIX, item, ' '.join(names)))
        quota[name] = int(value)

    port = get('PORT', '25000', '[0-9]{4,5}', int)
    if not 1024 <= port <= 65535 - len(PORTS):
        raise LabError('%sPORT=%d: must be between 1024 and %d' % (PREFIX, port, 65535 - len(PORTS)))
    name = '[A-Za-z0-9][A-Za-z0-9_-]*'
    return Settings(
        dir=folder,
        port=port,
        # it goes into URLs and files of several syntaxes
        password=get('PASSWORD', 'vnfm-lab', '[A-Za-z0-9_-]+'),
        computes=get('COMPUTES', 'compute-1 compute-2 compute-3', r'{0}(@{0})?( {0}(@{0})?)*'.format(name),
                     lambda t: tuple((h, z) for h, _, z in (c.partition('@') for c in t.split()))),
        regions=get('REGIONS', 'RegionOne RegionTwo', '{0}( {0})*'.format(name), lambda t: tuple(t.split())),
        quota=quota,
        heat_workers=get('HEAT_WORKERS', '1', '[1-9][0-9]?', int),
        neutron_workers=get('NEUTRON_WORKERS', '2', '[0-9][0-9]?', int),
        token_seconds=get('TOKEN_SECONDS', '3600', '[1-9][0-9]{1,6}', int),
        pauses=get('PAUSES', 'short', 'short|real'),
        debug=get('DEBUG', '0', '[01]') == '1',
        user=get('USER', 'vnfm-lab', '[a-z_][a-z0-9_-]*'),
    )
