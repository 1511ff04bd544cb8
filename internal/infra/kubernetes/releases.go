package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// release is a Helm release of a VNF.
type release struct {
	Name    string `json:"name"`
	Chart   string `json:"chart"` // for people
	Version string `json:"version,omitempty"`
	Digest  string `json:"digest"` // SHA-256 of the chart's archive
	// Since is when its first revision was made; "" while none is known to be ours.
	Since string `json:"since,omitempty"`
}

// What helm marks a release's objects with, and a release's Secret; what we mark that with are instanceLabel and opOccAnnotation.
const (
	releaseAnnotation   = "meta.helm.sh/release-name"
	namespaceAnnotation = "meta.helm.sh/release-namespace"
	managedLabel        = "app.kubernetes.io/managed-by"
	policyAnnotation    = "helm.sh/resource-policy"
	keepPolicy          = "keep"
)

// release returns the release of the name, nil for none.
func (s *infra) release(name string) *release {
	for n := range s.Releases {
		if s.Releases[n].Name == name {
			return &s.Releases[n]
		}
	}
	return nil
}

// whole is all that is left of the instance in the cluster, with what charts' hooks have left.
func (s *infra) whole() *infra {
	out := s.all()
	out.Objects = slices.Concat(out.Objects, s.Hooks)
	return out
}

// of notes which releases the VNF is made of, by its charts; those that were there before stay as old as they are.
func (s *infra) of(p *params, before *infra) {
	s.Releases, s.Hooks = slices.Clone(p.releases), slices.Clone(p.hooks)
	for n := range s.Releases {
		if was := before.release(s.Releases[n].Name); was != nil {
			s.Releases[n].Since = was.Since
		}
	}
	for n := range s.Hooks {
		o := &s.Hooks[n]
		if at := slices.IndexFunc(before.Hooks, func(was object) bool { return was.same(o) && was.Release == o.Release }); at >= 0 {
			o.UID, o.Noted = before.Hooks[at].UID, before.Hooks[at].Noted
		}
	}
	s.date()
}

// since notes when a release was made, "" when it is not ours.
func (s *infra) since(name, at string) {
	if r := s.release(name); r != nil {
		r.Since = at
	}
	s.date()
}

// unnote forgets what there is of a release's hooks: they run anew when it is installed.
func (s *infra) unnote(name string) {
	for n := range s.Hooks {
		if o := &s.Hooks[n]; o.Release == name {
			o.UID, o.Noted = "", false
		}
	}
}

// date tells the objects how old their releases are.
func (s *infra) date() {
	for _, list := range [][]object{s.Objects, s.Going, s.Hooks} {
		for n := range list {
			if r := s.release(list[n].Release); r != nil {
				list[n].Since = r.Since
			}
		}
	}
}

// mine tells whether what is there of an object is the instance's: it has its label, or is one of a release that is, as helm marks
// it. What a hook has made is not marked; it is the release's when it is one, and no older.
func (o *object) mine(u *unstructured.Unstructured, ns, instanceID string) bool {
	if o.Release == "" {
		return ours(u, instanceID)
	}
	if o.Since == "" {
		return false
	}
	if o.Hook || o.Claim {
		return o.young(u) && (!o.Noted || string(u.GetUID()) == o.UID)
	}
	return released(u, o.Release, ns)
}

// young tells whether what is there of a hook, or of a StatefulSet's claim, is one, and no older than the release.
func (o *object) young(u *unstructured.Unstructured) bool {
	since, err := time.Parse(time.RFC3339, o.Since)
	if err != nil || u.GetCreationTimestamp().Time.Before(since) {
		return false
	}
	return o.Claim && includes(u.GetLabels(), o.Selector) || o.Hook && u.GetAnnotations()[hookAnnotation] != ""
}

// released tells whether helm has marked an object as a release's.
func released(u *unstructured.Unstructured, name, ns string) bool {
	a := u.GetAnnotations()
	return a[releaseAnnotation] == name && a[namespaceAnnotation] == ns && u.GetLabels()[managedLabel] == "Helm"
}

// kept tells whether a chart says that an object outlives its release.
func (o *object) kept(u *unstructured.Unstructured) bool {
	return o.Release != "" && strings.EqualFold(u.GetAnnotations()[policyAnnotation], keepPolicy)
}

func includes(labels, selector map[string]string) bool {
	for key, v := range selector {
		if labels[key] != v {
			return false
		}
	}
	return len(selector) > 0
}

// labelsIn returns the texts of a map.
func labelsIn(content map[string]any, fields ...string) map[string]string {
	out, _, _ := unstructured.NestedStringMap(content, fields...)
	return out
}

// revision is a revision of a release, as its Secret's metadata tell.
type revision struct {
	number   int
	status   string
	instance string // that has made it, "" for somebody else
	mark     string // which step of which operation
	created  string
}

// The statuses of a revision.
const (
	statusDeployed    = "deployed"
	statusSuperseded  = "superseded"
	pendingPrefix     = "pending-"
	goingPrefix       = "uninstall" // uninstalling, uninstalled
	secretsResource   = "secrets"
	metadataListsOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)

// revisions returns the revisions that there are of a release, the first first; whoever has made them.
func (c *cluster) revisions(ctx context.Context, ns, name string) ([]revision, error) {
	ctx, cancel := c.call(ctx)
	defer cancel()
	raw, err := c.raw.Get().AbsPath("/api/v1/namespaces", ns, secretsResource).Param("labelSelector", "owner=helm,name="+name).
		SetHeader("Accept", metadataListsOnly).Do(ctx).Raw()
	var list struct {
		Items []struct {
			Metadata metav1.ObjectMeta `json:"metadata"`
		} `json:"items"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &list)
	}
	if isGone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, c.wrap("find out about release "+name+" in namespace "+ns, err)
	}
	var out []revision
	for _, i := range list.Items {
		labels := i.Metadata.Labels
		number, err := strconv.Atoi(labels["version"])
		if err != nil {
			continue // none of helm's
		}
		out = append(out, revision{
			number: number, status: labels["status"], instance: labels[instanceLabel], mark: labels[opOccAnnotation],
			created: i.Metadata.CreationTimestamp.UTC().Format(time.RFC3339),
		})
	}
	slices.SortFunc(out, func(a, b revision) int { return cmp.Compare(a.number, b.number) })
	return out, nil
}

// standing returns the last revision that has been deployed, nil when none has.
func standing(list []revision) *revision {
	for n := len(list) - 1; n >= 0; n-- {
		if list[n].status == statusDeployed {
			return &list[n]
		}
	}
	for n := len(list) - 1; n >= 0; n-- {
		if list[n].status == statusSuperseded {
			return &list[n]
		}
	}
	return nil
}

// rightsForReleases are the rights that helm needs to keep releases.
func rightsForReleases(s *infra) []right {
	if len(s.Releases) == 0 {
		return nil
	}
	var out []right
	for _, verb := range []string{"get", "list", "create", "update", "delete"} {
		out = append(out, right{verb, "", secretsResource, "", s.Namespace})
	}
	return append(out, rightsFor(s.Hooks, s.Namespace)...)
}

// releases compares the releases with what is recorded.
func (v *comparison) releases(ctx context.Context) error {
	for _, r := range v.infra.Releases {
		list, err := v.cluster.revisions(ctx, v.infra.Namespace, r.Name)
		if err != nil {
			return err
		}
		diff := lcm.Difference{
			Part: lcm.PartVNF, Recorded: fmt.Sprintf("Helm release %s in namespace %s", r.Name, v.infra.Namespace), Mend: lcm.HealOf(),
			Resource: &sol003.ResourceHandle{VimConnectionId: v.Target.ID, ResourceId: r.Name, VimLevelResourceType: "HelmRelease"},
		}
		switch n := len(list) - 1; {
		case n < 0:
			diff.Kind, diff.Found = lcm.DifferenceMissing, "no such release"
		case list[n].instance != v.Instance.ID:
			diff.Kind, diff.Found = lcm.DifferenceChanged, "another release of that name"
			diff.Mend.First = "uninstall " + diff.Recorded
		case list[n].status != statusDeployed:
			diff.Kind, diff.Found = lcm.DifferenceFailed, "its status is "+list[n].status
		default:
			continue
		}
		v.out = append(v.out, diff)
	}
	return nil
}
