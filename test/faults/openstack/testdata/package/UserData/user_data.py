"""Heat parameters: flavors and images as the VNFD names them, networks and addresses as the request says."""
from tacker.vnfm.lcm_user_data.abstract_user_data import AbstractUserData
import tacker.vnfm.lcm_user_data.utils as UserDataUtil


class FragileUserData(AbstractUserData):

    @staticmethod
    def instantiate(base_hot_dict=None, vnfd_dict=None, inst_req_info=None, grant_info=None):
        wanted = UserDataUtil.create_initial_param_server_port_dict(base_hot_dict)
        return UserDataUtil.create_final_param_dict(
            wanted,
            UserDataUtil.create_vdu_flavor_capability_name_dict(vnfd_dict),
            UserDataUtil.create_sw_image_dict(vnfd_dict),
            UserDataUtil.create_network_dict(inst_req_info, wanted))
