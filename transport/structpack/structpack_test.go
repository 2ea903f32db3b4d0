package structpack

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

type result[T, E any] struct {
	_     struct{} `pack:"expected"`
	Code  E
	Value T
}

type choice struct {
	_      struct{} `pack:"variant"`
	Index  uint8
	Number uint32
	Text   *string
	Void   *struct{}
}

type dict struct {
	_       struct{} `pack:"map"`
	Entries []struct {
		Key   string
		Value uint16
	}
}

type padded struct {
	_ struct{} `pack:"trivial"`
	A uint8
	B uint32
}

type inner struct {
	A     uint8
	Extra *uint64 `pack:"compat=2"`
}

type outer struct {
	List  []inner
	Maybe *inner
	Pick  result[inner, uint8]
	First *string `pack:"compat=1"`
}

func ptr[T any](v T) *T { return &v }

// check encodes v, compares with the payload and the literal, and reads it back.
func check[T any](t *testing.T, v T, literal, payload string) {
	t.Helper()
	c := For[T]()
	if got := hex.EncodeToString(c.Literal()); got != literal {
		t.Errorf("%T: literal %s, want %s", v, got, literal)
	}
	b := c.Append(nil, &v, Form{Literal: true})
	start := 5 + len(c.Literal()) + 1
	if got := hex.EncodeToString(b[start:]); got != payload {
		t.Errorf("%T: payload %s, want %s", v, got, payload)
	}
	var back T
	if err := c.Decode(b, &back); err != nil || !reflect.DeepEqual(back, v) {
		t.Errorf("%T: read back as %+v, %v; want %+v", v, back, err, v)
	}
}

func TestTypes(t *testing.T) {
	check(t, true, "0b", "01")
	check(t, int8(-2), "05", "fe")
	check(t, uint8(2), "06", "02")
	check(t, int16(-2), "07", "feff")
	check(t, uint16(2), "08", "0200")
	check(t, int32(-2), "01", "feffffff")
	check(t, uint32(2), "02", "02000000")
	check(t, int64(-2), "03", "feffffffffffffff")
	check(t, uint64(2), "04", "0200000000000000")
	check(t, float32(1), "11", "0000803f")
	check(t, float64(1), "12", "000000000000f03f")
	check(t, "ab", "800c", "026162")
	check(t, struct{}{}, "fa", "")
	check(t, []uint16{1, 2}, "8408", "0201000200")
	check(t, []bool{true, false}, "840b", "020100")
	check(t, []string{"a", ""}, "84800c", "02016100")
	check(t, [][]string{{"a"}, {"b", "c"}}, "8484800c", "0201016102016201"+"63")
	check(t, make([]struct{}, 3), "84fa", "03")
	check(t, ptr(uint8(7)), "8506", "0107")
	check(t, (*uint8)(nil), "8506", "00")
	check(t, struct {
		A uint8
		B string
	}{1, "x"}, "fd06800cff", "010178")
	check(t, padded{A: 1, B: 2}, "fd06028585ff", "0100000002000000")
	check(t, result[string, int32]{Value: "v"}, "87800c01", "010176")
	check(t, result[string, int32]{Code: -1}, "87800c01", "00ffffffff")
	check(t, choice{Number: 5}, "8602800cfaff", "0005000000")
	check(t, choice{Index: 1, Text: ptr("t")}, "8602800cfaff", "010174")
	check(t, choice{Index: 2, Void: &struct{}{}}, "8602800cfaff", "02")
	check(t, dict{Entries: []struct {
		Key   string
		Value uint16
	}{{"b", 2}, {"a", 1}}}, "82800c08", "0201620200"+"01610100")
}

func TestSizeNumber(t *testing.T) {
	for v, want := range map[uint64]string{0: "81", 8: "89", 126: "ff", 127: "0182", 1000: "7088"} {
		if got := hex.EncodeToString(sizeNumber(v)); got != want {
			t.Errorf("%d is written %s, want %s", v, got, want)
		}
	}
}

func TestSelectedNilIsZero(t *testing.T) {
	c := For[choice]()
	v := choice{Index: 1}
	b := c.Append(nil, &v, Form{})
	if got := hex.EncodeToString(b[4:]); got != "0100" || v.Text != nil {
		t.Errorf("payload %s, text %v", got, v.Text)
	}
	defer func() {
		if recover() == nil {
			t.Error("an index that selects nothing was written")
		}
	}()
	c.Append(nil, &choice{Index: 3}, Form{})
}

// TestStaleAlternatives decodes one alternative after another into one value.
func TestStaleAlternatives(t *testing.T) {
	c := For[choice]()
	v := choice{Number: 9}
	for _, want := range []choice{{Index: 1, Text: ptr("t")}, {Number: 5}, {Index: 2, Void: &struct{}{}}} {
		if err := c.Decode(c.Append(nil, &want, Form{}), &v); err != nil || !reflect.DeepEqual(v, want) {
			t.Errorf("%+v, %v; want %+v", v, err, want)
		}
	}
}

func TestErrorOfNumberZeroStaysAnError(t *testing.T) {
	for _, tt := range []struct {
		decode func([]byte) (failed int, again []byte)
		body   string
	}{
		{func(b []byte) (int, []byte) {
			c := For[result[bool, uint8]]()
			var v result[bool, uint8]
			if err := c.Decode(b, &v); err != nil {
				t.Error(err)
			}
			_, failed := c.Tally(&v)
			return failed, c.Append(nil, &v, Form{})
		}, "\x00\x00"},
		{func(b []byte) (int, []byte) {
			c := For[result[bool, int32]]()
			var v result[bool, int32]
			if err := c.Decode(b, &v); err != nil {
				t.Error(err)
			}
			_, failed := c.Tally(&v)
			return failed, c.Append(nil, &v, Form{})
		}, "\x00\x00\x00\x00\x00"},
	} {
		hash := For[result[bool, uint8]]().Hash()
		if len(tt.body) > 2 {
			hash = For[result[bool, int32]]().Hash()
		}
		b := append([]byte{byte(hash), byte(hash >> 8), byte(hash >> 16), byte(hash >> 24)}, tt.body...)
		if failed, again := tt.decode(b); failed != 1 || !bytes.Equal(again, b) {
			t.Errorf("%d failed, written again as %x, want %x", failed, again, b)
		}
	}
}

// TestCompatiblePasses follows the order of the compatible part: by version, then by
// declaration, through lists, optionals and results.
func TestCompatiblePasses(t *testing.T) {
	c := For[outer]()
	if got := c.Versions(); !reflect.DeepEqual(got, []int{1, 2}) {
		t.Fatalf("versions %v", got)
	}
	v := outer{
		List:  []inner{{A: 1, Extra: ptr(uint64(0x11))}, {A: 2}},
		Maybe: &inner{A: 3, Extra: ptr(uint64(0x33))},
		Pick:  result[inner, uint8]{Value: inner{A: 4, Extra: ptr(uint64(0x44))}},
		First: ptr("f"),
	}
	b := c.Append(nil, &v, Form{Compat: true})
	want := "0201020103" + "0104" + // ordinary
		"010166" + // version 1
		"011100000000000000" + "00" + "013300000000000000" + "014400000000000000" // version 2
	if got := hex.EncodeToString(b[7:]); got != want {
		t.Errorf("payload\n%s, want\n%s", got, want)
	}
	used := outer{List: []inner{{}, {}, {Extra: ptr(uint64(9))}}, Maybe: &inner{Extra: ptr(uint64(9))}}
	for what, back := range map[string]*outer{"fresh": {}, "used": &used} {
		if form, err := c.DecodeForm(b, back); err != nil || !form.Compat || !reflect.DeepEqual(*back, v) {
			t.Errorf("%s: %+v, %v, %v", what, *back, form, err)
		}
	}
	old := c.Append(nil, &v, Form{})
	if err := c.Decode(old, &used); err != nil || used.First != nil || used.List[0].Extra != nil || used.Maybe.Extra != nil || used.Pick.Value.Extra != nil {
		t.Errorf("without compatible part: %+v, %v", used, err)
	}
	c.Reset(&used)
	if len(used.List) != 0 || used.Maybe != nil || used.Pick.Value.A != 0 {
		t.Errorf("after reset: %+v", used)
	}

	// A size in the compatible part counts towards the width of all sizes.
	v.First = ptr(strings.Repeat("x", 300))
	b = c.Append(nil, &v, Form{Compat: true})
	if b[4] != 0x09 {
		t.Errorf("metainfo %#x, want 0x09", b[4])
	}
	var back outer
	if err := c.Decode(b, &back); err != nil || !reflect.DeepEqual(back, v) {
		t.Errorf("%+v, %v", back, err)
	}
}

func TestElementsWithoutBytes(t *testing.T) {
	c := For[[]struct{}]()
	h := c.Hash() | 1
	b := []byte{byte(h), byte(h >> 8), byte(h >> 16), byte(h >> 24), 0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}
	var v []struct{}
	if err := c.Decode(b, &v); err != nil || len(v) != math.MaxInt {
		t.Errorf("%d elements, %v", len(v), err)
	}
	b[12] = 0xff
	if err := c.Decode(b, &v); !errors.Is(err, ErrShort) {
		t.Errorf("2^64-1 elements: %v", err)
	}
}

func TestTallyOfOtherTypes(t *testing.T) {
	for _, n := range []int{
		func() int { i, _ := For[string]().Tally(ptr("x")); return i }(),
		func() int { i, _ := For[outer]().Tally(&outer{}); return i }(),
		func() int { i, _ := For[[]string]().Tally(&[]string{"x"}); return i }(),
	} {
		if n != 0 {
			t.Errorf("%d items in a value that is no result", n)
		}
	}
}

func TestArguments(t *testing.T) {
	if c := ForArguments[struct{}](); c.HasBody() || c.Hash() != 0 || c.Literal() != nil {
		t.Error("an empty argument list has a body")
	}
	one := ForArguments[struct{ A string }]()
	if !one.HasBody() || one.Hash() != For[string]().Hash() {
		t.Error("a single argument is not written as itself")
	}
}

func TestTypesWithoutForm(t *testing.T) {
	type recursive struct{ Next []recursive }
	for name, f := range map[string]func(){
		"int":                  func() { For[int]() },
		"array":                func() { For[[2]uint8]() },
		"Go map":               func() { For[map[string]string]() },
		"recursive":            func() { For[recursive]() },
		"arguments of a slice": func() { ForArguments[[]string]() },
		"unknown marker": func() {
			For[struct {
				_ struct{} `pack:"other"`
				A uint8
			}]()
		},
		"compatible value": func() {
			For[struct {
				A uint8 `pack:"compat=1"`
			}]()
		},
		"version 0": func() {
			For[struct {
				A *uint8 `pack:"compat=0"`
			}]()
		},
		"nested compatible": func() {
			For[struct {
				A *inner `pack:"compat=1"`
			}]()
		},
		"elements of compatible fields only": func() {
			For[[]struct {
				A *uint8 `pack:"compat=1"`
			}]()
		},
		"expected without value": func() {
			For[struct {
				_    struct{} `pack:"expected"`
				Code int32
			}]()
		},
		"expected with text for a code": func() { For[result[bool, string]]() },
		"variant without index": func() {
			For[struct {
				_    struct{} `pack:"variant"`
				A, B uint8
			}]()
		},
		"map without entries": func() {
			For[struct {
				_ struct{} `pack:"map"`
				A []uint8
			}]()
		},
		"map of other entries": func() {
			For[struct {
				_       struct{} `pack:"map"`
				Entries []uint8
			}]()
		},
		"trivial with text": func() {
			For[struct {
				_ struct{} `pack:"trivial"`
				A string
			}]()
		},
	} {
		func() {
			defer func() {
				p := recover()
				if text, ok := p.(string); !ok || !strings.HasPrefix(text, "structpack: ") {
					t.Errorf("%s: %v, want a refusal", name, p)
				}
			}()
			f()
		}()
	}
	// A refused type leaves nothing behind that would spoil the next.
	if For[recursiveFree]().Hash() == 0 {
		t.Error("no hash")
	}
}

type recursiveFree struct{ A, B []string }
