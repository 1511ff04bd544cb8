package kubernetes

import (
	"encoding/base64"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

func vnfcIs(id string) func(sol003.VnfcResourceInfo) bool {
	return func(v sol003.VnfcResourceInfo) bool { return v.Id == id }
}

// sameData tells whether two ConfigMaps or Secrets hold the same.
func sameData(a, b *unstructured.Unstructured) bool { return maps.Equal(dataOf(a), dataOf(b)) }

// dataOf returns what a ConfigMap or Secret holds, by its keys.
func dataOf(u *unstructured.Unstructured) map[string]string {
	out := map[string]string{}
	for _, field := range []string{"data", "binaryData", "stringData"} {
		given, _, _ := unstructured.NestedFieldNoCopy(u.Object, field)
		content, _ := given.(map[string]any)
		for key, v := range content {
			text, _ := v.(string)
			if field == "stringData" {
				text = base64.StdEncoding.EncodeToString([]byte(text))
			}
			out[key] = text
		}
	}
	return out
}

// usesAny tells whether a pod's spec mounts or reads one of the ConfigMaps and Secrets.
func usesAny(u *unstructured.Unstructured, of map[reference]bool, spec ...string) bool {
	if len(of) == 0 {
		return false
	}
	content, _, _ := unstructured.NestedFieldNoCopy(u.Object, spec...)
	return mentions(content, of)
}

// referring are the fields by which a pod's spec names ConfigMaps and Secrets, and what they name them by.
var referring = map[string]struct{ kind, name string }{
	"configMapRef": {"ConfigMap", "name"}, "configMapKeyRef": {"ConfigMap", "name"}, "configMap": {"ConfigMap", "name"},
	"secretRef": {"Secret", "name"}, "secretKeyRef": {"Secret", "name"}, "secret": {"Secret", "secretName"},
}

func mentions(v any, of map[reference]bool) bool {
	switch t := v.(type) {
	case []any:
		for _, e := range t {
			if mentions(e, of) {
				return true
			}
		}
	case map[string]any:
		for key, e := range t {
			if r, ok := referring[key]; ok {
				named, _ := e.(map[string]any)
				name, _ := named[r.name].(string)
				if name == "" {
					name, _ = named["name"].(string) // a projected volume's
				}
				if of[reference{kind: r.kind, name: name}] {
					return true
				}
			}
			if mentions(e, of) {
				return true
			}
		}
	}
	return false
}

// sameImages tells whether the containers that both have, by their names, have the same images.
func sameImages(a, b *unstructured.Unstructured, spec ...string) bool {
	is := imagesOf(b, spec...)
	for name, image := range imagesOf(a, spec...) {
		if was, ok := is[name]; ok && was != image {
			return false
		}
	}
	return true
}

func imagesOf(u *unstructured.Unstructured, spec ...string) map[string]string {
	out := map[string]string{}
	content, _, _ := unstructured.NestedFieldNoCopy(u.Object, spec...)
	pod, _ := content.(map[string]any)
	for _, field := range []string{"initContainers", "containers"} {
		list, _ := pod[field].([]any)
		for _, item := range list {
			container, _ := item.(map[string]any)
			name, _ := container["name"].(string)
			image, _ := container["image"].(string)
			out[name] = image
		}
	}
	return out
}
