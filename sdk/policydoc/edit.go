package policydoc

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// Edit is an edited document.
type Edit struct {
	// Document is the new text; the old one itself when nothing had to change.
	Document []byte
	// Changed is false when the text said so already.
	Changed bool
	// Rewritten is true when the entry could not be changed in place and the whole text was
	// written anew in the canonical form, losing comments, order and layout.
	Rewritten bool
	// Warning says why it was rewritten; empty otherwise.
	Warning string
}

// Set gives a tenant a quota in bytes: the quota of an existing entry is replaced by plain
// bytes, a new entry is added after the last. All other bytes stay. A nil or blank text becomes
// the canonical form with this one entry. It fails with an *Error when the text is not a valid
// document, when name or quota are not valid, or when the result would be too large.
func Set(text []byte, name string, quota uint64) (Edit, error) {
	switch {
	case !ValidName(name):
		return Edit{}, &Error{
			Tenant: name, Message: "invalid tenant name '" + shown(name) + "'",
			Hint: "a name is not empty, does not begin with '_', and has no control characters",
		}
	case !Printable(name):
		return Edit{}, &Error{Tenant: name, Message: "invalid tenant name '" + shown(name) + "'", Hint: "a document can only hold UTF-8"}
	case quota == 0:
		return Edit{}, &Error{Tenant: name, Message: "invalid quota for tenant '" + shown(name) + "': " + errQuotaPositive.Error()}
	case quota > MaxQuota:
		return Edit{}, &Error{Tenant: name, Message: "invalid quota for tenant '" + shown(name) + "': " + errQuotaMax.Error()}
	}
	if Blank(text) {
		return Edit{Document: Print([]Tenant{{Name: name, Quota: quota}}), Changed: true}, nil
	}
	doc, lay, err := read(text)
	if err != nil {
		return Edit{}, err
	}
	want := slices.Clone(doc.Tenants)
	var spliced []byte
	if i := index(doc.Tenants, name); i >= 0 {
		if want[i].Quota == quota {
			return Edit{Document: text}, nil
		}
		want[i].Quota = quota
		spliced = lay.replace(text, i, quota)
	} else {
		want = append(want, Tenant{Name: name, Quota: quota})
		spliced = lay.add(text, name, quota)
	}
	return settle(spliced, want)
}

// Delete takes a tenant's entry out: the lines from its dash to its last key. All other bytes
// stay; with the last entry the list becomes []. A tenant the text does not have changes
// nothing. It fails with an *Error when the text is not a valid document.
func Delete(text []byte, name string) (Edit, error) {
	doc, lay, err := read(text)
	if err != nil {
		return Edit{}, err
	}
	i := index(doc.Tenants, name)
	if i < 0 {
		return Edit{Document: text}, nil
	}
	return settle(lay.remove(text, i), slices.Delete(slices.Clone(doc.Tenants), i, i+1))
}

// Blank reports whether a text holds nothing at all: no bytes but spaces and line breaks.
func Blank(text []byte) bool {
	return len(bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")))) == 0
}

func index(tenants []Tenant, name string) int {
	return slices.IndexFunc(tenants, func(t Tenant) bool { return t.Name == name })
}

// settle checks an edited text against what was wanted and falls back to writing it anew.
func settle(spliced []byte, want []Tenant) (Edit, error) {
	if spliced != nil {
		if got, err := Parse(spliced); err == nil && sameTenants(got.Tenants, want) {
			return Edit{Document: spliced, Changed: true}, nil
		}
	}
	fresh := Print(want)
	got, err := Parse(fresh)
	if err != nil {
		return Edit{}, err
	}
	slices.SortFunc(want, func(a, b Tenant) int { return strings.Compare(a.Name, b.Name) })
	if !sameTenants(got.Tenants, want) {
		return Edit{}, &Error{Message: "the edited document would not say what was asked for"}
	}
	return Edit{
		Document: fresh, Changed: true, Rewritten: true,
		Warning: "the entry can't be changed in place (flow style, anchor or alias): the whole document was written anew, comments and layout are lost",
	}, nil
}

func sameTenants(a, b []Tenant) bool {
	return slices.EqualFunc(a, b, func(x, y Tenant) bool { return x.Name == y.Name && x.Quota == y.Quota })
}

// replace returns the text with another quota in entry i, or nil.
func (l *layout) replace(text []byte, i int, quota uint64) []byte {
	e := l.entries[i]
	if e.quotaStart < 0 {
		return nil
	}
	return splice(text, e.quotaStart, e.quotaEnd, strconv.AppendUint(nil, quota, 10))
}

// add returns the text with one more entry, or nil.
func (l *layout) add(text []byte, name string, quota uint64) []byte {
	if !l.block {
		if l.emptyStart < 0 {
			return nil
		}
		// The list begins on the line after "tenants: []"; what follows the brackets stays there.
		line := len(text)
		if n := bytes.IndexByte(text[l.emptyEnd:], '\n'); n >= 0 {
			line = l.emptyEnd + n + 1
		}
		from := l.emptyStart
		for from > 0 && text[from-1] == ' ' {
			from--
		}
		head := splice(text[:line], from, l.emptyEnd, nil)
		return appendEntry(head, text[line:], breakOf(text, len(text)), 2, 4, name, quota)
	}
	last := l.entries[len(l.entries)-1]
	if last.end < 0 {
		return nil
	}
	return appendEntry(text[:last.end:last.end], text[last.end:], breakOf(text, last.end), last.dash, last.column, name, quota)
}

// appendEntry puts an entry between two parts of a text. A missing line break at the end of
// the text stays missing.
func appendEntry(head, tail []byte, br string, dash, column int, name string, quota uint64) []byte {
	open := len(head) > 0 && head[len(head)-1] != '\n' && head[len(head)-1] != '\r'
	out := slices.Clone(head)
	if open {
		out = append(out, br...)
	}
	out = append(out, strings.Repeat(" ", dash)+"-"+strings.Repeat(" ", column-dash-1)+"name: "...)
	out = appendName(out, name)
	out = append(out, br+strings.Repeat(" ", column)+"quota: "...)
	out = strconv.AppendUint(out, quota, 10)
	if !open {
		out = append(out, br...)
	}
	return append(out, tail...)
}

// remove returns the text without entry i, or nil.
func (l *layout) remove(text []byte, i int) []byte {
	e := l.entries[i]
	if !l.block || e.start < 0 {
		return nil
	}
	out := splice(text, e.start, e.end, nil)
	if len(l.entries) > 1 {
		return out
	}
	if l.colon < 0 {
		return nil
	}
	return splice(out, l.colon, l.colon, []byte(" []"))
}

func splice(text []byte, from, to int, with []byte) []byte {
	out := make([]byte, 0, len(text)-(to-from)+len(with))
	out = append(out, text[:from]...)
	out = append(out, with...)
	return append(out, text[to:]...)
}

// breakOf tells how lines end in a text: the last break before an offset, else the first of
// all, else LF.
func breakOf(text []byte, before int) string {
	at := bytes.LastIndexByte(text[:before], '\n')
	if at < 0 {
		if bytes.IndexByte(text, '\r') >= 0 {
			return "\r"
		}
		return "\n"
	}
	if at > 0 && text[at-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}
