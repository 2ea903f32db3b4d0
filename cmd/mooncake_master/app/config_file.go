package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// entry is one scalar of a configuration file.
type entry struct {
	text string
	kind entryKind
	line int
}

type entryKind uint8

const (
	yamlScalar entryKind = iota
	jsonString
	jsonNumber
	jsonBool
)

// Bounds of a configuration file. They stop aliases from unfolding into gigabytes.
const (
	maxConfigBytes   = 16 << 20
	maxConfigEntries = 100_000
	maxConfigDepth   = 64
)

// readConfigFile reads a YAML or JSON file, chosen by its extension, into its scalars; the
// keys of nested maps are joined with dots. Every error names the file and, where there is
// one, the line and the key.
func readConfigFile(path string, read func(string) ([]byte, error)) (map[string]entry, error) {
	var parse func(string, []byte) (map[string]entry, error)
	switch filepath.Ext(path) {
	case ".yaml", ".yml":
		parse = parseYAML
	case ".json":
		parse = parseJSON
	default:
		return nil, fmt.Errorf("--config_path=%s: unsupported config file format, want .yaml, .yml or .json", path)
	}
	content, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("--config_path=%s: %s", path, reason(err))
	}
	if len(content) > maxConfigBytes {
		return nil, fmt.Errorf("--config_path=%s: %d bytes, want at most %d", path, len(content), maxConfigBytes)
	}
	return parse(path, content)
}

func parseYAML(path string, content []byte) (map[string]entry, error) {
	var root yaml.Node
	err := yaml.NewDecoder(bytes.NewReader(content)).Decode(&root) // the first document counts
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: empty file, want a map of settings", path)
	}
	if err != nil {
		return nil, fmt.Errorf("%s:%s", path, yamlReason(err))
	}
	out := map[string]entry{}
	budget := maxConfigEntries
	if len(root.Content) != 1 || root.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s:%d: want a map of settings", path, root.Line)
	}
	if err := flattenYAML(path, "", root.Content[0], out, 0, &budget); err != nil {
		return nil, err
	}
	return out, nil
}

// yamlReason turns "yaml: line 2: text" into "2: text", so that it reads as file:line, and
// puts a blank before any other text.
func yamlReason(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		return rest
	}
	return " " + text
}

func flattenYAML(path, prefix string, node *yaml.Node, out map[string]entry, depth int, budget *int) error {
	line, key := node.Line, strings.TrimSuffix(prefix, ".")
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if *budget--; *budget < 0 || depth > maxConfigDepth {
		return fmt.Errorf("%s:%d: %s: too many or too deeply nested settings", path, line, shorten(key))
	}
	switch {
	case node.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			name := node.Content[i]
			if name.Kind != yaml.ScalarNode {
				return fmt.Errorf("%s:%d: %s: the name of a setting must be text", path, name.Line, key)
			}
			if err := flattenYAML(path, prefix+name.Value+".", node.Content[i+1], out, depth+1, budget); err != nil {
				return err
			}
		}
		return nil
	case node.Kind == yaml.SequenceNode:
		return fmt.Errorf("%s:%d: %s: unsupported YAML node type: a list, want one value", path, line, key)
	case node.Kind != yaml.ScalarNode || node.ShortTag() == "!!null":
		return fmt.Errorf("%s:%d: %s: unsupported YAML node type: no value, want one", path, line, key)
	default:
		out[key] = entry{text: node.Value, kind: yamlScalar, line: line}
		return nil
	}
}

// shorten keeps the name of a setting that is nested without end readable.
func shorten(key string) string {
	const most = 40
	if len(key) > most {
		return key[:most] + "..."
	}
	return key
}

func parseJSON(path string, content []byte) (map[string]entry, error) {
	content = blankComments(content)
	lineAt := func(offset int64) int {
		offset = min(max(offset, 0), int64(len(content)))
		return 1 + bytes.Count(content[:offset], []byte("\n"))
	}
	dec := json.NewDecoder(bytes.NewReader(content))
	dec.UseNumber()
	out := map[string]entry{}
	bad := func(err error) error {
		at := dec.InputOffset()
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			at = syntax.Offset
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("%s:%d: the file ends too early, want a complete JSON object", path, lineAt(int64(len(content))))
		}
		return fmt.Errorf("%s:%d: %w", path, lineAt(at), err)
	}
	token, err := dec.Token()
	if err != nil {
		return nil, bad(err)
	}
	if token != json.Delim('{') {
		return nil, fmt.Errorf("%s:%d: want a JSON object with settings", path, lineAt(dec.InputOffset()))
	}
	var object func(prefix string, depth int) error
	object = func(prefix string, depth int) error {
		if depth > maxConfigDepth {
			return fmt.Errorf("%s:%d: %s: too deeply nested settings", path, lineAt(dec.InputOffset()), shorten(prefix))
		}
		for dec.More() {
			name, err := dec.Token()
			if err != nil {
				return bad(err)
			}
			key := prefix + name.(string)
			line := lineAt(dec.InputOffset())
			v, err := dec.Token()
			if err != nil {
				return bad(err)
			}
			switch v := v.(type) {
			case json.Delim:
				if v == '[' {
					return fmt.Errorf("%s:%d: %s: a list is not supported, want one value", path, line, key)
				}
				if err := object(key+".", depth+1); err != nil {
					return err
				}
			case string:
				out[key] = entry{text: v, kind: jsonString, line: line}
			case json.Number:
				out[key] = entry{text: v.String(), kind: jsonNumber, line: line}
			case bool:
				out[key] = entry{text: strconv.FormatBool(v), kind: jsonBool, line: line}
			case nil:
				delete(out, key) // null is as good as absent
			}
		}
		_, err := dec.Token()
		if err != nil {
			return bad(err)
		}
		return nil
	}
	if err := object("", 0); err != nil {
		return nil, err
	}
	return out, nil // text after the object does not count
}

// blankComments replaces /* */ and // comments outside strings by blanks; line numbers stay.
func blankComments(in []byte) []byte {
	out := bytes.Clone(in)
	for i := 0; i < len(out); i++ {
		switch {
		case out[i] == '"':
			for i++; i < len(out) && out[i] != '"'; i++ {
				if out[i] == '\\' {
					i++
				}
			}
		case bytes.HasPrefix(out[i:], []byte("//")):
			for ; i < len(out) && out[i] != '\n'; i++ {
				out[i] = ' '
			}
		case bytes.HasPrefix(out[i:], []byte("/*")):
			end := bytes.Index(out[i+2:], []byte("*/"))
			if end < 0 {
				return out // left as it is, so that the parser names the place
			}
			for stop := i + 2 + end + 2; i < stop; i++ {
				if out[i] != '\n' {
					out[i] = ' '
				}
			}
			i--
		}
	}
	return out
}

// value converts the scalar to the flag's kind by the rules of the file's format.
func (e entry) value(kind Kind) (any, error) {
	if e.kind == yamlScalar {
		return e.yamlValue(kind)
	}
	switch kind {
	case String:
		return e.text, nil
	case Duration:
		if e.kind == jsonBool {
			return nil, errors.New("want a whole number of milliseconds, or text like \"10s\"")
		}
		return parseDuration(e.text)
	}
	if e.kind == jsonString {
		return nil, errIllegal
	}
	number := 0.0
	switch {
	case e.text == "true":
		number = 1
	case e.kind == jsonNumber:
		// whole numbers keep all their digits; others are cut off as the original does
		switch kind {
		case Int32, Int64, Uint32, Uint64:
			if v, err := parseValue(kind, e.text); err == nil {
				return v, nil
			}
		}
		var err error
		if number, err = strconv.ParseFloat(e.text, 64); err != nil {
			return nil, errIllegal
		}
	}
	switch kind {
	case Bool:
		return number != 0, nil
	case Double:
		return number, nil
	default:
		return parseValue(kind, strconv.FormatFloat(math.Trunc(number), 'f', -1, 64))
	}
}

func (e entry) yamlValue(kind Kind) (any, error) {
	switch kind {
	case String:
		return e.text, nil
	case Duration:
		return parseDuration(e.text)
	case Bool:
		lower := strings.ToLower(e.text)
		if e.text != lower && e.text != strings.ToUpper(lower) && e.text != strings.ToUpper(lower[:1])+lower[1:] {
			return nil, errIllegal
		}
		switch lower {
		case "y", "yes", "true", "on":
			return true, nil
		case "n", "no", "false", "off":
			return false, nil
		}
		return nil, errIllegal
	case Double:
		switch strings.ToLower(strings.TrimLeft(e.text, "+-")) {
		case ".inf":
			return math.Inf(1), nil // out of every range we have, whatever its sign
		case ".nan":
			return math.NaN(), nil
		}
		return parseValue(Double, strings.TrimSpace(e.text))
	default:
		t := strings.TrimSpace(e.text)
		digits := strings.TrimLeft(t, "+-")
		if len(digits) > 1 && digits[0] == '0' && digits[1] != 'x' && digits[1] != 'X' {
			// a leading zero means octal in these files, unlike on the command line
			v, err := strconv.ParseUint(digits, 8, 63)
			if err != nil {
				return nil, errIllegal
			}
			t = t[:len(t)-len(digits)] + strconv.FormatUint(v, 10)
		}
		return parseValue(kind, t)
	}
}

// applyFile sets what the file says and the command line does not. A flag given with a value
// other than its default wins over the file; one given with its default does not, because the
// original can not see it.
func (c *Config) applyFile(path string, entries map[string]entry, warnings *[]string) error {
	known := map[string]bool{}
	for i := range table {
		f := &table[i]
		names := []string{f.Name}
		if f.Key != "" {
			names = strings.Fields(f.Key)
		}
		if f.Key == "-" {
			continue
		}
		for _, name := range names {
			known[name] = true
		}
		for _, name := range names {
			e, ok := entries[name]
			if !ok {
				continue
			}
			from := Origin{Source: FromConfigFile, File: path, Line: e.line, Key: name, Text: e.text}
			v, err := e.value(f.Kind)
			if err != nil {
				return fmt.Errorf("%s:%d: %s: illegal value '%s', want %s%s", path, e.line, name, e.text, wanted(f.Kind), detail(err))
			}
			if o := c.origins[f.Name]; o.Given() && !c.isDefault(f) {
				break
			}
			f.store(c, v)
			c.origins[f.Name] = from
			break
		}
	}
	*warnings = append(*warnings, unknownSettings(path, entries, known)...)
	return nil
}

// mostUnknown bounds the warnings about one file.
const mostUnknown = 20

// unknownSettings says in the file's order what in it is no setting: as in the original that
// is no error, but a typing mistake would go unseen.
func unknownSettings(path string, entries map[string]entry, known map[string]bool) []string {
	var names []string
	for name := range entries {
		if !known[name] {
			names = append(names, name)
		}
	}
	sort.Slice(names, func(i, j int) bool {
		a, b := entries[names[i]].line, entries[names[j]].line
		return a < b || a == b && names[i] < names[j]
	})
	var out []string
	for i, name := range names {
		if i == mostUnknown {
			return append(out, fmt.Sprintf("%s: %d more settings are unknown and ignored", path, len(names)-i))
		}
		text := fmt.Sprintf("%s:%d: unknown setting %q is ignored", path, entries[name].line, shorten(name))
		if name == "port" {
			text += ", in files it is rpc_port"
		}
		out = append(out, text)
	}
	return out
}

func wanted(kind Kind) string {
	switch kind {
	case Bool:
		return "true or false"
	case Duration:
		return "a duration"
	case Double:
		return "a number"
	default:
		return "a whole number (" + kind.String() + ")"
	}
}

func detail(err error) string {
	if errors.Is(err, errIllegal) {
		return ""
	}
	return ": " + err.Error()
}

// isDefault reports whether the field of the flag holds the flag's default.
func (c *Config) isDefault(f *Flag) bool {
	if f.bind == nil {
		o := c.origins[f.Name]
		return !o.Given() || sameText(f, o.Text)
	}
	var d Config
	v, err := parseValue(f.Kind, f.Default)
	if err != nil {
		return false
	}
	f.store(&d, v)
	switch have := f.bind(c).(type) {
	case *bool:
		return *have == *f.bind(&d).(*bool)
	case *string:
		return *have == *f.bind(&d).(*string)
	case *float64:
		return *have == *f.bind(&d).(*float64)
	case *int:
		return *have == *f.bind(&d).(*int)
	case *int64:
		return *have == *f.bind(&d).(*int64)
	case *uint64:
		return *have == *f.bind(&d).(*uint64)
	case *time.Duration:
		return *have == *f.bind(&d).(*time.Duration)
	default:
		return false
	}
}

// sameText compares a text with the default by value, not by spelling.
func sameText(f *Flag, text string) bool {
	a, errA := parseValue(f.Kind, text)
	b, errB := parseValue(f.Kind, f.Default)
	return errA == nil && errB == nil && a == b
}
