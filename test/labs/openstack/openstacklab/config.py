"""Configuration files of every daemon: sections as dicts, put together from the layers that they share."""
from . import packages
from .settings import HOST, QUOTAS


def ini(*layers):
    """The text of an INI file; a later layer adds to the sections of an earlier one and wins over it."""
    sections = {}
    for layer in layers:
        for section, options in layer.items():
            sections.setdefault(section, {}).update(options)
    return '\n'.join('[%s]\n%s' % (name, ''.join('%s = %s\n' % (k, text(v)) for k, v in options.items()))
                     for name, options in sections.items())


def text(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


class Files:
    """Every configuration file, by its path below etc/."""

    def __init__(self, settings):
        self.s = settings

    def all(self):
        files = {
            'no-policies.yaml': '',       # the policies in the code
            'no-filters.json': '{}\n',
            'mariadb.cnf': ini(self.mariadb()),
            'rabbitmq.conf': self.rabbitmq(),
            'rabbitmq-plugins': '[].\n',
            'keystone.conf': ini(self.database('keystone'), self.policies(), self.memory(), self.keystone()),
            'placement/placement.conf': ini(self.policies(), self.authtoken('placement'), self.placement()),
            'glance.conf': ini(self.service('glance'), self.glance()),
            'nova.conf': ini(self.service('nova', 'nova_cell1'), self.memory(), self.nova()),
            'neutron.conf': ini(self.service('neutron'), self.neutron()),
            'cinder.conf': ini(self.service('cinder'), self.cinder()),
            'heat.conf': ini(self.service('heat'), self.memory(), self.heat()),
        }
        for host, _ in self.s.computes:
            files['nova-%s.conf' % host] = ini(self.nova_compute(host))
        return files

    def folders(self):
        """Folders of state that the daemons expect to be there, below `dir`."""
        return (['etc/placement', 'etc/heat/environment.d', 'etc/heat/templates', 'glance/images', 'glance/staging',
                 'glance/tasks', 'cinder/coordination', 'rabbitmq']
                + [p + '/lock' for p in ('glance', 'nova', 'neutron', 'cinder', 'heat')]
                + ['nova/%s/instances' % host for host, _ in self.s.computes])

    # ---- layers ---------------------------------------------------------------------------------------------------

    def connection(self, database):
        return 'mysql+pymysql://lab:%s@localhost/%s?unix_socket=%s&charset=utf8' % (self.s.password, database, self.s.socket)

    def database(self, name, section='database'):
        # small pools that may grow: a burst of requests must not wait for connections
        return {section: {'connection': self.connection(name), 'max_pool_size': 10, 'max_overflow': 60}}

    def policies(self):
        return {'oslo_policy': {'policy_file': self.s.etc / 'no-policies.yaml'}}

    def memory(self):
        return {'cache': {'enabled': True, 'backend': 'oslo_cache.memcache_pool',
                          'memcache_servers': '%s:%d' % (HOST, self.s.port_of('memcached'))}}

    def login(self, user):
        return {'auth_type': 'password', 'auth_url': self.s.auth_url, 'username': user, 'password': self.s.password,
                'project_name': 'service', 'user_domain_name': 'Default', 'project_domain_name': 'Default',
                'region_name': self.s.region}

    def authtoken(self, user):
        return {'keystone_authtoken': dict(
            self.login(user), www_authenticate_uri=self.s.auth_url, service_token_roles_required=True,
            memcached_servers='%s:%d' % (HOST, self.s.port_of('memcached')),
            # what is revoked is refused everywhere within seconds, not within the usual five minutes
            token_cache_time=10)}

    def service(self, name, database=None):
        """What every service on oslo.messaging has."""
        return {
            'DEFAULT': {
                # not the machine's own name, which may change under a kept database
                'host': 'controller', 'debug': self.s.debug, 'use_stderr': False, 'state_path': self.s.dir / name,
                'transport_url': 'rabbit://guest:guest@%s:%d/' % (HOST, self.s.port_of('rabbitmq')),
                'rpc_response_timeout': 180,
                # periodic tasks begin at once, not after a random part of their period
                'periodic_fuzzy_delay': 0},
            'oslo_concurrency': {'lock_path': self.s.dir / name / 'lock'},
            'oslo_messaging_rabbit': {'heartbeat_timeout_threshold': 0},
            'oslo_messaging_notifications': {'driver': 'noop'},
            **self.policies(), **self.database(database or name), **self.authtoken(name)}

    def quotas(self, project, pattern='%s'):
        return {pattern % name: self.s.quota_of(name) for name in QUOTAS[project]}

    # ---- infrastructure ---------------------------------------------------------------------------------------------

    def mariadb(self):
        # nothing here is worth a disk's fsync
        return {'mariadbd': {
            'datadir': self.s.dir / 'mariadb', 'socket': self.s.socket, 'pid-file': self.s.dir / 'mariadb.pid',
            'skip-networking': 1, 'skip-name-resolve': 1, 'skip-log-bin': 1, 'performance_schema': 0,
            'innodb_flush_log_at_trx_commit': 0, 'innodb_flush_method': 'nosync', 'innodb_doublewrite': 0,
            'innodb_stats_persistent': 0, 'innodb_buffer_pool_size': '256M', 'innodb_log_file_size': '64M',
            'max_connections': 1000, 'table_open_cache': 2000,
            'character-set-server': 'utf8mb3', 'collation-server': 'utf8mb3_general_ci'}}

    def rabbitmq(self):
        return ('listeners.tcp.1 = %s:%d\n' % (HOST, self.s.port_of('rabbitmq'))
                + 'heartbeat = 0\nlog.console = false\nlog.file.level = warning\n'
                + 'vm_memory_high_watermark.absolute = 1GB\ndisk_free_limit.absolute = 50MB\n')

    # ---- OpenStack --------------------------------------------------------------------------------------------------

    def keystone(self):
        keys = self.s.dir / 'keystone'
        return {
            'DEFAULT': {'debug': self.s.debug, 'use_stderr': False, 'log_file': self.s.log / 'keystone.log'},
            'token': {'provider': 'fernet', 'expiration': self.s.token_seconds},
            'fernet_tokens': {'key_repository': keys / 'fernet'},
            'fernet_receipts': {'key_repository': keys / 'fernet'},
            'credential': {'key_repository': keys / 'credential'},
            # the fewest rounds of bcrypt: every log-in would cost tens of milliseconds of CPU
            'identity': {'password_hash_rounds': 4}}

    def placement(self):
        return {'DEFAULT': {'debug': self.s.debug, 'use_stderr': False, 'log_file': self.s.log / 'placement.log'},
                'api': {'auth_strategy': 'keystone'}, **self.database('placement', 'placement_database')}

    def glance(self):
        home = self.s.dir / 'glance'
        return {
            'DEFAULT': {'bind_host': HOST, 'bind_port': self.s.port_of('glance'), 'workers': 0,
                        'enabled_backends': 'disk:file', 'node_staging_uri': 'file://%s/staging' % home,
                        # images from a URL are fetched by Glance itself
                        'enabled_import_methods': '[glance-direct,web-download]',
                        'worker_self_reference_url': self.s.url('glance')},
            'glance_store': {'default_backend': 'disk'},
            'disk': {'filesystem_store_datadir': home / 'images'},
            'os_glance_tasks_store': {'filesystem_store_datadir': home / 'tasks'},
            'os_glance_staging_store': {'filesystem_store_datadir': home / 'staging'},
            'paste_deploy': {'flavor': 'keystone', 'config_file': packages.pipeline('glance')}}

    def nova(self):
        return {
            'DEFAULT': {'enabled_apis': 'osapi_compute', 'osapi_compute_listen': HOST,
                        'osapi_compute_listen_port': self.s.port_of('nova'), 'osapi_compute_workers': 1,
                        'compute_driver': 'vnfmlab.Hypervisor',        # inside/nova_virt/vnfmlab.py
                        'reserved_host_memory_mb': 0, 'reserved_host_disk_mb': 0,
                        'use_rootwrap_daemon': False, 'rootwrap_config': '/nonexistent',
                        'instance_build_timeout': 600, 'max_concurrent_builds': 50,
                        'vif_plugging_is_fatal': False, 'vif_plugging_timeout': 0},
            'api': {'auth_strategy': 'keystone'},
            'wsgi': {'api_paste_config': packages.pipeline('nova')},
            **self.database('nova_api', 'api_database'),
            'conductor': {'workers': 1},
            # a new host is put into its cell within two seconds, with no command from outside
            'scheduler': {'workers': 1, 'discover_hosts_in_cells_interval': 2},
            'filter_scheduler': {'enabled_filters': ','.join((
                'AvailabilityZoneFilter', 'ComputeFilter', 'ComputeCapabilitiesFilter', 'ImagePropertiesFilter',
                'SameHostFilter', 'DifferentHostFilter', 'ServerGroupAffinityFilter', 'ServerGroupAntiAffinityFilter'))},
            'vnc': {'enabled': False},
            'quota': dict(self.quotas('nova'), metadata_items=-1),
            'glance': {'api_servers': self.s.url('glance')},
            'cinder': dict(self.login('nova'), catalog_info='volumev3::publicURL', os_region_name=self.s.region),
            'neutron': self.login('neutron'),
            'placement': self.login('placement'),
            'service_user': dict(self.login('nova'), send_service_user_token=True)}

    def nova_compute(self, host):
        home = self.s.dir / 'nova' / host
        return {'DEFAULT': {'host': host, 'state_path': home, 'instances_path': home / 'instances'},
                'oslo_concurrency': {'lock_path': home}}

    def neutron(self):
        return {
            'DEFAULT': {'bind_host': HOST, 'bind_port': self.s.port_of('neutron'), 'auth_strategy': 'keystone',
                        'api_paste_config': packages.pipeline('neutron'),
                        'api_workers': self.s.neutron_workers, 'rpc_workers': 1, 'rpc_state_report_workers': 0,
                        # routers and floating IPs are records only: no agent wires them
                        'core_plugin': 'ml2', 'service_plugins': 'router,qos', 'dhcp_agent_notification': False,
                        'notify_nova_on_port_status_changes': True, 'notify_nova_on_port_data_changes': True,
                        'global_physnet_mtu': 1500},
            'ml2': {'type_drivers': 'flat,vlan,vxlan,local', 'tenant_network_types': 'vxlan',
                    'mechanism_drivers': 'vnfmlab',                    # inside/vnfmlab/neutron.py
                    'extension_drivers': 'port_security,qos'},
            'ml2_type_flat': {'flat_networks': '*'},
            'ml2_type_vlan': {'network_vlan_ranges': 'physnet1:1:4000'},
            'ml2_type_vxlan': {'vni_ranges': '1:100000'},
            'quotas': dict(self.quotas('neutron', 'quota_%s'), default_quota=-1),
            'nova': self.login('nova'),
            'placement': self.login('placement')}

    def cinder(self):
        return {
            'DEFAULT': {'auth_strategy': 'keystone', 'osapi_volume_listen': HOST,
                        'osapi_volume_listen_port': self.s.port_of('cinder'), 'osapi_volume_workers': 1,
                        'api_paste_config': packages.pipeline('cinder'), 'enabled_backends': 'lab',
                        'glance_api_servers': self.s.url('glance'), 'rootwrap_config': '/nonexistent',
                        'resource_query_filters_file': self.s.etc / 'no-filters.json',
                        # The scheduler places nothing before it has heard of a backend's size. When it starts after
                        # cinder-volume it has missed the first word of it, and the next comes after this many seconds.
                        'backend_stats_polling_interval': 5, 'periodic_interval': 5,
                        **self.quotas('cinder', 'quota_%s')},
            'lab': {'volume_driver': 'vnfmlab.cinder.Backend', 'volume_backend_name': 'lab'},
            'coordination': {'backend_url': 'file://%s/cinder/coordination' % self.s.dir},
            'nova': dict(self.login('nova'), interface='public'),
            'service_user': dict(self.login('cinder'), send_service_user_token=True)}

    def heat(self):
        return {
            'DEFAULT': {'num_engine_workers': self.s.heat_workers, 'region_name_for_services': self.s.region,
                        'heat_metadata_server_url': self.s.url('heat-cfn'),
                        'heat_waitcondition_server_url': self.s.url('heat-cfn', '/v1/waitcondition'),
                        'stack_user_domain_name': 'heat', 'stack_domain_admin': 'heat_domain_admin',
                        'stack_domain_admin_password': self.s.password, 'auth_encryption_key': 'vnfm-lab' * 4,
                        'environment_dir': self.s.etc / 'heat/environment.d', 'template_dir': self.s.etc / 'heat/templates',
                        'max_stacks_per_tenant': self.s.quota_of('stacks'),
                        'max_resources_per_stack': self.s.quota_of('resources'),
                        'enable_stack_abandon': True, 'enable_stack_adopt': True},
            'heat_api': {'bind_host': HOST, 'bind_port': self.s.port_of('heat'), 'workers': 1},
            'heat_api_cfn': {'bind_host': HOST, 'bind_port': self.s.port_of('heat-cfn'), 'workers': 1},
            'paste_deploy': {'api_paste_config': packages.pipeline('heat')},
            'clients_keystone': {'auth_uri': self.s.auth_url},
            'ec2authtoken': {'auth_uri': self.s.auth_url},
            'trustee': {'auth_type': 'password', 'auth_url': self.s.auth_url, 'username': 'heat',
                        'password': self.s.password, 'user_domain_name': 'Default'}}
