#!/bin/sh
# Run on a node by the cluster driver, once the node is up.
echo "install_k8s_cluster: this image brings Kubernetes with it, there is nothing to install"
