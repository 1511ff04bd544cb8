import time  # a module of the standard library, as scripts use it

from oslo_log import log as logging
from tacker.vnfm.lcm_user_data.abstract_user_data import AbstractUserData
from tacker.vnfm.lcm_user_data import utils

LOG = logging.getLogger(__name__)


class OldChain(AbstractUserData):
    """Flavors by size and images by Glance id, networks as plain ids."""

    @staticmethod
    def instantiate(base_hot_dict=None, vnfd_dict=None, inst_req_info=None, grant_info=None):
        LOG.info("started at %s", time.time())
        initial = utils.create_initial_param_dict(base_hot_dict)
        return utils.create_final_param_dict(
            initial, utils.create_vdu_flavor_dict(vnfd_dict), utils.create_vdu_image_dict(grant_info),
            utils.create_cpd_vl_dict(base_hot_dict, inst_req_info))


class Initial(AbstractUserData):
    """Only what the templates take from nfv."""

    @staticmethod
    def instantiate(base_hot_dict=None, vnfd_dict=None, inst_req_info=None, grant_info=None):
        return utils.create_initial_param_dict(base_hot_dict)
