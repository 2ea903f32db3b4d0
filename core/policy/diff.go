package policy

import (
	"strconv"
	"strings"

	"github.com/mooncake-go/mooncake-master/core/tenant"
)

// Change is what happens to one tenant's quota, in bytes; 0 stands for no policy.
type Change struct {
	Name     string
	Old, New uint64
}

// Diff lists the changes between two sets, both sorted by name, in order of name.
func Diff(old, new []tenant.Policy) []Change {
	var changes []Change
	for len(old) > 0 || len(new) > 0 {
		switch {
		case len(new) == 0 || len(old) > 0 && old[0].Name < new[0].Name:
			changes = append(changes, Change{Name: old[0].Name, Old: old[0].Quota})
			old = old[1:]
		case len(old) == 0 || new[0].Name < old[0].Name:
			changes = append(changes, Change{Name: new[0].Name, New: new[0].Quota})
			new = new[1:]
		default:
			if old[0].Quota != new[0].Quota {
				changes = append(changes, Change{Name: old[0].Name, Old: old[0].Quota, New: new[0].Quota})
			}
			old, new = old[1:], new[1:]
		}
	}
	return changes
}

// summary counts changes by kind.
func summary(changes []Change) (added, removed, changed int) {
	for _, c := range changes {
		switch {
		case c.Old == 0:
			added++
		case c.New == 0:
			removed++
		default:
			changed++
		}
	}
	return added, removed, changed
}

// excerpt names the first few changes for a log line.
func excerpt(changes []Change) string {
	const most = 8
	var b strings.Builder
	for i, c := range changes {
		if i == most {
			b.WriteString(", ...")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(c.Name)
		switch {
		case c.Old == 0:
			b.WriteString(" +" + strconv.FormatUint(c.New, 10))
		case c.New == 0:
			b.WriteString(" removed")
		default:
			b.WriteString(" " + strconv.FormatUint(c.Old, 10) + "->" + strconv.FormatUint(c.New, 10))
		}
	}
	return b.String()
}
