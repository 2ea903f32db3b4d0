package policydoc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

var (
	rootKeys  = []string{"version", "tenants"}
	entryKeys = []string{"name", "quota"}
)

// maxWarnings bounds what a document full of unknown keys can make us keep.
const maxWarnings = 100

// maxErrors bounds what Check tells.
const maxErrors = 100

// Parse reads and checks a document. The error is an *Error with the line of the first thing
// that is wrong; nothing of a document with an error may be used. Only the first YAML document
// of a text counts, and where a map has the same key twice, the first counts.
func Parse(text []byte) (*Document, error) {
	doc, _, err := read(text)
	return doc, err
}

// Check is Parse that goes on after the first thing that is wrong, for people who want to see
// all of them: in the order in which they were found, at most 100 and one that counts the rest.
// Without errors the document is that of Parse; with errors it is for showing only and lacks
// what is wrong. It is never nil.
func Check(text []byte) (*Document, []*Error) {
	doc, _, err := read(text)
	if err == nil {
		return doc, nil
	}
	t := &tree{all: true}
	if len(text) <= MaxSize { // else that is all there is to say
		err = t.read(text)
	}
	if err != nil {
		t.refuse(err)
	}
	if t.unsaid > 0 {
		t.errors = append(t.errors, &Error{Message: fmt.Sprintf("%d more errors", t.unsaid)})
	}
	return &t.doc, t.errors
}

// read is Parse that also tells where things are.
func read(text []byte) (*Document, *layout, error) {
	if len(text) > MaxSize {
		return nil, nil, &Error{
			Message: fmt.Sprintf("tenant quota policy has %d bytes", len(text)),
			Hint:    fmt.Sprintf("at most %d are accepted", MaxSize),
		}
	}
	if doc, lay, ok := readPlain(text); ok {
		return doc, lay, nil
	}
	return readTree(text)
}

// tree is a document read by the YAML parser, with the nodes an edit may want.
type tree struct {
	doc Document
	// all: go on after an error, see Check.
	all    bool
	errors []*Error
	unsaid int // errors beyond maxErrors
	// tenantsKey and tenants are the key and its list; tenants may be what an alias points to.
	tenantsKey, tenants *yaml.Node
	aliased             bool
	entries             []treeEntry
	dropped             int // warnings beyond maxWarnings
}

type treeEntry struct{ node, quota *yaml.Node }

func readTree(text []byte) (*Document, *layout, error) {
	t := &tree{}
	if err := t.read(text); err != nil {
		return nil, nil, err
	}
	if len(t.errors) > 0 {
		return nil, nil, t.errors[0]
	}
	if t.dropped > 0 {
		t.doc.Warnings = append(t.doc.Warnings, Warning{Message: fmt.Sprintf("%d more warnings", t.dropped)})
	}
	return &t.doc, t.layout(text), nil
}

// refuse notes an error, and reports whether to go on.
func (t *tree) refuse(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Message: err.Error()}
	}
	if len(t.errors) < maxErrors {
		t.errors = append(t.errors, e)
	} else {
		t.unsaid++
	}
	return t.all
}

func (t *tree) read(text []byte) error {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	node, err := decode(dec)
	if err != nil && !errors.Is(err, io.EOF) {
		return syntaxError(text, err)
	}
	root := node
	if root != nil && root.Kind == yaml.DocumentNode && len(root.Content) > 0 {
		root = resolve(root.Content[0])
	}
	if root == nil || root.Kind != yaml.MappingNode {
		line := 1
		if root != nil && root.Line > 0 {
			line = root.Line
		}
		return &Error{Line: line, Message: "tenant quota policy must be a YAML map", Hint: "expected the keys version and tenants"}
	}
	t.unknown(root, "", rootKeys)
	if err := checkVersion(root); err != nil && !t.refuse(err) {
		return nil
	}
	key, list := lookup(root, "tenants")
	t.tenantsKey = key
	if list != nil {
		t.aliased = list.Kind == yaml.AliasNode
		t.tenants = resolve(list)
	}
	if t.tenants == nil || t.tenants.Kind != yaml.SequenceNode {
		at := root
		if key != nil {
			at = key
		}
		return &Error{Line: at.Line, Column: at.Column, Message: "tenants must be a YAML sequence", Hint: mistyped(root, "tenants", "write tenants: [] for none")}
	}
	names := make(map[string]int, len(t.tenants.Content))
	for _, item := range t.tenants.Content {
		for _, err := range t.entry(item, names) {
			if !t.refuse(err) {
				return nil
			}
		}
	}
	if _, err := decode(dec); err != nil && strings.Contains(err.Error(), "expected <document start>") {
		return &Error{Line: lastLine(text), Message: "invalid YAML: text after the end of the document"}
	} else if !errors.Is(err, io.EOF) {
		t.warn(0, "only the first of several YAML documents is used")
	}
	return nil
}

// decode reads one YAML document. A panic in the parser, which sees text from outside, is an
// error like any other: it must not take a master down.
func decode(dec *yaml.Decoder) (node *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			node, err = nil, fmt.Errorf("yaml: %v", r)
		}
	}()
	node = &yaml.Node{}
	if err := dec.Decode(node); err != nil {
		return nil, err
	}
	return node, nil
}

func checkVersion(root *yaml.Node) error {
	key, node := lookup(root, "version")
	node = resolve(node)
	if node == nil || node.Kind != yaml.ScalarNode || isNull(node) {
		at := root
		if key != nil {
			at = key
		}
		return &Error{Line: at.Line, Column: at.Column, Message: "tenant quota policy version is required", Hint: mistyped(root, "version", "write version: 1")}
	}
	n, ok := integer(node.Value)
	if !ok {
		return &Error{Line: node.Line, Column: node.Column, Message: "invalid version: '" + shown(node.Value) + "': bad conversion", Hint: "write version: 1"}
	}
	if n != Version {
		return &Error{Line: node.Line, Column: node.Column, Message: "unsupported tenant quota policy version: " + strconv.FormatInt(n, 10), Hint: "write version: 1"}
	}
	return nil
}

// integer reads a 32-bit integer the way the first masters did: sign, then decimal, octal after
// a 0, hexadecimal after 0x, spaces around it.
func integer(s string) (int64, bool) {
	s = strings.Trim(s, " \t\n\v\f\r")
	digits := strings.ToLower(strings.TrimLeft(s, "+-"))
	if strings.Contains(s, "_") || strings.HasPrefix(digits, "0b") || strings.HasPrefix(digits, "0o") {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 0, 32)
	return n, err == nil
}

// entry checks one item of the list and adds it, or says what is wrong with it.
func (t *tree) entry(item *yaml.Node, names map[string]int) []*Error {
	node := resolve(item)
	if node.Kind != yaml.MappingNode {
		return []*Error{{Line: item.Line, Column: item.Column, Message: "tenant entry must be a YAML map", Hint: "expected the keys name and quota"}}
	}
	nameKey, name := lookup(node, "name")
	if name = resolve(name); name == nil || name.Kind != yaml.ScalarNode || isNull(name) {
		at := placeOf(nameKey, item)
		return []*Error{{Line: at.Line, Column: at.Column, Message: "tenant name is required", Hint: mistyped(node, "name", "")}}
	}
	shownName := shown(name.Value)
	var wrong []*Error
	quotaKey, quotaNode := lookup(node, "quota")
	quota := resolve(quotaNode)
	if quota == nil || quota.Kind != yaml.ScalarNode || isNull(quota) {
		at := placeOf(quotaKey, item)
		wrong = append(wrong, &Error{
			Line: at.Line, Column: at.Column, Tenant: name.Value, Message: "tenant quota is required",
			Hint: mistyped(node, "quota", "tenant '"+shownName+"' has none"),
		})
		quota = nil
	}
	if first, double := names[name.Value]; !ValidName(name.Value) {
		wrong = append(wrong, &Error{
			Line: name.Line, Column: name.Column, Tenant: name.Value, Message: "invalid tenant name '" + shownName + "'",
			Hint: "a name is not empty, does not begin with '_', and has no control characters",
		})
	} else if double {
		wrong = append(wrong, &Error{
			Line: name.Line, Column: name.Column, Tenant: name.Value, Message: "duplicate tenant name '" + shownName + "'",
			Hint: "first named on line " + strconv.Itoa(first),
		})
	} else {
		names[name.Value] = name.Line
	}
	if quota == nil {
		return wrong
	}
	n, err := ParseQuota(quota.Value)
	if err != nil {
		wrong = append(wrong, &Error{
			Line: quota.Line, Column: quota.Column, Tenant: name.Value, Message: "invalid quota for tenant '" + shownName + "': " + err.Error(),
			Hint: quotaHint,
		})
	}
	if wrong != nil {
		return wrong
	}
	if item.Kind != yaml.AliasNode {
		t.unknown(node, " in the entry of tenant '"+shownName+"'", entryKeys)
	}
	t.doc.Tenants = append(t.doc.Tenants, Tenant{Name: name.Value, Quota: n, Line: item.Line})
	t.entries = append(t.entries, treeEntry{node: item, quota: quotaNode})
	return nil
}

// mistyped makes the hint for a key that is missing or has no value: the nearest unknown key of
// the map, or else the given text.
func mistyped(m *yaml.Node, key, otherwise string) string {
	for i := 0; i+1 < len(m.Content); i += 2 {
		k := m.Content[i]
		if k.Kind == yaml.ScalarNode && k.Value != key && suggest(k.Value, []string{key}) != "" {
			return "line " + strconv.Itoa(k.Line) + " says '" + shown(k.Value) + "': did you mean '" + key + "'?"
		}
	}
	return otherwise
}

// lastLine is the number of the last line that holds anything.
func lastLine(text []byte) int {
	return 1 + bytes.Count(bytes.TrimRight(text, " \t\r\n"), []byte("\n"))
}

// placeOf is where to look for a value: at its key, or where the entry begins.
func placeOf(key, item *yaml.Node) *yaml.Node {
	if key != nil {
		return key
	}
	return item
}

// unknown warns of keys nobody reads, the second of two equal ones included.
func (t *tree) unknown(m *yaml.Node, where string, known []string) {
	seen := make(map[string]bool, len(known))
	for i := 0; i+1 < len(m.Content); i += 2 {
		key := resolve(m.Content[i])
		line := m.Content[i].Line
		if key.Kind != yaml.ScalarNode {
			t.warn(line, "a key that is not a scalar"+where+" is ignored")
			continue
		}
		if key.Value == "<<" {
			t.warn(line, "unknown key '<<'"+where+" is ignored: merge keys are not expanded")
			continue
		}
		isKnown := false
		for _, k := range known {
			isKnown = isKnown || k == key.Value
		}
		switch {
		case !isKnown:
			text := "unknown key '" + shown(key.Value) + "'" + where + " is ignored"
			if near := suggest(key.Value, known); near != "" {
				text += " (did you mean '" + near + "'?)"
			}
			t.warn(line, text)
		case seen[key.Value]:
			t.warn(line, "second key '"+key.Value+"'"+where+" is ignored: the first counts")
		}
		if isKnown {
			seen[key.Value] = true
		}
	}
}

func (t *tree) warn(line int, message string) {
	if len(t.doc.Warnings) == maxWarnings {
		t.dropped++
		return
	}
	t.doc.Warnings = append(t.doc.Warnings, Warning{Line: line, Message: message})
}

// lookup finds the first pair of a map whose key reads so.
func lookup(m *yaml.Node, name string) (key, value *yaml.Node) {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if k := resolve(m.Content[i]); k.Kind == yaml.ScalarNode && k.Value == name {
			return m.Content[i], m.Content[i+1]
		}
	}
	return nil, nil
}

// resolve follows an alias. One step is enough: an anchor never sits on an alias. Nothing
// below reads deeper than root, list, entry, scalar, so aliases can't blow a document up.
func resolve(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.ShortTag() == "!!null" }
