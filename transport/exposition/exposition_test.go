package exposition

import (
	"math"
	"testing"
)

func TestAPage(t *testing.T) {
	b := AppendHead(nil, "jobs_total", "jobs\nby \\ kind", Counter)
	b = AppendSample(b, "jobs_total", 3, "kind", "a\"b\\c\nd", "whose", "\xff")
	b = AppendSample(b, "jobs_total", 0.25)
	b = AppendSample(b, "jobs_total", math.Inf(1))
	b = AppendSample(b, "jobs_total", 1<<40)
	want := "# HELP jobs_total jobs\\nby \\\\ kind\n# TYPE jobs_total counter\n" +
		"jobs_total{kind=\"a\\\"b\\\\c\\nd\",whose=\"\uFFFD\"} 3\njobs_total 0.25\njobs_total +Inf\njobs_total 1099511627776\n"
	if string(b) != want {
		t.Errorf("got  %q\nwant %q", b, want)
	}
}
