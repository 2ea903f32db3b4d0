package main

import (
	"fmt"
	"hash/fnv"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mooncake-go/mooncake-master/core/errcode"
	"github.com/mooncake-go/mooncake-master/core/object"
	"github.com/mooncake-go/mooncake-master/core/segment"
	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// incomparable are the fields that say nothing when two masters are compared: ids, addresses
// and moments.
var incomparable = map[string]bool{
	"ReplicaDescriptor.ID": true, "BufferDescriptor.Address": true,
	"CreatedAtMsEpoch": true, "LastUpdatedAtMsEpoch": true, "CreatedAtMs": true, "UpdatedAtMs": true,
}

// unordered are the types of lists whose order the original leaves to a hash table.
var unordered = map[reflect.Type]bool{
	reflect.TypeFor[[]wire.OffloadTaskItem]():   true,
	reflect.TypeFor[[]wire.PromotionTaskItem](): true,
	reflect.TypeFor[[]wire.NoFSegment]():        true,
}

// text writes values for people and for comparison.
type text struct {
	strings.Builder
	whole bool                    // with what is incomparable
	names map[segment.UUID]string // what to call an id
}

// argumentsText is a request as it is shown.
func argumentsText(v any) string {
	t := text{whole: true}
	t.write(reflect.ValueOf(v))
	return t.String()
}

// answerText is an answer as it is compared.
func answerText(v any, names map[segment.UUID]string) string {
	t := text{names: names}
	t.write(reflect.ValueOf(v))
	return t.String()
}

func (t *text) write(v reflect.Value) {
	switch x := v.Interface().(type) {
	case errcode.Code:
		t.WriteString(strings.ReplaceAll(x.Error(), " ", ""))
		return
	case segment.UUID:
		if name, ok := t.names[x]; ok {
			t.WriteString(name)
		} else {
			t.WriteString(x.String())
		}
		return
	case object.Location:
		t.location(x)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		t.structure(v)
	case reflect.Slice:
		t.list(v)
	case reflect.Pointer:
		if v.IsNil() {
			t.WriteString("nil")
		} else {
			t.write(v.Elem())
		}
	case reflect.String:
		t.WriteString(short(v.String()))
	default:
		fmt.Fprint(t, v.Interface())
	}
}

// short quotes a text; the middle of a long one is replaced by its hash.
func short(s string) string {
	if len(s) <= 600 {
		return strconv.Quote(s)
	}
	h := fnv.New64a()
	h.Write([]byte(s))
	return fmt.Sprintf("%q… (%d bytes, %x)", s[:100], len(s), h.Sum64())
}

func (t *text) location(l object.Location) {
	switch l.Index {
	case object.LocationMemory:
		t.write(reflect.ValueOf(l.Memory))
	case object.LocationNoF:
		t.write(reflect.ValueOf(l.NoF))
	case object.LocationDisk:
		t.write(reflect.ValueOf(l.Disk))
	case object.LocationLocalDisk:
		t.write(reflect.ValueOf(l.LocalDisk))
	default:
		t.write(reflect.ValueOf(l.DFS))
	}
}

func (t *text) structure(v reflect.Value) {
	kind := v.Type()
	if f, ok := kind.FieldByName("_"); ok && f.Tag.Get("pack") == "expected" {
		if code := v.FieldByName("Code"); !code.IsZero() {
			t.write(code)
		} else {
			t.write(v.FieldByName("Value"))
		}
		return
	}
	if !strings.Contains(kind.Name(), "[") {
		t.WriteString(strings.TrimSuffix(kind.Name(), "Descriptor"))
	}
	t.WriteByte('{')
	first := true
	for i := range kind.NumField() {
		f := kind.Field(i)
		if !f.IsExported() || !t.whole && (incomparable[f.Name] || incomparable[kind.Name()+"."+f.Name]) || t.whole && v.Field(i).IsZero() {
			continue
		}
		if !first {
			t.WriteByte(' ')
		}
		first = false
		t.WriteString(f.Name + ":")
		t.write(v.Field(i))
	}
	t.WriteByte('}')
}

func (t *text) list(v reflect.Value) {
	var all []string
	for i := range v.Len() {
		one := text{whole: t.whole, names: t.names}
		one.write(v.Index(i))
		all = append(all, one.String())
	}
	if isMap := v.Type().Elem().Name(); strings.HasPrefix(isMap, "Entry[") || unordered[v.Type()] {
		slices.Sort(all)
	}
	t.WriteString("[" + strings.Join(all, ", ") + "]")
}

// scrub replaces in an HTTP body what can't be compared.
var scrubs = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`"buffer_address_":\d+`), `"buffer_address_":0`},
	{regexp.MustCompile(`"allocator_used_bytes":\d+`), `"allocator_used_bytes":0`},
	{regexp.MustCompile(`"allocator_usage_percent":[0-9.E+-]+`), `"allocator_usage_percent":0`},
	{regexp.MustCompile(`"job_id":"[0-9-]+"`), `"job_id":""`},
	{regexp.MustCompile(`_ms_epoch":\d+`), `_ms_epoch":0`},
	{regexp.MustCompile(`Used\(bytes\): \d+`), `Used(bytes): 0`},
}

func scrub(body string) string {
	for _, s := range scrubs {
		body = s.pattern.ReplaceAllString(body, s.with)
	}
	return body
}
