package lcm

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// counter returns ids 1, 2, 3 …
func counter() func() string {
	n := 0
	return func() string { n++; return fmt.Sprint(n) }
}

func twoVDUs() *vnfd.Flavour {
	return &vnfd.Flavour{
		ID:       "simple",
		VDUs:     []vnfd.VDU{{Name: "VDU1", Storages: []string{"Disk"}}, {Name: "VDU2"}},
		Storages: []vnfd.VirtualStorage{{Name: "Disk"}},
		CPs: []vnfd.CP{
			{Name: "CP1", VDU: "VDU1"}, {Name: "CP2", VDU: "VDU1", VirtualLink: "internalVL"}, {Name: "CP3", VDU: "VDU2", VirtualLink: "internalVL"},
		},
		VirtualLinks: []vnfd.VirtualLink{{Name: "internalVL"}},
	}
}

func TestNewInstantiatedInfo(t *testing.T) {
	var req sol003.InstantiateVnfRequest
	if err := json.Unmarshal([]byte(`{"flavourId":"simple",
		"extVirtualLinks":[{"id":"net0","resourceId":"NET","extCps":[{"cpdId":"CP1","cpConfig":[{"linkPortId":"lp1","cpProtocolData":[{"layerProtocol":"IP_OVER_ETHERNET","ipOverEthernet":{"ipAddresses":[{"type":"IPV4","numDynamicAddresses":1,"subnetId":"SUB"}]}}]}]}],
			"extLinkPorts":[{"id":"lp1","resourceHandle":{"resourceId":"PORT"}}]}],
		"extManagedVirtualLinks":[{"id":"m1","virtualLinkDescId":"internalVL","resourceId":"MNET"}],
		"additionalParams":{"k":"v"}}`), &req); err != nil {
		t.Fatal(err)
	}
	info, err := NewInstantiatedInfo(twoVDUs(), &req, counter())
	if err != nil {
		t.Fatal(err)
	}
	if len(info.VnfcResourceInfo) != 2 || len(info.VirtualStorageResourceInfo) != 1 {
		t.Fatalf("%d VNFCs, %d storages", len(info.VnfcResourceInfo), len(info.VirtualStorageResourceInfo))
	}
	vdu1 := info.VnfcResourceInfo[0]
	if vdu1.StorageResourceIds[0] != info.VirtualStorageResourceInfo[0].Id {
		t.Error("the storage is not the VNFC's")
	}
	if vdu1.VnfcCpInfo[0].VnfExtCpId != "lp1" || vdu1.VnfcCpInfo[0].VnfLinkPortId == "" {
		t.Errorf("CP1: %+v", vdu1.VnfcCpInfo[0])
	}
	// One link of the VNFD, with a port for CP2 and one for CP3; one external, with a port for CP1 that is given.
	links := info.VnfVirtualLinkResourceInfo
	if len(links) != 2 || len(links[0].VnfLinkPorts) != 2 || len(links[1].VnfLinkPorts) != 1 {
		t.Fatalf("links %+v", links)
	}
	if links[0].NetworkResource.ResourceId != "MNET" || links[1].NetworkResource.ResourceId != "NET" || links[1].VnfVirtualLinkDescId != "net0" {
		t.Errorf("networks %+v", links)
	}
	if links[1].VnfLinkPorts[0].ResourceHandle.ResourceId != "lp1" {
		t.Errorf("the given port is not taken: %+v", links[1].VnfLinkPorts[0])
	}
	if cp := info.ExtCpInfo[0]; cp.AssociatedVnfcCpId != vdu1.Id || cp.ExtLinkPortId != "lp1" || !cp.CpProtocolInfo[0].IpOverEthernet.IpAddresses[0].IsDynamic {
		t.Errorf("extCpInfo %+v", cp)
	}
	if ext := info.ExtVirtualLinkInfo[0]; ext.ExtLinkPorts[0].CpInstanceId != info.ExtCpInfo[0].Id {
		t.Errorf("extVirtualLinkInfo %+v", ext)
	}
	if m := info.ExtManagedVirtualLinkInfo[0]; m.VnfVirtualLinkDescId != "internalVL" || len(m.VnfLinkPorts) != 2 {
		t.Errorf("extManagedVirtualLinkInfo %+v", m)
	}
}

// TestMissingIPOverEthernet: the user guide's own request bodies leave ipOverEthernet out.
func TestMissingIPOverEthernet(t *testing.T) {
	req := &sol003.InstantiateVnfRequest{ExtVirtualLinks: []sol003.ExtVirtualLinkData{{Id: "n", ResourceId: "N", ExtCps: []sol003.VnfExtCpData{
		{CpdId: "CP1", CpConfig: []sol003.VnfExtCpConfig{{CpProtocolData: []sol003.CpProtocolData{{LayerProtocol: sol003.LayerProtocolIPOverEthernet}}}}},
	}}}}
	info, err := NewInstantiatedInfo(twoVDUs(), req, counter())
	if err != nil {
		t.Fatal(err)
	}
	want := []sol003.CpProtocolInfo{{LayerProtocol: sol003.LayerProtocolIPOverEthernet}}
	if d := cmp.Diff(want, info.VnfcResourceInfo[0].VnfcCpInfo[0].CpProtocolInfo); d != "" {
		t.Error(d)
	}
}

func drawInfo(t *rapid.T, label string) *sol003.InstantiatedVnfInfo {
	info := &sol003.InstantiatedVnfInfo{}
	for id, res := range rapid.MapOf(rapid.SampledFrom([]string{"a", "b", "c", "d"}), rapid.SampledFrom([]string{"", "r1", "r2"})).Draw(t, label) {
		info.VnfcResourceInfo = append(info.VnfcResourceInfo, sol003.VnfcResourceInfo{Id: id, ComputeResource: sol003.ResourceHandle{ResourceId: res}})
	}
	return info
}

// TestResourceChanges: applying the changes to what was before gives what is after.
func TestResourceChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := drawInfo(t, "before"), drawInfo(t, "after")
		have := map[string]string{}
		want := map[string]string{}
		for _, v := range before.VnfcResourceInfo {
			if r := v.ComputeResource.ResourceId; r != "" {
				have[v.Id] = r
			}
		}
		for _, v := range after.VnfcResourceInfo {
			if r := v.ComputeResource.ResourceId; r != "" {
				want[v.Id] = r
			}
		}
		if c := ResourceChanges(before, after); c != nil {
			for _, a := range c.AffectedVnfcs {
				_, existed := have[a.Id]
				switch a.ChangeType {
				case sol003.ChangeTypeAdded:
					if existed {
						t.Fatalf("%s is ADDED but was there", a.Id)
					}
					have[a.Id] = a.ComputeResource.ResourceId
				case sol003.ChangeTypeModified:
					if !existed {
						t.Fatalf("%s is MODIFIED but was not there", a.Id)
					}
					have[a.Id] = a.ComputeResource.ResourceId
				case sol003.ChangeTypeRemoved:
					delete(have, a.Id)
				}
			}
		}
		if d := cmp.Diff(want, have); d != "" {
			t.Fatal(d)
		}
	})
}

func TestRedact(t *testing.T) {
	in := map[string]any{
		"password": "p", "Bearer_Token": "t", "nested": map[string]any{"client_secret": "s", "ok": 1}, "list": []any{map[string]any{"apiKey": "k"}},
		"oidc_token_url": "https://x", "empty_password": "", "user": "u", "proxy": "http://u:p@ss:w/o@h:80/ and ftp://a:b@c", "plain": "a:b@c http://h/x@y",
	}
	want := map[string]any{
		"password": Redacted, "Bearer_Token": Redacted, "nested": map[string]any{"client_secret": Redacted, "ok": 1}, "list": []any{map[string]any{"apiKey": Redacted}},
		"oidc_token_url": "https://x", "empty_password": "", "user": "u",
		"proxy": "http://u:" + Redacted + "@ss:w/o@h:80/ and ftp://a:" + Redacted + "@c", "plain": "a:b@c http://h/x@y",
	}
	if d := cmp.Diff(want, RedactMap(in)); d != "" {
		t.Error(d)
	}
	if in["password"] != "p" {
		t.Error("the input was changed")
	}
	values := []any{"db.password=s3cr3t", "a=b,auth.token=t\\,oken,c=d", "secrets={one,two},x=1", "tokens[0]=first", "plain=a,b", "password=", "token"}
	hidden := []any{"db.password=" + Redacted, "a=b,auth.token=" + Redacted + ",c=d", "secrets=" + Redacted + ",x=1", "tokens[0]=" + Redacted, "plain=a,b", "password=", "token"}
	if d := cmp.Diff(hidden, Redact(values)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"s3cr3t", `t\,oken`, "t,oken", "{one,two}", "first"}, Secrets(values)); d != "" {
		t.Error(d)
	}
	if s := fmt.Sprintf("%v %+v %#v %s", Secret("x"), Secret("x"), Secret("x"), Secret("x")); s != Redacted+" "+Redacted+" "+Redacted+" "+Redacted {
		t.Error(s)
	}
	if raw, _ := json.Marshal(map[string]any{"a": Secret("x")}); string(raw) != `{"a":"[redacted]"}` {
		t.Error(string(raw))
	}
}

// TestRemade: what has been made again counts as changed, whether it has another id in the VIM or not.
func TestRemade(t *testing.T) {
	t.Parallel()
	vnfc := func(id, resource string) sol003.VnfcResourceInfo {
		return sol003.VnfcResourceInfo{Id: id, VduId: "v", ComputeResource: sol003.ResourceHandle{ResourceId: resource}}
	}
	before := &sol003.InstantiatedVnfInfo{VnfcResourceInfo: []sol003.VnfcResourceInfo{vnfc("a", "store-0"), vnfc("b", "web-1"), vnfc("c", "web-2"), vnfc("d", "")}}
	after := &sol003.InstantiatedVnfInfo{VnfcResourceInfo: []sol003.VnfcResourceInfo{vnfc("a", "store-0"), vnfc("b", "web-3"), vnfc("c", "web-2"), vnfc("d", "")}}
	got := map[string]sol003.ChangeType{}
	for _, a := range remade(ResourceChanges(before, after), after, []string{"a", "b", "d"}).AffectedVnfcs {
		if got[a.Id] != "" {
			t.Errorf("VNFC %s is told twice", a.Id)
		}
		got[a.Id] = a.ChangeType
	}
	if diff := cmp.Diff(map[string]sol003.ChangeType{"a": sol003.ChangeTypeModified, "b": sol003.ChangeTypeModified}, got); diff != "" {
		t.Errorf("affected VNFCs (- want, + got):\n%s", diff)
	}
	if c := remade(ResourceChanges(after, after), after, []string{"a"}); c == nil || len(c.AffectedVnfcs) != 1 {
		t.Errorf("a heal that changes no id has changed %+v", c)
	}
	if c := remade(nil, after, nil); c != nil {
		t.Errorf("nothing has changed %+v", c)
	}
}
