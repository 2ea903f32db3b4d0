package tenant

// Default is the tenant meant by an empty name.
const Default = "default"

// Normalize returns the name a tenant is known by: Default for the empty string, everything
// else unchanged.
func Normalize(name string) string {
	if name == "" {
		return Default
	}
	return name
}

// Valid reports whether a normalized name may be a tenant's: it is not empty, does not begin
// with an underscore (kept for internal use) and has no control byte. Bytes from 0x80 on,
// spaces, slashes and any length are fine.
func Valid(name string) bool {
	if name == "" || name[0] == '_' {
		return false
	}
	for i := 0; i < len(name); i++ {
		if name[i] < 0x20 || name[i] == 0x7f {
			return false
		}
	}
	return true
}
