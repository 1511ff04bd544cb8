package lcm

import "log/slog"

// Role says what a caller may do; each may do what the one before it may.
type Role int

// The roles.
const (
	RoleReader   Role = iota // read
	RoleOperator             // change what is the project's
	RoleAdmin                // see and change what is any project's
)

// Scope says on whose behalf a request runs: the caller's project and role, and whether the caller sees every project.
type Scope struct {
	ProjectID string
	Admin     bool
	Role      Role
	User      string // for the audit trail and logs
}

// LogValue implements slog.LogValuer.
func (s Scope) LogValue() slog.Value {
	return slog.GroupValue(slog.String("project", s.ProjectID), slog.String("user", s.User), slog.Bool("admin", s.Admin))
}

// Condition is one expression of an attribute filter (SOL013 §5.2): operator, path and values.
type Condition struct {
	Op     string   // eq neq gt gte lt lte in nin cont ncont
	Path   []string // attribute names from the top of the representation, unescaped
	Keys   bool     // what is compared are the names of the map at Path ("@key"), not values
	Values []string
}

// Query selects resources of a list: all conditions hold; at most Limit of them, in the order of creation, after the
// resource with the id After. Limit 0 means all.
type Query struct {
	Filter []Condition
	Limit  int
	After  string
}

// Body is a stored representation as the API answers it, without _links: JSON is one object.
type Body struct {
	ID      string
	Version int64 // the ETag
	JSON    []byte
}
