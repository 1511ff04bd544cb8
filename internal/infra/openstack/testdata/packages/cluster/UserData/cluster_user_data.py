from tacker.vnfm.lcm_user_data.abstract_user_data import AbstractUserData
import tacker.vnfm.lcm_user_data.utils as UserDataUtil


class ClusterUserData(AbstractUserData):
    @staticmethod
    def instantiate(base_hot_dict=None, vnfd_dict=None, inst_req_info=None, grant_info=None):
        given = UserDataUtil.get_diff_base_hot_param_from_api(base_hot_dict, inst_req_info)
        initial = UserDataUtil.create_initial_param_server_port_dict(base_hot_dict)
        flavors = UserDataUtil.create_vdu_flavor_capability_name_dict(vnfd_dict)
        images = UserDataUtil.create_sw_image_dict(vnfd_dict)
        networks = UserDataUtil.create_network_dict(inst_req_info, initial)
        final = UserDataUtil.create_final_param_dict(initial, flavors, images, networks)
        return {**final, **given}
