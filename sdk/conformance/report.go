package conformance

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Report holds the results of a Run, in the order of Cases.
type Report struct {
	// Command is what was run, with its arguments.
	Command string
	// Connector is the name and version that it gave itself, empty when it did not start.
	Connector string
	// Results has one entry for each case that was asked for.
	Results []Result
	// Took is how long all of it ran.
	Took time.Duration
}

// Failed reports whether a case failed.
func (r Report) Failed() bool { return r.count(Fail) > 0 }

func (r Report) count(s Status) int {
	n := 0
	for _, result := range r.Results {
		if result.Status == s {
			n++
		}
	}
	return n
}

func (r Report) summary() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped in %s", r.count(Pass), r.count(Fail), r.count(Skip), r.Took.Round(100*time.Millisecond))
}

func (r Report) title() string {
	if r.Connector == "" {
		return r.Command
	}
	return r.Connector + ": " + r.Command
}

// Table writes the report for people.
func (r Report) Table(w io.Writer) error {
	var text strings.Builder
	fmt.Fprintln(&text, r.title())
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, result := range r.Results {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", result.Status, result.Case, result.Took.Round(time.Millisecond), result.Reason)
	}
	_ = table.Flush() // to memory
	fmt.Fprintln(&text, r.summary())
	return write(w, text.String())
}

// TAP writes the report in version 13 of the Test Anything Protocol.
func (r Report) TAP(w io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "TAP version 13\n# %s\n1..%d\n", r.title(), len(r.Results))
	for i, result := range r.Results {
		switch result.Status {
		case Pass:
			fmt.Fprintf(&text, "ok %d - %s\n", i+1, result.Case)
		case Skip:
			fmt.Fprintf(&text, "ok %d - %s # SKIP %s\n", i+1, result.Case, result.Reason)
		default:
			fmt.Fprintf(&text, "not ok %d - %s\n  ---\n  message: %q\n  asks: %q\n  ...\n", i+1, result.Case, result.Reason, result.About)
		}
	}
	fmt.Fprintf(&text, "# %s\n", r.summary())
	return write(w, text.String())
}

// JUnit writes the report as the XML that build servers read: one suite, one case each.
func (r Report) JUnit(w io.Writer) error {
	type message struct {
		Text string `xml:"message,attr"`
	}
	type testCase struct {
		Name    string   `xml:"name,attr"`
		Class   string   `xml:"classname,attr"`
		Seconds string   `xml:"time,attr"`
		Failure *message `xml:"failure"`
		Skipped *message `xml:"skipped"`
	}
	suite := struct {
		XMLName  xml.Name   `xml:"testsuite"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"`
		Skipped  int        `xml:"skipped,attr"`
		Seconds  string     `xml:"time,attr"`
		Cases    []testCase `xml:"testcase"`
	}{Name: r.title(), Tests: len(r.Results), Failures: r.count(Fail), Skipped: r.count(Skip), Seconds: seconds(r.Took)}
	for _, result := range r.Results {
		group, _, _ := strings.Cut(result.Case, "/")
		c := testCase{Name: result.Case, Class: "connector." + group, Seconds: seconds(result.Took)}
		switch result.Status {
		case Fail:
			c.Failure = &message{result.Reason}
		case Skip:
			c.Skipped = &message{result.Reason}
		}
		suite.Cases = append(suite.Cases, c)
	}
	text, err := xml.MarshalIndent(suite, "", "  ")
	if err != nil {
		return err
	}
	return write(w, xml.Header+string(text)+"\n")
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

func write(w io.Writer, text string) error {
	_, err := io.WriteString(w, text)
	return err
}
