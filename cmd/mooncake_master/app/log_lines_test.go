package app

import (
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
)

func TestRecordsAreLines(t *testing.T) {
	long := strings.Repeat("é", maxLogLine)
	tests := []struct{ name, message, value, want string }{
		{"plain", "segment mounted", "s1", "segment mounted: name=s1\n"},
		{"line breaks", "segment mounted", "a\nb [ERROR] c", `\n  | b [ERROR] c`},
		{"in the message", "a\nb", "x", `a\nb: name=x`},
		{"long", "segment mounted", long, "more bytes)\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out strings.Builder
			log := hclog.New(&hclog.LoggerOptions{Output: lines{&out}, DisableTime: true})
			log.Info(test.message, "name", test.value)
			got := out.String()
			if strings.Count(got, "\n") != 1 || !strings.HasSuffix(got, "\n") || !strings.Contains(got, test.want) {
				t.Errorf("%.300q, want one line with %q", got, test.want)
			}
			if len(got) > maxLogLine+100 || strings.ToValidUTF8(got, "?") != got {
				t.Errorf("%d bytes, end %q", len(got), got[len(got)-50:])
			}
		})
	}
}
