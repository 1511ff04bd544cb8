"""The base class of user data scripts."""

import abc


class AbstractUserData(metaclass=abc.ABCMeta):
    """A class that makes the parameters of a Base HOT."""

    @staticmethod
    @abc.abstractmethod
    def instantiate(base_hot_dict=None, vnfd_dict=None,
                    inst_req_info=None, grant_info=None):
        """Return the dict of parameters for the stack."""
