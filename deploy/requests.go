package deploy

// Flavours lists the deployment flavours of a sample package, sorted; none for a package that [Names] does not list.
func Flavours(name string) []string {
	return map[string][]string{"kubernetes-cluster": {"complex", "simple"}, "multi-port": {"default"}, "web-cnf": {"default"}}[name]
}

// InstantiateRequest returns an InstantiateVnfRequest (ETSI GS NFV-SOL 003 v2.6.1 §5.5.2.4) that instantiates a flavour
// of a sample package, ready for json.Marshal: on the networks that the simulated OpenStack has from the start or, of a
// CNF, in the namespace "default" of a cluster, unless additionalParams are given another one. Only vimConnectionInfo is
// left to add, unless the default VIM is meant. It is nil for a package that [Names] does not list.
func InstantiateRequest(name, flavour string) map[string]any {
	switch name {
	case "kubernetes-cluster":
		return map[string]any{
			"flavourId": flavour,
			"additionalParams": map[string]any{
				"k8s_cluster_installation_param": clusterParams(flavour),
				"lcm-operation-user-data":        "./UserData/k8s_cluster_user_data.py",
				"lcm-operation-user-data-class":  "KubernetesClusterUserData",
			},
			"extVirtualLinks": []any{
				externalLink("net0_master", "net0", "masterNode_CP1"),
				externalLink("net0_worker", "net0", "workerNode_CP2"),
			},
		}
	case "multi-port":
		return map[string]any{
			"flavourId": flavour,
			"additionalParams": map[string]any{
				"lcm-operation-user-data":       "./UserData/multi_port_user_data.py",
				"lcm-operation-user-data-class": "MultiPortUserData",
			},
			"extVirtualLinks": []any{
				externalLink("access", "net0", "gateway_CP1", "worker_CP1"),
				externalLink("management", "net_mgmt", "gateway_CP2", "worker_CP2"),
			},
		}
	case "web-cnf":
		return map[string]any{
			"flavourId": flavour,
			"additionalParams": map[string]any{
				"lcm-kubernetes-def-files": []any{"Files/kubernetes/web.yaml", "Files/kubernetes/store.yaml"},
			},
		}
	}
	return nil
}

// clusterParams is what the cluster driver is told: where its nodes are in the stack, and how to log in to them.
func clusterParams(flavour string) map[string]any {
	node := func(aspect, cp string) map[string]any {
		return map[string]any{"aspect_id": aspect, "ssh_cp_name": cp, "nic_cp_name": cp, "username": "ubuntu", "password": "ubuntu"}
	}
	master := node("master_instance", "masterNode_CP1")
	master["pod_cidr"], master["cluster_cidr"], master["cluster_cp_name"] = "192.168.0.0/16", "10.199.187.0/24", "masterNode_CP1"
	if flavour == "complex" {
		master["cluster_cp_name"] = "vip_CP"
	}
	return map[string]any{
		"script_path": "Scripts/install_k8s_cluster.sh",
		"vim_name":    "kubernetes_vim_" + flavour,
		"master_node": master,
		"worker_node": node("worker_instance", "workerNode_CP2"),
	}
}

// externalLink is an ExtVirtualLinkData (§4.4.1.11) that connects CPs to a network, which gives them addresses.
func externalLink(id, network string, cpdIDs ...string) map[string]any {
	var cps []any
	for _, cpd := range cpdIDs {
		cps = append(cps, map[string]any{
			"cpdId":    cpd,
			"cpConfig": []any{map[string]any{"cpProtocolData": []any{map[string]any{"layerProtocol": "IP_OVER_ETHERNET"}}}},
		})
	}
	return map[string]any{"id": id, "resourceId": network, "extCps": cps}
}
