package userdata

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Request says which script to run and on what.
type Request struct {
	// PackageFS is the VNF package; Path the script's path in it, as additionalParams["lcm-operation-user-data"] gives it
	// (leading "." and "/" do not count); Class the class's name; Method its method, "" for "instantiate".
	PackageFS fs.FS
	Path      string
	Class     string
	Method    string

	// BaseHOT maps "heat_template" to the top HOT and file names to nested HOTs, parsed.
	BaseHOT map[string]any
	// VNFD is the flavour's descriptor as plain data.
	VNFD map[string]any
	// Instantiate is the InstantiateVnfRequest, anything that marshals as SOL003 writes it. The script sees it as
	// objects with snake_case attributes; additionalParams as it came.
	Instantiate any
	// Images are the Glance images made for the VNF, by node name.
	Images map[string][]Image

	// What the methods scale and heal get instead of Instantiate and Images: the operation's request, the instance and its
	// instantiatedVnfInfo as SOL003 writes them, the stack's parameters as they are, and last the number of members that a
	// scaled group is to have, or the VnfcResourceInfos that are healed.
	Operation, Instance, Info any
	Parameters                map[string]any
	Last                      any
}

// ErrNoMethod says that the script's class does not have the method that was asked for.
var ErrNoMethod = errors.New("the class has no such method")

// Image is a Glance image that was made for a node of the VNFD.
type Image struct {
	ID   string `json:"resourceIdentifier"`
	Name string `json:"resourceName"`
	Type string `json:"resourceType"` // "image"
}

// Error is a failure that the package or the request is answerable for; trying again does not help.
type Error struct {
	// Message is what went wrong: a text that starts with "LCM user data", or that of the script's exception.
	Message string
	// Type and Where name the script's exception and the file and line that it left the package at, when there was one.
	Type, Where string
	// Output is the end of what the script printed.
	Output string
}

// Error returns the message with the place and the end of the output.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Message)
	switch {
	case e.Type != "" && e.Where != "":
		fmt.Fprintf(&b, " (%s at %s)", e.Type, e.Where)
	case e.Type != "":
		fmt.Fprintf(&b, " (%s)", e.Type)
	}
	if e.Output != "" {
		fmt.Fprintf(&b, "; the script's last output: %s", e.Output)
	}
	return b.String()
}

const (
	prefix   = "LCM user data "
	badPath  = prefix + "failed to get UserData path based on lcm-operation-user-data from additionalParams."
	badClass = prefix + "failed to get UserData class based on lcm-operation-user-data-class from additionalParams."
	notDict  = prefix + "return value as HOT parameter from UserData is not in dict format."
)

// job is the runner's input.
type job struct {
	Package string             `json:"package"`
	Shim    string             `json:"shim"`
	Module  string             `json:"module"`
	Class   string             `json:"class"`
	Method  string             `json:"method"`
	BaseHOT map[string]any     `json:"base_hot"`
	VNFD    map[string]any     `json:"vnfd"`
	Request any                `json:"request"`
	Images  map[string][]Image `json:"images"`
	Limits  map[string]uint64  `json:"limits"`

	Instance   any            `json:"instance,omitempty"`
	Info       any            `json:"info,omitempty"`
	Parameters map[string]any `json:"parameters,omitempty"`
	Last       any            `json:"last,omitempty"`
}

// scriptPath cleans the path that a request gives to a path in the package, and makes a module name of it.
func scriptPath(fsys fs.FS, given string) (file, module string, err error) {
	file = strings.TrimLeft(given, "./")
	if !fs.ValidPath(file) || file == "." {
		return "", "", &Error{Message: badPath}
	}
	stem := strings.TrimSuffix(file, path.Ext(file))
	if file = stem + ".py"; path.Ext(given) != ".py" && path.Ext(given) != "" {
		return "", "", &Error{Message: badPath}
	}
	if info, err := fs.Stat(fsys, file); err != nil || !info.Mode().IsRegular() {
		return "", "", &Error{Message: badPath + fmt.Sprintf(" There is no file %q in the VNF package.", file)}
	}
	return file, strings.ReplaceAll(stem, "/", "."), nil
}

// encode makes the runner's input.
func (r *Request) encode(dir *place, module string, l Limits) ([]byte, error) {
	method := r.Method
	if method == "" {
		method = "instantiate"
	}
	j := job{
		Package: dir.pkg, Shim: dir.shim, Module: module, Class: r.Class, Method: method,
		BaseHOT: r.BaseHOT, VNFD: r.VNFD, Request: r.Instantiate, Images: r.Images,
		Limits: map[string]uint64{
			"CPU": l.CPUSeconds, "AS": l.MemoryBytes, "NOFILE": l.OpenFiles, "NPROC": l.Processes, "FSIZE": l.FileBytes, "CORE": 0,
		},
	}
	if method != "instantiate" {
		j.Request, j.Instance, j.Info, j.Parameters, j.Last = r.Operation, r.Instance, r.Info, r.Parameters, r.Last
	}
	if j.Request == nil {
		j.Request = struct{}{}
	}
	if j.Images == nil {
		j.Images = map[string][]Image{}
	}
	raw, err := json.Marshal(j)
	if err != nil {
		return nil, fmt.Errorf("encode the input of user data %s: %w", r.Path, err)
	}
	return raw, nil
}
