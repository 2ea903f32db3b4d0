// Package policydoc is the one parser, validator, printer and editor of tenant-quota policy
// documents, for the master, for connectors and for anybody else:
//
//	version: 1
//	tenants:
//	  - name: team-a
//	    quota: 64GB
//
// Parse reads a document, Print writes the canonical form, Set and Delete change one entry of
// an existing text in place, so that comments, order, units and layout of everything else stay
// byte for byte.
//
// Invariant: an edit is returned only after it was parsed again and found to hold exactly the
// intended tenants. The package has no state and no locks; everything may be called
// concurrently.
package policydoc

// MaxSize is the largest document, in bytes, that Parse accepts.
const MaxSize = 64 << 20

// MaxQuota is the largest quota of a tenant in bytes, 2^63-1.
const MaxQuota = 1<<63 - 1

// Version is the document version this package reads and writes.
const Version = 1

// Document is what a valid text says.
type Document struct {
	// Tenants in the order of the text. Names are unique and valid.
	Tenants []Tenant
	// Warnings are things that were accepted but look like mistakes, in line order.
	Warnings []Warning
}

// Tenant is one entry.
type Tenant struct {
	// Name is not empty, does not begin with '_' and has no control bytes.
	Name string
	// Quota in bytes, 1 to MaxQuota.
	Quota uint64
	// Line on which the entry begins, from 1.
	Line int
}

// Warning is something accepted that looks like a mistake.
type Warning struct {
	// Line from 1, 0 when it is about the whole document.
	Line int
	// Message in lower case, naming the key.
	Message string
}

// String reads "line 3: unknown key 'qouta' is ignored (did you mean 'quota'?)".
func (w Warning) String() string { return located(w.Line, w.Message) }
