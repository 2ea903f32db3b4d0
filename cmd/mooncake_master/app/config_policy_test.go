package app

import (
	"maps"
	"testing"
)

func TestConnectorOptions(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"":                                nil,
		"  ":                              nil,
		"a=1":                             {"a": "1"},
		"user=root, password_file=/x y=z": {"user": "root", "password_file": "/x y=z"},
		`a=1\,2,b=c\\,d=\e`:               {"a": "1,2", "b": `c\`, "d": `\e`},
		"a=":                              {"a": ""},
	} {
		t.Run(text, func(t *testing.T) {
			got, err := (&TenantsConfig{ConnectorOptions: text}).Options()
			if err != nil || !maps.Equal(got, want) {
				t.Errorf("%q, %v, want %q", got, err, want)
			}
		})
	}
}
