package connector

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"
)

// lineMost bounds a line that is repeated.
const lineMost = 4096

// parseLine understands JSON log lines with @level and @message, and takes everything else as
// a message: an error when a Go program dies of it, information otherwise.
func parseLine(text string) (hclog.Level, string, []any) {
	if len(text) > lineMost {
		text = text[:lineMost] + "..."
	}
	var fields map[string]any
	if !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &fields) != nil {
		level := hclog.Info
		if strings.HasPrefix(text, "panic: ") || strings.HasPrefix(text, "fatal error: ") {
			level = hclog.Error
		}
		return level, text, nil
	}
	message, _ := fields["@message"].(string)
	name, _ := fields["@level"].(string)
	level := hclog.LevelFromString(name)
	if level == hclog.NoLevel || level == hclog.Off {
		level = hclog.Info
	}
	var keys []string
	for key := range fields {
		if !strings.HasPrefix(key, "@") {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	var args []any
	for _, key := range keys {
		args = append(args, key, fields[key])
	}
	return level, message, args
}
