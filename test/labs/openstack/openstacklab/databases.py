"""Databases: made and migrated once, then kept as a golden copy that later starts unpack."""
import base64
import concurrent.futures
import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import time

import pymysql

from . import LabError
from . import packages
from . import seed
from .services import PYTHON

NAMES = ('keystone', 'glance', 'placement', 'nova_api', 'nova_cell0', 'nova_cell1', 'neutron', 'cinder', 'heat')
KEPT = ('mariadb', 'keystone')


class Databases:

    def __init__(self, settings, files, services, say):
        self.s, self.files, self.services, self.say = settings, files, services, say
        self.golden = settings.dir / 'golden.tar.gz'
        self.stamp = settings.dir / 'golden.stamp'
        self.content = settings.dir / 'mariadb.stamp'       # of what lies in mariadb/ now

    def mark(self):
        """Of everything that is written into the databases: with another one they are made anew."""
        return hashlib.sha256(json.dumps([
            1, str(self.s.dir), self.s.port, self.s.password, self.s.regions, os.getuid(), sorted(packages.versions().items()),
        ]).encode()).hexdigest()

    def up(self):
        """MariaDB runs, with everything migrated and Keystone filled. Returns what had to be done for it."""
        have = self.content.read_text() if self.content.exists() else ''
        if have == self.mark():
            self.start()
            return 'databases kept'
        if have:
            self.say('the databases were made with other settings or packages: what is in this cloud is dropped')
        self.services.stop_all()
        for name in KEPT:
            shutil.rmtree(self.s.dir / name, ignore_errors=True)
        self.content.unlink(missing_ok=True)
        if self.golden.exists() and self.stamp.exists() and self.stamp.read_text() == self.mark():
            with tarfile.open(self.golden) as tar:
                tar.extractall(self.s.dir)
            done = 'databases unpacked from the golden copy'
        else:
            self.make()
            done = 'databases made, golden copy kept'
        self.content.write_text(self.mark())
        self.start()
        return done

    def start(self):
        self.services.start('mariadb')
        self.services.wait(self.answers, 'mariadb', 'does not answer', 60)

    def answers(self):
        try:
            self.sql('select 1')
        except pymysql.Error:
            return False
        return True

    def sql(self, *statements):
        with pymysql.connect(unix_socket=str(self.s.socket), user='root', autocommit=True) as connection:
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)

    # ---- once -------------------------------------------------------------------------------------------------------

    def make(self):
        self.say('making and migrating the databases, this once')
        self.golden.unlink(missing_ok=True)
        output = self.s.log / 'migrations.out'
        output.unlink(missing_ok=True)
        # memcached and RabbitMQ come up meanwhile
        self.services.start('memcached', 'epmd', 'rabbitmq')
        self.command(['mariadb-install-db', '--no-defaults', '--datadir=%s' % (self.s.dir / 'mariadb'), '--skip-test-db',
                      '--skip-name-resolve', '--auth-root-authentication-method=normal',
                      *(['--user=root'] if os.getuid() == 0 else [])])
        self.start()
        # names and the password hold nothing but letters, digits, _ and -: settings.py has seen to that
        self.sql("CREATE USER lab@localhost IDENTIFIED BY '%s'" % self.s.password, 'GRANT ALL ON *.* TO lab@localhost',
                 *('CREATE DATABASE ' + name for name in NAMES))
        self.keys()
        with concurrent.futures.ThreadPoolExecutor() as lanes:
            for lane in [lanes.submit(lane) for lane in (self.first_lane, self.second_lane)]:
                lane.result()
        self.services.await_api('keystone')
        seed.Keystone(self.s).fill()
        self.services.stop('keystone')
        self.services.stop('mariadb', patience=60)
        self.keep()

    def first_lane(self):
        """Half of the work by time, for one of two cores."""
        self.project('neutron', 'neutron.db.migration.cli:main', 'upgrade', 'heads')
        self.project('heat', 'heat.cmd.manage:main', 'db_sync')
        self.project('glance', 'glance.cmd.manage:main', 'db_sync')

    def second_lane(self):
        s = self.s
        self.project('keystone', 'keystone.cmd.manage:main', 'db_sync')
        self.project('keystone', 'keystone.cmd.manage:main', 'bootstrap', '--bootstrap-password', s.password,
                     '--bootstrap-region-id', s.region, '--bootstrap-public-url', s.auth_url,
                     '--bootstrap-internal-url', s.auth_url, '--bootstrap-admin-url', s.auth_url)
        self.services.start('keystone')
        self.command([PYTHON, '-m', 'vnfmlab.nova_cells', str(s.etc / 'nova.conf'), self.files.connection('nova_cell0')])
        self.project('cinder', 'cinder.cmd.manage:main', 'db', 'sync')
        self.project('placement', 'placement.cmd.manage:main', 'db', 'sync', file='placement/placement.conf')

    def project(self, name, call, *args, file=None):
        config = str(self.s.etc / (file or name + '.conf'))
        self.command([PYTHON, '-m', 'vnfmlab.entry', call, '--config-file', config, *args])

    def command(self, argv):
        with open(self.s.log / 'migrations.out', 'a') as out:
            begun = out.tell()
            print('%s  %s' % (time.strftime('%T'), ' '.join(argv[:7])), file=out, flush=True)
            status = subprocess.run(argv, env=self.services.environment({}), cwd=self.s.run, stdin=subprocess.DEVNULL,
                                    stdout=out, stderr=subprocess.STDOUT).returncode
        if status:
            with open(out.name, errors='replace') as f:
                f.seek(begun)
                tail = f.read().splitlines()[-15:]
            raise LabError('%s: exit status %d\n  %s\n%s has all of it; `lab.py up` begins anew'
                           % (' '.join(argv[2:5]), status, '\n  '.join(tail), out.name))

    def keys(self):
        """What `keystone-manage fernet_setup` and `credential_setup` make: key 0 is staged, key 1 is in use."""
        for kind in ('fernet', 'credential'):
            folder = self.s.dir / 'keystone' / kind
            folder.mkdir(parents=True, mode=0o700)
            for number in '01':
                (folder / number).touch(0o600)
                (folder / number).write_bytes(base64.urlsafe_b64encode(os.urandom(32)))

    def keep(self):
        new = self.golden.with_suffix('.new')
        with tarfile.open(new, 'w:gz', compresslevel=1) as tar:
            for name in KEPT:
                tar.add(self.s.dir / name, name)
        self.stamp.write_text(self.mark())
        new.rename(self.golden)
