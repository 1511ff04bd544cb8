package lcm

import (
	"encoding/json"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/vnfd"
)

// Package is a VNF package (SOL005 v2.6.1 §9.5.2.5) with what the manager needs beside its representation.
type Package struct {
	ID        string
	ProjectID string

	OnboardingState  sol003.PackageOnboardingStateType
	OperationalState sol003.PackageOperationalStateType
	UsageState       sol003.PackageUsageStateType // derived from the instances when read; never stored
	UserDefinedData  map[string]any

	// Set once ONBOARDED.
	Descriptor *vnfd.Descriptor
	Checksum   *sol003.Checksum // of the zip, sha512
	Images     []sol003.VnfPackageSoftwareImageInfo
	Artifacts  []sol003.VnfPackageArtifactInfo
	Entry      string // the entry definitions' path in the zip
	MetaPath   string // TOSCA.meta's path, or ""

	ContentID string                 // the stored zip, "" until uploaded
	Failure   *sol003.ProblemDetails // why the last onboarding went back to CREATED
	Source    *PackageSource         // where an upload from a URI comes from: sealed at rest

	Owner   string
	Fence   int64
	Version int64
	Created time.Time
}

// PackageSource is where a package is downloaded from (SOL005 v2.6.1 §9.5.2.4).
type PackageSource struct {
	AddressInformation string
	UserName           string
	Password           Secret
}

// sealedSource is a PackageSource on its way into a sealed column, the one place that sees the password.
type sealedSource struct{ AddressInformation, UserName, Password string }

// Plain returns the source with its password in clear, to be sealed.
func (s *PackageSource) Plain() ([]byte, error) {
	return json.Marshal(sealedSource{s.AddressInformation, s.UserName, s.Password.Reveal()})
}

// ParsePackageSource reads what Plain returned.
func ParsePackageSource(raw []byte) (*PackageSource, error) {
	var p sealedSource
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, err
	}
	return &PackageSource{p.AddressInformation, p.UserName, Secret(p.Password)}, nil
}

// Representation returns the package as the API shows it, without _links.
func (p *Package) Representation() *sol003.VnfPkgInfo {
	r := &sol003.VnfPkgInfo{
		Id: p.ID, OnboardingState: p.OnboardingState, OperationalState: p.OperationalState, UsageState: p.UsageState,
		UserDefinedData: p.UserDefinedData, OnboardingFailureDetails: p.Failure,
	}
	if p.OnboardingState == sol003.PackageOnboardingStateTypeOnboarded && p.Descriptor != nil {
		d := p.Descriptor
		r.VnfdId, r.VnfProvider, r.VnfProductName = d.ID, d.Provider, d.ProductName
		r.VnfSoftwareVersion, r.VnfdVersion = d.SoftwareVersion, d.Version
		r.Checksum, r.SoftwareImages, r.AdditionalArtifacts = p.Checksum, p.Images, p.Artifacts
	}
	return r
}
