package kubernetes

import (
	"cmp"
	"slices"
)

// The ranks of objects: what others need comes first.
const (
	rankNamespace = iota
	rankDefinition
	rankLimits
	rankRights
	rankConfig
	rankStorage
	rankNetwork
	rankWorkload
	rankRest
	rankWaits = rankDefinition // up to here, a rank is ready before the next is applied
)

var ranks = map[string]int{
	"Namespace": rankNamespace,
	"apiextensions.k8s.io/CustomResourceDefinition": rankDefinition,
	"scheduling.k8s.io/PriorityClass":               rankLimits,
	"node.k8s.io/RuntimeClass":                      rankLimits,
	"ResourceQuota":                                 rankLimits,
	"LimitRange":                                    rankLimits,
	"ServiceAccount":                                rankRights,
	"rbac.authorization.k8s.io/ClusterRole":         rankRights,
	"rbac.authorization.k8s.io/Role":                rankRights,
	"rbac.authorization.k8s.io/ClusterRoleBinding":  rankRights,
	"rbac.authorization.k8s.io/RoleBinding":         rankRights,
	"ConfigMap":                                     rankConfig,
	"Secret":                                        rankConfig,
	"storage.k8s.io/StorageClass":                   rankStorage,
	"storage.k8s.io/CSIDriver":                      rankStorage,
	"PersistentVolume":                              rankStorage,
	"PersistentVolumeClaim":                         rankStorage,
	"networking.k8s.io/NetworkPolicy":               rankNetwork,
	"Service":                                       rankNetwork,
	"Endpoints":                                     rankNetwork,
	"discovery.k8s.io/EndpointSlice":                rankNetwork,
	"PodTemplate":                                   rankWorkload,
	"apps/ControllerRevision":                       rankWorkload,
	"policy/PodDisruptionBudget":                    rankWorkload,
	"Pod":                                           rankWorkload,
	"ReplicationController":                         rankWorkload,
	"apps/ReplicaSet":                               rankWorkload,
	"apps/Deployment":                               rankWorkload,
	"apps/DaemonSet":                                rankWorkload,
	"apps/StatefulSet":                              rankWorkload,
	"batch/Job":                                     rankWorkload,
	"batch/CronJob":                                 rankWorkload,
}

// rank returns an object's place: kinds that are not known, those of CRDs among them, come last.
func rank(o *object) int {
	if r, ok := ranks[o.groupKind()]; ok {
		return r
	}
	return rankRest
}

// inner orders the kinds of one rank.
var inner = map[string]int{"ServiceAccount": -2, "rbac.authorization.k8s.io/ClusterRole": -1, "rbac.authorization.k8s.io/Role": -1,
	"storage.k8s.io/StorageClass": -2, "storage.k8s.io/CSIDriver": -2, "PersistentVolume": -1}

// sorted orders objects by what others need; of one kind, those of the manifests' order.
func sorted[T any](list []T, of func(T) *object) {
	slices.SortStableFunc(list, func(a, b T) int {
		return cmp.Or(cmp.Compare(rank(of(a)), rank(of(b))), cmp.Compare(inner[of(a).groupKind()], inner[of(b).groupKind()]))
	})
}

// waves returns the order in which objects are removed: what uses others goes, and is gone, before what is used.
func waves(list []object) [][]object {
	by := map[int][]object{}
	for _, o := range list {
		if !o.Once {
			by[wave(&o)] = append(by[wave(&o)], o)
		}
	}
	out := make([][]object, waveCount)
	for n := range out {
		out[n] = by[n]
	}
	return out
}

// The waves of a removal.
const (
	waveRest       = iota // custom resources first: their controllers may be among the workloads
	waveWorkload          // then what runs
	waveClaims            // then the claims that StatefulSets have left: found when it is their turn
	waveUsed              // then what was used
	waveDefinition        // and what was defined
	waveNamespace
	waveCount
)

func wave(o *object) int {
	switch rank(o) {
	case rankRest:
		return waveRest
	case rankWorkload:
		return waveWorkload
	case rankDefinition:
		return waveDefinition
	case rankNamespace:
		return waveNamespace
	default:
		return waveUsed
	}
}

// ownsOthers tells whether objects of the kind may own others, which are to go before they do.
func ownsOthers(o *object) bool {
	if w := wave(o); w == waveUsed || w == waveDefinition || w == waveNamespace {
		return false
	}
	return o.groupKind() != "Pod"
}
