package tenant

import "testing"

func TestNormalizesEmptyTenantToDefault(t *testing.T) {
	for in, want := range map[string]string{"": Default, "default": Default, "tenant-a": "tenant-a", " a ": " a ", "A": "A"} {
		if got := Normalize(in); got != want {
			t.Errorf("Normalize(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestValidatesCanonicalTenantName(t *testing.T) {
	tests := []struct {
		name string
		want bool
	}{
		{"default", true},
		{"tenant-a", true},
		{"tenant b", true},
		{"mandant-ü", true},
		{"\x80\xff", true},
		{"a/../b:c", true},
		{"a_", true},
		{"", false},
		{"_x", false},
		{"_", false},
		{"a\nb", false},
		{"a\x00b", false},
		{"a\x1f", false},
		{"a\x7f", false},
	}
	for _, tt := range tests {
		if got := Valid(tt.name); got != tt.want {
			t.Errorf("Valid(%q) = %v, want %v", tt.name, got, tt.want)
		}
	}
}
