package nfvotest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

// Package is a VNF package that the NFVO has.
type Package struct {
	Info sol003.VnfPkgInfo
	Zip  []byte
	// Failures is how many requests for the content are answered 500 first.
	Failures int
	// Cut is how many transfers break off in the middle first.
	Cut int
	// Stall has transfers stand still in the middle until the client goes away.
	Stall bool
	// Gate, when not nil, keeps transfers waiting until it is closed.
	Gate chan struct{}
}

type pkg struct {
	Package
	downloads int
}

// PackageInfo describes an onboarded and enabled package with its checksum.
func PackageInfo(id, vnfdID string, zip []byte) sol003.VnfPkgInfo {
	sum := sha256.Sum256(zip)
	return sol003.VnfPkgInfo{
		Id: id, VnfdId: vnfdID, OnboardingState: sol003.PackageOnboardingStateTypeOnboarded,
		OperationalState: sol003.PackageOperationalStateTypeEnabled, UsageState: sol003.PackageUsageStateTypeNotInUse,
		Checksum: &sol003.Checksum{Algorithm: "SHA-256", Hash: hex.EncodeToString(sum[:])},
	}
}

// Put makes the NFVO have a package; one with the same id goes.
func (n *NFVO) Put(p Package) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for k, old := range n.packages {
		if old.Info.Id == p.Info.Id {
			n.packages[k] = &pkg{Package: p}
			return
		}
	}
	n.packages = append(n.packages, &pkg{Package: p})
}

// Downloads tells how often the content of a package was asked for.
func (n *NFVO) Downloads(id string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p := n.find(id); p != nil {
		return p.downloads
	}
	return 0
}

// Listings tells how often packages were listed.
func (n *NFVO) Listings() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.listings
}

func (n *NFVO) find(id string) *pkg {
	for _, p := range n.packages {
		if p.Info.Id == id {
			return p
		}
	}
	return nil
}

// listPackages knows one filter, (eq,vnfdId,…); the checksum is left out, as lists do.
func (n *NFVO) listPackages(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	n.listings++
	m := n.manner
	n.mu.Unlock()
	if n.misbehave(w, r, m) {
		return
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	filter := query.Get("filter")
	want, ok := strings.CutPrefix(filter, "(eq,vnfdId,")
	if err != nil || filter != "" && (!ok || !strings.HasSuffix(want, ")")) {
		problem(w, http.StatusBadRequest, "a filter that is not known here: "+filter)
		return
	}
	want = strings.TrimSuffix(want, ")")
	if strings.HasPrefix(want, "'") {
		want = strings.ReplaceAll(strings.Trim(want, "'"), "''", "'")
	}
	list := []sol003.VnfPkgInfo{}
	n.mu.Lock()
	for _, p := range n.packages {
		if filter == "" || p.Info.VnfdId == want {
			info := p.Info
			info.Checksum = nil
			list = append(list, info)
		}
	}
	n.mu.Unlock()
	answer(w, http.StatusOK, list)
}

func (n *NFVO) getPackage(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	p := n.find(r.PathValue("id"))
	n.mu.Unlock()
	if p == nil {
		problem(w, http.StatusNotFound, "no such package")
		return
	}
	answer(w, http.StatusOK, p.Info)
}

func (n *NFVO) getContent(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	p := n.find(r.PathValue("id"))
	if p == nil {
		n.mu.Unlock()
		problem(w, http.StatusNotFound, "no such package")
		return
	}
	p.downloads++
	fail, cut := p.Failures > 0, p.Failures == 0 && p.Cut > 0
	switch {
	case fail:
		p.Failures--
	case cut:
		p.Cut--
	}
	stall, gate, zip := p.Stall, p.Gate, p.Zip
	n.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-r.Context().Done():
			return
		}
	}
	switch {
	case fail:
		problem(w, http.StatusInternalServerError, "a bad day")
	case cut, stall:
		w.Header().Set("Content-Type", "application/zip")
		w.Header().Set("Content-Length", strconv.Itoa(len(zip)))
		_, _ = w.Write(zip[:len(zip)/2])
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		if stall {
			<-r.Context().Done()
		}
		panic(http.ErrAbortHandler)
	default:
		w.Header().Set("Content-Type", "application/zip")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(zip))
	}
}
