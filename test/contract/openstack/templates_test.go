package openstack_test

import "fmt"

// value is a stack that costs nothing: a parameter that falls back to a default, and what it holds.
const value = `
parameters:
  a: {type: string, default: one}
  b: {type: json, default: {}}
resources:
  v:
    type: OS::Heat::Value
    properties: {value: {get_param: a}}
outputs:
  a: {value: {get_param: a}}
  b: {value: {get_param: b}}
`

// slow is a stack of one resource that takes some seconds for its creation, and as long for an update of its value.
func slow(seconds int, value string) string {
	return fmt.Sprintf(`
resources:
  t:
    type: OS::Heat::TestResource
    properties: {value: %q, action_wait_secs: {create: %d, update: %d, delete: 0}}
`, value, seconds, seconds)
}

// plugged is a server on a port of its own in net0.
const plugged = `
parameters:
  flavor: {type: string, default: m1.tiny}
  image: {type: string, default: cirros-0.5.2-x86_64-disk}
  network: {type: string, default: net0}
resources:
  cp:
    type: OS::Neutron::Port
    properties: {network: {get_param: network}}
  vdu:
    type: OS::Nova::Server
    properties:
      flavor: {get_param: flavor}
      image: {get_param: image}
      networks: [{port: {get_resource: cp}}]
`

// withVolume is a server on a port, with a volume.
const withVolume = `
resources:
  cp:
    type: OS::Neutron::Port
    properties: {network: net0}
  storage:
    type: OS::Cinder::Volume
    properties: {size: 1}
  vdu:
    type: OS::Nova::Server
    properties:
      flavor: m1.tiny
      image: cirros-0.5.2-x86_64-disk
      networks: [{port: {get_resource: cp}}]
      block_device_mapping_v2: [{volume_id: {get_resource: storage}, device_name: vdb, boot_index: -1}]
`

// group is an AutoScalingGroup of members that cost nothing, with policies; capacity is a line that tells its size, or empty.
func group(low, high int, capacity, member string) string {
	if capacity != "" {
		capacity = "desired_capacity: " + capacity
	}
	return fmt.Sprintf(`
parameters:
  size: {type: number, default: 2}
resources:
  g:
    type: OS::Heat::AutoScalingGroup
    properties:
      min_size: %d
      max_size: %d
      %s
      resource: %s
  out:
    type: OS::Heat::ScalingPolicy
    properties: {auto_scaling_group_id: {get_resource: g}, adjustment_type: change_in_capacity, scaling_adjustment: 1}
  in:
    type: OS::Heat::ScalingPolicy
    properties: {auto_scaling_group_id: {get_resource: g}, adjustment_type: change_in_capacity, scaling_adjustment: -1}
`, low, high, capacity, member)
}

// memberFile is a group's member as a template of its own, which costs nothing.
const memberFile = `heat_template_version: 2016-10-14
parameters:
  text: {type: string, default: x}
resources:
  part:
    type: OS::Heat::TestResource
    properties: {value: {get_param: text}}
`

// vnfcFile is a group's member that has a server on a port.
const vnfcFile = `heat_template_version: 2016-10-14
parameters:
  flavor: {type: string, default: m1.tiny}
resources:
  cp:
    type: OS::Neutron::Port
    properties: {network: net0}
  vdu:
    type: OS::Nova::Server
    properties:
      flavor: {get_param: flavor}
      image: cirros-0.5.2-x86_64-disk
      networks: [{port: {get_resource: cp}}]
`
