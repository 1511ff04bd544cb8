"""A hypervisor without guests: Nova's own fake driver, that remembers and that fails when it is told to.

Each host has 1000 CPUs, 800 GB of memory and 600 TB of disk. An extra spec of the flavor, or a server's metadata:

    lab:delay = 20          building the server takes 20 seconds
    lab:fail = 1            building it fails: the server goes to ERROR, with no other host tried
    lab:fail = elsewhere    building it fails on this host: Nova tries the others, and then gives up
"""
import time

from nova import context as nova_context
from nova import exception
from nova import objects
from nova.compute import power_state
from nova.compute import vm_states
from nova.virt import fake

GONE = (vm_states.DELETED, vm_states.SOFT_DELETED, vm_states.ERROR)


class Hypervisor(fake.FakeDriver):

    def init_host(self, host):
        """After a restart of nova-compute the servers of before are there still: Nova's database says which."""
        super().init_host(host)
        for server in objects.InstanceList.get_by_host(nova_context.get_admin_context(), host, expected_attrs=['flavor']):
            if server.vm_state not in GONE:
                off = server.vm_state == vm_states.STOPPED
                self.instances[server.uuid] = fake.FakeInstance(
                    server.name, power_state.SHUTDOWN if off else power_state.RUNNING, server.uuid)
                self.resources.claim(server.flavor.vcpus, server.flavor.memory_mb, server.flavor.root_gb)

    def spawn(self, context, instance, *args, **kwargs):
        orders = {**(instance.flavor.extra_specs or {}), **(instance.metadata or {})}
        time.sleep(float(orders.get('lab:delay', 0)))       # eventlet's: nothing else is held up
        fail = orders.get('lab:fail')
        if fail == 'elsewhere':
            raise exception.ComputeResourcesUnavailable(reason='lab:fail=elsewhere')
        if fail:
            raise exception.BuildAbortException(instance_uuid=instance.uuid, reason='lab:fail')
        return super().spawn(context, instance, *args, **kwargs)
