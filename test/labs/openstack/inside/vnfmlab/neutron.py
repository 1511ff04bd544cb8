"""Neutron without switches: an ML2 mechanism driver that binds whatever port is given a host.

With Open vSwitch there would be an agent on every host that reports when it has wired a port. Here the port is ACTIVE
as soon as it is bound. A QoS driver that accepts every bandwidth and DSCP rule belongs to it.
"""
from neutron_lib import constants
from neutron_lib.api.definitions import portbindings
from neutron_lib.plugins.ml2 import api
from neutron_lib.services.qos import base
from neutron_lib.services.qos import constants as qos

ANY_NUMBER = {'type:range': [0, 2 ** 31 - 1]}
EITHER_WAY = {'type:values': constants.VALID_DIRECTIONS}
QOS_RULES = {
    qos.RULE_TYPE_BANDWIDTH_LIMIT: {qos.MAX_KBPS: ANY_NUMBER, qos.MAX_BURST: ANY_NUMBER, qos.DIRECTION: EITHER_WAY},
    qos.RULE_TYPE_MINIMUM_BANDWIDTH: {qos.MIN_KBPS: ANY_NUMBER, qos.DIRECTION: EITHER_WAY},
    qos.RULE_TYPE_DSCP_MARKING: {qos.DSCP_MARK: {'type:values': constants.VALID_DSCP_MARKS}},
}
VIF_DETAILS = {portbindings.CAP_PORT_FILTER: True, portbindings.OVS_HYBRID_PLUG: False,
               portbindings.VIF_DETAILS_CONNECTIVITY: portbindings.CONNECTIVITY_L2}


class Switch(api.MechanismDriver):
    """The mechanism driver `vnfmlab` (see the entry points beside this package)."""

    supported_qos_rule_types = QOS_RULES
    connectivity = portbindings.CONNECTIVITY_L2

    def initialize(self):
        # it makes itself known to the QoS plugin when that is loaded
        self.qos_driver = base.DriverBase(
            'vnfmlab', [portbindings.VIF_TYPE_OVS], [portbindings.VNIC_NORMAL, portbindings.VNIC_DIRECT], QOS_RULES)

    def bind_port(self, context):
        if context.segments_to_bind:
            context.set_binding(context.segments_to_bind[0][api.ID], portbindings.VIF_TYPE_OVS, dict(VIF_DETAILS),
                                status=constants.PORT_STATUS_ACTIVE)
