package app

import (
	"fmt"
	"strings"
)

// Options returns the settings for the connector by name, nil when there are none. They are
// written NAME=VALUE with commas between them; within a value \, stands for a comma and \\ for
// a backslash.
func (t *TenantsConfig) Options() (map[string]string, error) {
	if strings.TrimSpace(t.ConnectorOptions) == "" {
		return nil, nil
	}
	options := map[string]string{}
	for _, pair := range splitEscaped(t.ConnectorOptions) {
		name, value, ok := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		switch _, twice := options[name]; {
		case !ok || name == "":
			return nil, fmt.Errorf(`want NAME=VALUE separated by commas, got '%s' (a comma within a value is written \,)`, pair)
		case twice:
			return nil, fmt.Errorf("the option '%s' is given twice", name)
		}
		options[name] = value
	}
	return options, nil
}

// splitEscaped splits at the commas that have no backslash before them, and takes those
// backslashes away.
func splitEscaped(s string) []string {
	var parts []string
	var part strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && (s[i+1] == ',' || s[i+1] == '\\'):
			i++
			part.WriteByte(s[i])
		case s[i] == ',':
			parts = append(parts, part.String())
			part.Reset()
		default:
			part.WriteByte(s[i])
		}
	}
	return append(parts, part.String())
}
