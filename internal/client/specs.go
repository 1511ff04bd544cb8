package client

import "slices"

var (
	instanceColumns = []column{
		{"id", "ID"}, {"vnfInstanceName", "VNF Instance Name"}, {"vnfInstanceDescription", "VNF Instance Description"},
		{"vnfdId", "VNFD ID"}, {"vnfProvider", "VNF Provider"}, {"vnfProductName", "VNF Product Name"},
		{"vnfSoftwareVersion", "VNF Software Version"}, {"vnfdVersion", "VNFD Version"},
		{"instantiationState", "Instantiation State"}, {"_links", "Links"},
		{"vnfConfigurableProperties", "VNF Configurable Properties"},
	}
	instanceComplex = []string{"vimConnectionInfo", "instantiatedVnfInfo", "_links"}
	instanceMixed   = []string{
		"vnfInstanceName", "vnfInstanceDescription", "vnfdId", "vnfProvider", "vnfProductName", "vnfSoftwareVersion",
		"vnfdVersion", "instantiationState", "vimConnectionInfo", "instantiatedVnfInfo", "vnfConfigurableProperties",
	}
	opOccColumns = []column{
		{"id", "ID"}, {"operationState", "Operation State"}, {"stateEnteredTime", "State Entered Time"},
		{"startTime", "Start Time"}, {"vnfInstanceId", "VNF Instance ID"}, {"operation", "Operation"},
		{"isAutomaticInvocation", "Is Automatic Invocation"}, {"isCancelPending", "Is Cancel Pending"},
		{"error", "Error"}, {"_links", "Links"},
	}
	opOccMore = []column{
		{"operationParams", "Operation Parameters"}, {"grantId", "Grant ID"}, {"resourceChanges", "Resource Changes"},
		{"changedInfo", "Changed Info"}, {"cancelMode", "Cancel Mode"},
		{"changedExtConnectivity", "Changed External Connectivity"},
	}
	opOccComplex = []string{"operationParams", "error", "resourceChanges", "changedInfo", "changedExtConnectivity", "_links"}
	opOccMixed   = []string{
		"operationState", "stateEnteredTime", "startTime", "vnfInstanceId", "grantId", "isAutomaticInvocation",
		"isCancelPending", "cancelMode", "operationParams", "resourceChanges", "changedInfo", "changedExtConnectivity",
	}
	packageComplex = []string{"softwareImages", "checksum", "_links", "userDefinedData", "additionalArtifacts"}
	packageMixed   = []string{
		"usageState", "onboardingState", "operationalState", "vnfProductName", "softwareImages", "userDefinedData",
		"vnfdId", "vnfdVersion", "vnfSoftwareVersion", "vnfProvider", "additionalArtifacts",
	}
)

// InstanceCreated is how `vnflcm create` shows a VnfInstance.
func InstanceCreated() ShowSpec {
	return ShowSpec{columns: instanceColumns, complex: instanceComplex, mixed: instanceMixed}
}

// InstanceShown is how `vnflcm show` shows a VnfInstance.
func InstanceShown(o *Object) ShowSpec {
	spec := InstanceCreated()
	spec.columns = append(append([]column(nil), instanceColumns...), column{"vimConnectionInfo", "VIM Connection Info"})
	if o.Text("instantiationState") == "INSTANTIATED" {
		spec.columns = append(spec.columns, column{"instantiatedVnfInfo", "Instantiated Vnf Info"})
	}
	return spec
}

// InstanceList is `vnflcm list`.
func InstanceList() ShowSpec {
	return ShowSpec{mixed: instanceMixed, columns: []column{
		{"id", "ID"}, {"vnfInstanceName", "VNF Instance Name"}, {"instantiationState", "Instantiation State"},
		{"vnfProvider", "VNF Provider"}, {"vnfSoftwareVersion", "VNF Software Version"},
		{"vnfProductName", "VNF Product Name"}, {"vnfdId", "VNFD ID"},
	}}
}

// OpOccShown is how `vnflcm op show` shows a VnfLcmOpOcc.
func OpOccShown() ShowSpec {
	return ShowSpec{columns: append(append([]column(nil), opOccColumns...), opOccMore...), complex: opOccComplex, mixed: opOccMixed}
}

// OpOccFailed is how `vnflcm op fail` shows a VnfLcmOpOcc.
func OpOccFailed() ShowSpec {
	return ShowSpec{columns: opOccColumns, complex: opOccComplex, mixed: opOccMixed}
}

// OpOccList is `vnflcm op list` without the columns whose labels are excluded.
func OpOccList(exclude []string) ShowSpec {
	spec := ShowSpec{mixed: opOccMixed}
	for _, c := range opOccListed {
		if !has(exclude, c.label) {
			spec.columns = append(spec.columns, c)
		}
	}
	return spec
}

var opOccListed = []column{{"id", "ID"}, {"operationState", "Operation State"}, {"vnfInstanceId", "VNF Instance ID"}, {"operation", "Operation"}}

// isOpOccLabel tells whether a name is the label of a column of [OpOccList].
func isOpOccLabel(name string) bool {
	return slices.ContainsFunc(opOccListed, func(c column) bool { return c.label == name })
}

// SubscriptionShown is how `vnflcm subsc create` and `show` show an LccnSubscription.
func SubscriptionShown() ShowSpec {
	return ShowSpec{
		columns: []column{{"id", "ID"}, {"filter", "Filter"}, {"callbackUri", "Callback URI"}, {"_links", "Links"}},
		complex: []string{"filter", "_links"}, mixed: []string{"filter", "callbackUri"},
	}
}

// SubscriptionList is `vnflcm subsc list`.
func SubscriptionList() ShowSpec {
	return ShowSpec{columns: []column{{"id", "ID"}, {"callbackUri", "Callback URI"}}, mixed: []string{"callbackUri"}}
}

// PackageShown is how `vnf package create` and `show` show a VnfPkgInfo.
func PackageShown(o *Object) ShowSpec {
	spec := ShowSpec{complex: packageComplex, mixed: packageMixed, columns: []column{
		{"_links", "Links"}, {"onboardingState", "Onboarding State"}, {"operationalState", "Operational State"},
		{"usageState", "Usage State"}, {"userDefinedData", "User Defined Data"}, {"id", "ID"},
	}}
	if o.Text("onboardingState") == "ONBOARDED" {
		spec.columns = append(spec.columns,
			column{"softwareImages", "Software Images"}, column{"vnfProvider", "VNF Provider"},
			column{"vnfSoftwareVersion", "VNF Software Version"}, column{"vnfProductName", "VNF Product Name"},
			column{"vnfdId", "VNFD ID"}, column{"vnfdVersion", "VNFD Version"}, column{"checksum", "Checksum"},
			column{"additionalArtifacts", "Additional Artifacts"})
	}
	return spec
}

// PackageUpdated is how `vnf package update` shows the modifications: only what is there.
func PackageUpdated(o *Object) ShowSpec {
	spec := ShowSpec{complex: packageComplex, mixed: packageMixed}
	for _, c := range []column{{"operationalState", "Operational State"}, {"userDefinedData", "User Defined Data"}} {
		if _, ok := o.Get(c.attr); ok {
			spec.columns = append(spec.columns, c)
		}
	}
	return spec
}

// PackageList is `vnf package list` with the columns that its selectors add.
func PackageList(q PackageQuery) ShowSpec {
	complex := []string{"checksum", "softwareImages", "userDefinedData", "additionalArtifacts"}
	simple := []string{"vnfdVersion", "vnfProvider", "vnfSoftwareVersion", "vnfdId"}
	attrs := []string{"id", "vnfProductName", "onboardingState", "usageState", "operationalState", "_links"}
	for _, f := range splitList(q.Fields) {
		attrs = append(attrs, firstSegment(f))
	}
	if q.ExcludeFields != "" {
		excluded := splitList(q.ExcludeFields)
		for _, c := range complex {
			if !has(excluded, c) {
				attrs = append(attrs, c)
			}
		}
	}
	if q.AllFields {
		attrs = append(append(attrs, complex...), simple...)
	}
	if q.ExcludeDefault {
		attrs = append(attrs, simple...)
	}
	spec := ShowSpec{complex: packageComplex, mixed: packageMixed}
	for _, a := range attrs {
		label := titleCase(a)
		if a == "_links" {
			label = "Links"
		}
		spec.columns = append(spec.columns, column{a, label})
	}
	return spec
}

// VIMShown is how `vim show`, `register` and `set` show a VIM.
func VIMShown() ShowSpec {
	return ShowSpec{columns: []column{{"tenant_id", "project_id"}}, texts: []string{"auth_cred", "placement_attr", "vim_project"}}
}

// VIMList is `vim list`, with the placement when long.
func VIMList(long bool) ShowSpec {
	spec := ShowSpec{columns: []column{
		{"id", "ID"}, {"name", "Name"}, {"tenant_id", "Tenant_id"}, {"type", "Type"}, {"is_default", "Is Default"},
	}}
	if long {
		spec.columns = append(spec.columns, column{"placement_attr", "Placement attribution"})
	}
	spec.columns = append(spec.columns, column{"status", "Status"})
	return spec
}
