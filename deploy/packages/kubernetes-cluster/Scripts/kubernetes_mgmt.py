# The name mgmt-drivers-kubernetes in the VNFD is served by the VNF manager's built-in cluster driver. A VNFD has to
# name a file as the driver's artifact; this is it, and nothing runs it.
