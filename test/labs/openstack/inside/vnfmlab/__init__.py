"""The lab's plug-ins of OpenStack's services: what stands where hypervisors, switches and storage would."""
