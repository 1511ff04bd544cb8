"""Cinder without disks: volumes that are records, on a backend without limits."""
from cinder.tests import fake_driver


class Backend(fake_driver.FakeLoggingVolumeDriver):

    def clone_image(self, context, volume, image_location, image_meta, image_service):
        # "cloned by the storage": no qemu-img, nothing is copied
        return {}, True

    def copy_volume_to_image(self, context, volume, image_service, image_meta):
        image_service.update(context, image_meta['id'], {}, b'')

    def extend_volume(self, volume, new_size):
        pass

    def _update_volume_stats(self):
        super()._update_volume_stats()
        for pool in self._stats['pools']:
            pool.update(total_capacity_gb='infinite', free_capacity_gb='infinite', reserved_percentage=0, multiattach=True)
