package kubernetes

import "testing"

func TestUsesAny(t *testing.T) {
	changed := map[reference]bool{{kind: "ConfigMap", name: "c"}: true, {kind: "Secret", name: "s"}: true}
	for spec, want := range map[string]bool{
		"{containers: [{name: a, envFrom: [{configMapRef: {name: c}}]}]}":                                      true,
		"{containers: [{name: a, env: [{name: x, valueFrom: {secretKeyRef: {name: s, key: k}}}]}]}":            true,
		"{volumes: [{name: v, configMap: {name: c}}]}":                                                         true,
		"{volumes: [{name: v, secret: {secretName: s}}]}":                                                      true,
		"{volumes: [{name: v, projected: {sources: [{secret: {name: s}}]}}]}":                                  true,
		"{volumes: [{name: v, secret: {secretName: c}}], containers: [{name: a, env: [{name: x, value: c}]}]}": false,
		"{}": false,
	} {
		i := doc(t, true, "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: "+spec+"}")
		if got := usesAny(i.Unstructured, changed, "spec"); got != want {
			t.Errorf("%s: %t", spec, got)
		}
	}
}

func TestSameDataAndImages(t *testing.T) {
	plain := doc(t, true, "{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {a: key1}}")
	coded := doc(t, true, "{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {a: a2V5MQ==}}")
	other := doc(t, true, "{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {a: a2V5Mg==}}")
	if !sameData(plain.Unstructured, coded.Unstructured) || sameData(plain.Unstructured, other.Unstructured) {
		t.Error("Secrets are not compared by what they hold")
	}
	pod := func(image string) item {
		return doc(t, true, "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: a, image: '"+image+"'}]}}")
	}
	if !sameImages(pod("x:1").Unstructured, pod("x:1").Unstructured, "spec") || sameImages(pod("x:2").Unstructured, pod("x:1").Unstructured, "spec") {
		t.Error("images are not compared")
	}
}
