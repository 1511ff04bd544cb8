"""Functions that user data scripts use to turn a Base HOT, a VNFD and a
request into stack parameters. Every function leaves its arguments alone.

Shapes: base_hot maps "heat_template" and nested file names to HOTs; a
parameter dict is {"nfv": {"VDU": {name: {...}}, "CP": {name: {...}}}}.
"""

import copy

_SERVER = "OS::Nova::Server"
_FLAVOR = "OS::Nova::Flavor"
_PORT = "OS::Neutron::Port"
_VOLUME = "OS::Cinder::Volume"
_GROUP = "OS::Heat::AutoScalingGroup"

_UNITS = {
    "b": 1,
    "kb": 10 ** 3, "kib": 2 ** 10,
    "mb": 10 ** 6, "mib": 2 ** 20,
    "gb": 10 ** 9, "gib": 2 ** 30,
    "tb": 10 ** 12, "tib": 2 ** 40,
}


# -- HOT ---------------------------------------------------------------------

def create_initial_param_dict(base_hot_dict):
    """Collect what the HOTs take from the parameter nfv: empty dicts by name.

    Servers, flavors, ports, volumes and the members of scaling groups count.
    """
    return _initial(base_hot_dict, (_SERVER, _FLAVOR, _PORT, _VOLUME))


def create_initial_param_server_port_dict(base_hot_dict):
    """Like create_initial_param_dict, without flavors."""
    return _initial(base_hot_dict, (_SERVER, _PORT, _VOLUME))


def _initial(base_hot_dict, types):
    nfv = {"VDU": {}, "CP": {}}
    for hot in (base_hot_dict or {}).values():
        if not isinstance(hot, dict):
            continue
        if not (hot.get("parameters") or {}).get("nfv"):
            continue
        for resource in (hot.get("resources") or {}).values():
            if not isinstance(resource, dict):
                continue
            kind = resource.get("type")
            properties = resource.get("properties") or {}
            if kind in types:
                _note(nfv, properties.values())
            if kind == _SERVER:
                devices = properties.get("block_device_mapping_v2")
                for device in devices if isinstance(devices, list) else []:
                    if isinstance(device, dict):
                        _note(nfv, [device.get("image")])
            if kind == _GROUP:
                member = properties.get("resource") or {}
                _note(nfv, (member.get("properties") or {}).values())
    return {"nfv": nfv}


def _note(nfv, values):
    """Add a name for each {get_param: [nfv, VDU|CP, name, leaf]}."""
    for value in values:
        path = value.get("get_param") if isinstance(value, dict) else None
        if not isinstance(path, list) or len(path) != 4 or path[0] != "nfv":
            continue
        if path[1] in nfv:
            nfv[path[1]].setdefault(path[2], {})


# -- VNFD --------------------------------------------------------------------

def _nodes(vnfd_dict):
    topology = (vnfd_dict or {}).get("topology_template") or {}
    return topology.get("node_templates") or {}


def _virtual_compute(node):
    compute = (node.get("capabilities") or {}).get("virtual_compute") or {}
    return compute.get("properties") or {}


def _convert(size, unit):
    """Convert "<number> <unit>" to whole units."""
    number, _, given = str(size).strip().partition(" ")
    factor = _UNITS.get(given.strip().lower())
    if factor is None:
        raise ValueError("%r is not a size with a unit" % (size,))
    number = float(number) if "." in number else int(number)
    return int(number * factor / _UNITS[unit])


def create_vdu_flavor_dict(vnfd_dict):
    """Return {vdu: {vcpus, ram in MiB, disk in GiB}}."""
    flavors = {}
    for name, node in _nodes(vnfd_dict).items():
        properties = _virtual_compute(node)
        if not properties:
            continue
        flavor = {}
        cpu = properties.get("virtual_cpu") or {}
        if "num_virtual_cpu" in cpu:
            flavor["vcpus"] = int(cpu["num_virtual_cpu"])
        memory = properties.get("virtual_memory") or {}
        if "virtual_mem_size" in memory:
            flavor["ram"] = _convert(memory["virtual_mem_size"], "mib")
        disks = properties.get("virtual_local_storage") or []
        if disks and "size_of_storage" in disks[0]:
            flavor["disk"] = _convert(disks[0]["size_of_storage"], "gib")
        flavors[name] = flavor
    return flavors


def create_vdu_flavor_capability_name_dict(vnfd_dict):
    """Return {vdu: the name of the flavor that it asks for}."""
    flavors = {}
    for name, node in _nodes(vnfd_dict).items():
        wanted = _virtual_compute(node).get("requested_additional_capabilities") or {}
        properties = wanted.get("properties") or {}
        if "requested_additional_capability_name" in properties:
            flavors[name] = properties["requested_additional_capability_name"]
    return flavors


def create_sw_image_dict(vnfd_dict):
    """Return {node: the name of its software image}."""
    images = {}
    for name, node in _nodes(vnfd_dict).items():
        image = (node.get("properties") or {}).get("sw_image_data") or {}
        if "name" in image:
            images[name] = image["name"]
    return images


# -- request -----------------------------------------------------------------

def create_vdu_image_dict(grant_info):
    """Return {node: Glance id} of the images that the manager has made."""
    images = {}
    for name, resources in (grant_info or {}).items():
        for resource in resources:
            images[name] = resource.resource_identifier
    return images


def _ext_cps(inst_req_info):
    for link in inst_req_info.ext_virtual_links or []:
        for cp in link.ext_cps or []:
            yield link, cp


def create_cpd_vl_dict(base_hot_dict, inst_req_info):
    """Return {cpd: network id} of the external CPs that a HOT has.

    create_final_param_dict understands these plain ids as well.
    """
    names = set()
    for hot in (base_hot_dict or {}).values():
        if isinstance(hot, dict):
            names.update(hot.get("resources") or {})
    return {cp.cpd_id: link.resource_id
            for link, cp in _ext_cps(inst_req_info) if cp.cpd_id in names}


def create_network_dict(inst_req_info, param_dict):
    """Return {cpd: {network, fixed_ips}} of the external CPs in nfv.CP."""
    wanted = ((param_dict or {}).get("nfv") or {}).get("CP") or {}
    return {cp.cpd_id: {"network": link.resource_id,
                        "fixed_ips": _fixed_ips(cp)}
            for link, cp in _ext_cps(inst_req_info) if cp.cpd_id in wanted}


def _fixed_ips(cp):
    fixed = []
    for config in cp.cp_config or []:
        for protocol in config.cp_protocol_data or []:
            ethernet = protocol.ip_over_ethernet
            if ethernet is None:  # only the layer protocol is given
                continue
            for address in ethernet.ip_addresses or []:
                entry = {}
                if address.subnet_id:
                    entry["subnet"] = address.subnet_id
                if address.fixed_addresses:
                    entry["ip_address"] = address.fixed_addresses[-1]
                if entry:
                    fixed.append(entry)
    return fixed


def create_final_param_dict(param_dict, vdu_flavor_dict,
                            vdu_image_dict, cpd_vl_dict):
    """Return param_dict with flavors, images and networks filled in.

    A CP that cpd_vl_dict does not have stays as it is.
    """
    final = copy.deepcopy(param_dict)
    for name, vdu in final["nfv"]["VDU"].items():
        vdu["flavor"] = (vdu_flavor_dict or {}).get(name)
        vdu["image"] = (vdu_image_dict or {}).get(name)
    for name, cp in final["nfv"]["CP"].items():
        network = (cpd_vl_dict or {}).get(name)
        if isinstance(network, str):
            cp["network"] = network
        elif isinstance(network, dict):
            for key in ("network", "fixed_ips"):
                if key in network:
                    cp[key] = copy.deepcopy(network[key])
    return final


def get_diff_base_hot_param_from_api(base_hot_dict, inst_req_info):
    """Return the parameters of the top HOT that additionalParams gives."""
    top = (base_hot_dict or {}).get("heat_template") or {}
    given = inst_req_info.additional_params or {}
    return {name: given[name]
            for name in (top.get("parameters") or {}) if given.get(name)}


# -- scaling groups ----------------------------------------------------------

def _scale_aspects(vnfd_dict):
    """Return {aspect: {vdu, num, initial_num, max}} and the levels."""
    topology = (vnfd_dict or {}).get("topology_template") or {}
    policies = topology.get("policies") or []
    if isinstance(policies, dict):
        policies = [{name: policy} for name, policy in policies.items()]
    aspects, initial, levels, default = {}, [], {}, None
    for entry in policies:
        for policy in entry.values():
            kind = policy.get("type")
            properties = policy.get("properties") or {}
            targets = policy.get("targets") or []
            if kind == "tosca.policies.nfv.VduScalingAspectDeltas":
                deltas = list((properties.get("deltas") or {}).values())
                aspects[properties.get("aspect")] = {
                    "vdu": targets,
                    "num": deltas[-1]["number_of_instances"] if deltas else 1,
                    "initial_num": 1,
                }
            elif kind == "tosca.policies.nfv.VduInitialDelta":
                delta = properties.get("initial_delta") or {}
                initial.append((targets, delta.get("number_of_instances", 1)))
            elif kind == "tosca.policies.nfv.InstantiationLevels":
                levels = properties.get("levels") or {}
                default = properties.get("default_level")
    for aspect in aspects.values():
        for targets, number in initial:
            if set(targets) & set(aspect["vdu"]):
                aspect["initial_num"] = number
    if default is None and len(levels) == 1:
        default = next(iter(levels))
    return aspects, levels, default


def _groups(base_hot_dict):
    top = (base_hot_dict or {}).get("heat_template") or {}
    return [name for name, resource in (top.get("resources") or {}).items()
            if isinstance(resource, dict) and resource.get("type") == _GROUP]


def create_desired_capacity_dict(base_hot_dict, vnfd_dict, inst_req_info):
    """Return {aspect: members at the requested instantiation level}."""
    aspects, levels, default = _scale_aspects(vnfd_dict)
    level = levels.get(inst_req_info.instantiation_level_id or default) or {}
    info = level.get("scale_info") or {}
    return {name: aspects[name]["initial_num"] + aspects[name]["num"] *
            (info.get(name) or {}).get("scale_level", 0)
            for name in _groups(base_hot_dict) if name in aspects}


def get_desired_capacity_dict(base_hot_dict, vnfd_dict, inst_vnf_info):
    """Return {aspect: members at the current scale level}."""
    aspects, _, _ = _scale_aspects(vnfd_dict)
    current = {status.aspect_id: status.scale_level
               for status in inst_vnf_info.scale_status or []}
    return {name: aspects[name]["initial_num"] + aspects[name]["num"] *
            current.get(name, 0)
            for name in _groups(base_hot_dict) if name in aspects}
