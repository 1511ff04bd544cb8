"""What is in the cloud when it comes up, made where it is missing: accounts, catalogue, flavors, images, networks."""
import time

from . import LabError
from .api import Cloud

# Service, its type, and what its endpoint's path is.
CATALOGUE = (
    ('glance', 'glance', 'image', ''),
    ('placement', 'placement', 'placement', ''),
    ('nova', 'nova', 'compute', '/v2.1'),
    ('neutron', 'neutron', 'network', ''),
    ('cinderv3', 'cinder', 'volumev3', '/v3/%(project_id)s'),
    ('cinder', 'cinder', 'block-storage', '/v3/%(project_id)s'),
    ('heat', 'heat', 'orchestration', '/v1/%(project_id)s'),
    ('heat-cfn', 'heat-cfn', 'cloudformation', '/v1'))
INTERFACES = ('public', 'internal', 'admin')

# Name, CPUs, MiB of memory, GiB of disk, extra specs (lab:… are orders to nova_virt/vnfmlab.py).
FLAVORS = (
    ('m1.tiny', 1, 512, 1, {}),
    ('m1.small', 1, 2048, 20, {}),
    ('m1.medium', 2, 4096, 40, {}),
    ('m1.large', 4, 8192, 80, {}),
    ('lab.slow', 1, 512, 1, {'lab:delay': '20'}),
    ('lab.fail', 1, 512, 1, {'lab:fail': '1'}),
    ('lab.fail.elsewhere', 1, 512, 1, {'lab:fail': 'elsewhere'}))
# Names that VNF packages in circulation use.
IMAGES = ('cirros-0.5.2-x86_64-disk', 'ubuntu-20.04')
NETWORKS = (('net0', '10.10.0.0/24'), ('net1', '10.10.1.0/24'), ('net_mgmt', '192.168.120.0/24'))
PROJECT = 'nfv'
# A manager of VNFs needs the role admin to name hosts and to make flavors; nfv_member has to do without.
USERS = (('nfv_user', ('member', 'admin')), ('nfv_member', ('member',)))


class Keystone:
    """Accounts and the catalogue: part of the golden copy."""

    def __init__(self, settings):
        self.s = settings
        self.cloud = Cloud(settings)

    def fill(self):
        role = {name: self.at('roles', 'role', name=name)
                for name in ('admin', 'member', 'service', 'heat_stack_owner', 'heat_stack_user')}
        service = self.at('projects', 'project', name='service', domain_id='default')
        for name in ('nova', 'placement', 'neutron', 'glance', 'cinder', 'heat'):
            self.grant(self.user(name), 'projects/' + service, role['admin'], role['service'])
        nfv = self.at('projects', 'project', name=PROJECT, domain_id='default')
        for name, roles in USERS:
            self.grant(self.user(name), 'projects/' + nfv, *(role[r] for r in roles))
        heat = self.at('domains', 'domain', name='heat')
        self.grant(self.user('heat_domain_admin', heat), 'domains/' + heat, role['admin'])
        self.catalogue()

    def catalogue(self):
        # The further regions are the same services under another name: enough for whoever has to choose one.
        for region in self.s.regions:
            if not [r for r in self.cloud.get(self.s.auth_url + '/regions')['regions'] if r['id'] == region]:
                self.cloud.call('POST', self.s.auth_url + '/regions', json={'region': {'id': region}})
        for name, service, kind, path in (('keystone', 'keystone', 'identity', '/v3'), *CATALOGUE):
            sid = self.at('services', 'service', name=name, type=kind)
            for region in self.s.regions:
                for interface in INTERFACES:
                    self.at('endpoints', 'endpoint', {'url': self.s.url(service, path)},
                            service_id=sid, interface=interface, region_id=region)

    def at(self, plural, kind, more=None, **find):
        return self.cloud.ensure('%s/%s' % (self.s.auth_url, plural), kind, find, more)['id']

    def user(self, name, domain='default'):
        return self.at('users', 'user', {'password': self.s.password}, name=name, domain_id=domain)

    def grant(self, user, where, *roles):
        for role in roles:
            self.cloud.call('PUT', '%s/%s/users/%s/roles/%s' % (self.s.auth_url, where, user, role))


class Content:
    """What the services hold; each start sees to it that it is there and that all hosts and backends report."""

    def __init__(self, settings, check):
        """check raises LabError when a daemon has died: nothing is waited for in vain."""
        self.s, self.check = settings, check
        self.cloud = Cloud(settings)
        self.nova = settings.url('nova', '/v2.1')
        self.neutron = settings.url('neutron', '/v2.0')

    def fill(self):
        self.flavors()
        self.images()
        self.networks()
        self.wait('a hypervisor is missing; see log/nova-compute@*.log', self.hosts_report)
        self.zones()
        self.wait('Cinder\'s backend does not report; see log/cinder-*.log', self.volumes_report)
        self.wait('Heat\'s engine does not answer; see log/heat-engine.log', self.engine_answers)

    def flavors(self):
        have = {f['name'] for f in self.cloud.get(self.nova + '/flavors')['flavors']}
        for name, vcpus, ram, disk, specs in FLAVORS:
            if name in have:
                continue
            made = self.cloud.call('POST', self.nova + '/flavors', json={
                'flavor': {'name': name, 'vcpus': vcpus, 'ram': ram, 'disk': disk}})['flavor']
            if specs:
                self.cloud.call('POST', '%s/flavors/%s/os-extra_specs' % (self.nova, made['id']), json={'extra_specs': specs})

    def images(self):
        glance = self.s.url('glance', '/v2/images')
        for name in IMAGES:
            if self.cloud.get(glance, name=name, status='active')['images']:
                continue
            image = self.cloud.call('POST', glance, json={
                'name': name, 'visibility': 'public', 'container_format': 'bare', 'disk_format': 'raw'})
            self.cloud.call('PUT', '%s/%s/file' % (glance, image['id']), data=bytes(65536),
                            headers={'Content-Type': 'application/octet-stream'})

    def networks(self):
        nfv = self.cloud.get(self.s.auth_url + '/projects', name=PROJECT)['projects'][0]['id']
        for name, cidr in NETWORKS:
            net = self.network(name, {'project_id': nfv, 'shared': True})
            self.subnet(name, net, {'project_id': nfv, 'cidr': cidr, 'enable_dhcp': True})
        public = self.network('public', {'router:external': True, 'provider:network_type': 'flat',
                                         'provider:physical_network': 'public'})
        self.subnet('public', public, {'cidr': '172.24.4.0/24', 'enable_dhcp': False})

    def network(self, name, more):
        return self.cloud.ensure(self.neutron + '/networks', 'network', {'name': name}, more)['id']

    def subnet(self, network_name, network, more):
        self.cloud.ensure(self.neutron + '/subnets', 'subnet', {'network_id': network},
                          {'name': 'sub_' + network_name, 'ip_version': 4, **more})

    def hosts_report(self):
        """Every host is up, known to Placement and put into its cell: only then are servers scheduled to it."""
        services = self.cloud.get(self.nova + '/os-services', binary='nova-compute')['services']
        providers = self.cloud.get(self.s.url('placement', '/resource_providers'))['resource_providers']
        hypervisors = self.cloud.get(self.nova + '/os-hypervisors')['hypervisors']
        return {host for host, _ in self.s.computes} <= (
            {s['host'] for s in services if s['state'] == 'up'} & {p['name'] for p in providers}
            & {h['hypervisor_hostname'] for h in hypervisors})

    def zones(self):
        groups = {a['name']: a for a in self.cloud.get(self.nova + '/os-aggregates')['aggregates']}
        for host, zone in self.s.computes:
            if zone and zone not in groups:
                groups[zone] = self.cloud.call('POST', self.nova + '/os-aggregates', json={
                    'aggregate': {'name': zone, 'availability_zone': zone}})['aggregate']
            if zone and host not in groups[zone].get('hosts', ()):
                self.cloud.call('POST', '%s/os-aggregates/%s/action' % (self.nova, groups[zone]['id']),
                                json={'add_host': {'host': host}})

    def volumes_report(self):
        cinder = self.s.url('cinder', '/v3/' + self.cloud.project)
        up = {s['binary'] for s in self.cloud.get(cinder + '/os-services')['services'] if s['state'] == 'up'}
        return {'cinder-scheduler', 'cinder-volume'} <= up and self.cloud.get(cinder + '/scheduler-stats/get_pools')['pools']

    def engine_answers(self):
        # what Heat's API says of engines may be of before: this is asked of the engine itself
        try:
            return self.cloud.get(self.s.url('heat', '/v1/%s/build_info' % self.cloud.project), timeout=5)
        except LabError:
            return False

    def wait(self, complaint, condition, seconds=180):
        until = time.monotonic() + seconds
        while not condition():
            self.check()
            if time.monotonic() > until:
                raise LabError('%s (waited %d s)' % (complaint, seconds))
            time.sleep(0.3)
