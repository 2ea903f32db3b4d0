package wire

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// notation writes decoded values in the notation of the vectors, guided by the published
// types: the names come from there, the values from Go, field by field. So it also finds
// fields in the wrong order, which hashes do not show when their types are equal.
type notation struct{ types map[string]publishedType }

// of writes the value that v points to.
func (n notation) of(t testing.TB, schema string, v any) any {
	return n.value(t, schema, reflect.ValueOf(v).Elem())
}

func splitSchema(s string) []string {
	var out []string
	depth, start := 0, 0
	for i, c := range s {
		switch c {
		case '<':
			depth++
		case '>':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, s[start:i])
				start = i + 1
			}
		}
	}
	if s == "" {
		return nil
	}
	return append(out, s[start:])
}

// fields returns the fields of a struct without its marker.
func fields(v reflect.Value) []reflect.Value {
	var out []reflect.Value
	for i := range v.NumField() {
		if v.Type().Field(i).Name != "_" {
			out = append(out, v.Field(i))
		}
	}
	return out
}

func (n notation) value(t testing.TB, schema string, v reflect.Value) any {
	t.Helper()
	if kind, rest, ok := strings.Cut(schema, "<"); ok {
		return n.composed(t, kind, splitSchema(rest[:len(rest)-1]), v)
	}
	switch schema {
	case "void":
		return nil
	case "string":
		return stringNotation(v.String())
	case "bool":
		return v.Bool()
	}
	if v.CanInt() {
		return json.Number(fmt.Sprint(v.Int()))
	}
	if v.CanUint() {
		return json.Number(fmt.Sprint(v.Uint()))
	}
	typ, ok := n.types[schema]
	if !ok || typ.Kind != "struct" {
		t.Fatalf("schema %q for a Go %v", schema, v.Type())
	}
	out := map[string]any{}
	var ordinary []reflect.Value
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.Name != "_" && !strings.HasPrefix(f.Tag.Get("pack"), "compat=") {
			ordinary = append(ordinary, v.Field(i))
		}
	}
	if len(ordinary) != len(typ.Fields) {
		t.Fatalf("%s has %d fields, %v has %d", schema, len(typ.Fields), v.Type(), len(ordinary))
	}
	for i, f := range typ.Fields {
		out[f.Name] = n.value(t, f.Type, ordinary[i])
	}
	return out
}

func (n notation) composed(t testing.TB, kind string, args []string, v reflect.Value) any {
	t.Helper()
	switch kind {
	case "tuple":
		out := []any{}
		fs := fields(v)
		if r, ok := v.Interface().(BatchReplicaClearRequest); ok && len(args) == 3 {
			if r.TenantID != DefaultTenant {
				t.Errorf("request of release 0.3.13 is for tenant %q", r.TenantID)
			}
			fs = fs[:3]
		}
		if len(fs) != len(args) {
			t.Fatalf("%v has %d fields, want %d", v.Type(), len(fs), len(args))
		}
		for i, a := range args {
			out = append(out, n.value(t, a, fs[i]))
		}
		return out
	case "vector":
		out := []any{}
		for i := range v.Len() {
			out = append(out, n.value(t, args[0], v.Index(i)))
		}
		return out
	case "optional":
		if v.IsNil() {
			return nil
		}
		return map[string]any{"$some": n.value(t, args[0], v.Elem())}
	case "expected":
		if code := v.FieldByName("Code"); !code.IsZero() {
			err := n.value(t, args[1], code)
			if err == json.Number("-2147483647") { // how an error of number zero is held
				err = json.Number("0")
			}
			return map[string]any{"err": err}
		}
		return map[string]any{"ok": n.value(t, args[0], v.FieldByName("Value"))}
	case "map":
		pairs := []any{}
		entries := v.FieldByName("Entries")
		for i := range entries.Len() {
			e := entries.Index(i)
			pairs = append(pairs, []any{n.value(t, args[0], e.Field(0)), n.value(t, args[1], e.Field(1))})
		}
		return map[string]any{"$map": sorted(pairs)}
	case "variant":
		index := int(v.FieldByName("Index").Uint())
		alt := fields(v)[1+index]
		if alt.Kind() == reflect.Pointer {
			alt = alt.Elem()
		}
		return map[string]any{
			"$index": json.Number(fmt.Sprint(index)), "$type": args[index],
			"value": n.value(t, args[index], alt),
		}
	}
	t.Fatalf("unknown schema %s<...>", kind)
	return nil
}

func stringNotation(s string) any {
	if utf8.ValidString(s) {
		return s
	}
	return map[string]any{"$hex": hex.EncodeToString([]byte(s))}
}

// sorted orders map entries, whose order means nothing.
func sorted(pairs []any) []any {
	slices.SortFunc(pairs, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return pairs
}

// expand reads a value of the vectors and replaces its abbreviations by what they stand for.
func expand(t testing.TB, raw json.RawMessage) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return expandValue(t, v)
}

func expandValue(t testing.TB, v any) any {
	t.Helper()
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = expandValue(t, v[i])
		}
		return v
	case map[string]any:
		count := func() int {
			n, err := v["count"].(json.Number).Int64()
			if err != nil {
				t.Fatal(err)
			}
			return int(n)
		}
		if s, ok := v["$repeat"].(string); ok {
			return strings.Repeat(s, count())
		}
		if s, ok := v["$seq_prefix"].(string); ok {
			list := []any{}
			for i := range count() {
				list = append(list, fmt.Sprint(s, i))
			}
			return list
		}
		if e, ok := v["$repeat_elem"]; ok {
			list := []any{}
			for range count() {
				list = append(list, expandValue(t, e))
			}
			return list
		}
		if pairs, ok := v["$map"].([]any); ok {
			return map[string]any{"$map": sorted(expandValue(t, pairs).([]any))}
		}
		for k := range v {
			v[k] = expandValue(t, v[k])
		}
		return v
	}
	return v
}

// equalNotation compares two values in expanded notation.
func equalNotation(a, b any) bool { return reflect.DeepEqual(a, b) }
