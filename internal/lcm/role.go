package lcm

// roleNames are the roles as configurations, problems and the audit trail spell them.
var roleNames = [...]string{RoleReader: "reader", RoleOperator: "operator", RoleAdmin: "admin"}

// String returns the role's name: "reader", "operator" or "admin".
func (r Role) String() string {
	if r < 0 || int(r) >= len(roleNames) {
		return "unknown"
	}
	return roleNames[r]
}

// ParseRole returns the role that a name stands for; ok is false for none.
func ParseRole(name string) (r Role, ok bool) {
	for n, known := range roleNames {
		if name == known {
			return Role(n), true
		}
	}
	return RoleReader, false
}
