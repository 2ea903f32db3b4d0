package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mooncake-go/mooncake-master/sdk/policydoc"
)

// remark is an error or a warning at a place of a document.
type remark struct {
	Line    int    `json:"line"`             // 0: about the whole document
	Column  int    `json:"column,omitempty"` // 0: about the whole line
	Tenant  string `json:"tenant,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// verdict is what is to be said about a document.
type verdict struct {
	File      string   `json:"file"`
	Valid     bool     `json:"valid"`
	SHA256    string   `json:"sha256"`
	Tenants   int      `json:"tenants"`
	Requested uint64   `json:"requested_bytes"` // saturated
	Errors    []remark `json:"errors"`
	Warnings  []remark `json:"warnings"`

	text []byte
}

// judge checks a document as the master does.
func judge(file string, text []byte) *verdict {
	sum := sha256.Sum256(text)
	v := &verdict{File: file, SHA256: hex.EncodeToString(sum[:]), Errors: []remark{}, Warnings: []remark{}, text: text}
	doc, errs := policydoc.Check(text)
	for _, e := range errs {
		v.Errors = append(v.Errors, remark{e.Line, e.Column, e.Tenant, e.Message, e.Hint})
	}
	for _, w := range doc.Warnings {
		v.Warnings = append(v.Warnings, remark{Line: w.Line, Message: w.Message})
	}
	v.Valid = len(errs) == 0
	if v.Valid {
		v.Tenants = len(doc.Tenants)
		for _, tenant := range doc.Tenants {
			if v.Requested += tenant.Quota; v.Requested < tenant.Quota {
				v.Requested = math.MaxUint64
				break
			}
		}
	}
	return v
}

func (t *tool) policyCheck() *cobra.Command {
	strict := false
	cmd := &cobra.Command{
		Use:   "check FILE...",
		Short: "Check documents without a master, with the master's own parser",
		Long: `Check documents without a master, with the master's own parser: all errors with line and column.
Ends with status 1 if a document is not valid. "-" is standard input.`,
		Example: "  mooncakectl policy check tenants.yaml",
		Args:    takes(1, math.MaxInt),
		RunE: func(_ *cobra.Command, args []string) error {
			verdicts := []*verdict{}
			bad := false
			for _, name := range args {
				text, err := t.read(name, policydoc.MaxSize)
				if err != nil {
					return err
				}
				v := judge(name, text)
				verdicts = append(verdicts, v)
				bad = bad || !v.Valid || strict && len(v.Warnings) > 0
				if !t.json {
					t.printVerdict(v)
				}
			}
			if t.json {
				if err := t.printJSON(verdicts); err != nil {
					return err
				}
			}
			if bad {
				return errSaid
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "warnings are errors")
	return cmd
}

func (t *tool) printVerdict(v *verdict) {
	for _, r := range v.Errors {
		t.printRemark(v, r, "error", red)
	}
	for _, r := range v.Warnings {
		t.printRemark(v, r, "warning", yellow)
	}
	if !v.Valid {
		fmt.Fprintf(t.out, "%s: not valid, %s, %s\n", v.File, plural(len(v.Errors), "error"), plural(len(v.Warnings), "warning"))
		return
	}
	line := fmt.Sprintf("%s: %s, %s, %s requested", v.File, paint(t.colorOut, green, "valid"), plural(v.Tenants, "tenant"), size(v.Requested))
	if len(v.Warnings) > 0 {
		line += ", " + plural(len(v.Warnings), "warning")
	}
	fmt.Fprintln(t.out, line)
}

// printRemark writes "file:line:column: error: message (hint)" and the line with a mark under
// the place.
func (t *tool) printRemark(v *verdict, r remark, kind string, color style) {
	place := v.File
	if r.Line > 0 {
		place += fmt.Sprintf(":%d", r.Line)
	}
	if r.Column > 0 {
		place += fmt.Sprintf(":%d", r.Column)
	}
	fmt.Fprintf(t.out, "%s: %s %s", place, paint(t.colorOut, color, kind+":"), printable(r.Message))
	if r.Hint != "" {
		fmt.Fprintf(t.out, " (%s)", printable(r.Hint))
	}
	fmt.Fprintln(t.out)
	line, ok := v.line(r.Line)
	if !ok {
		return
	}
	fmt.Fprintf(t.out, "%6d | %s\n", r.Line, line)
	if before := []rune(line); r.Column > 0 && r.Column <= len(before)+1 {
		fmt.Fprintf(t.out, "       | %s%s\n", strings.Repeat(" ", columns(string(before[:r.Column-1]))), paint(t.colorOut, color, "^"))
	}
}

// line returns a line of the document if it is fit to be shown.
func (v *verdict) line(number int) (string, bool) {
	if number < 1 {
		return "", false
	}
	rest := string(v.text)
	for range number - 1 {
		_, after, found := strings.Cut(rest, "\n")
		if !found {
			return "", false
		}
		rest = after
	}
	line, _, _ := strings.Cut(rest, "\n")
	line = strings.ReplaceAll(strings.TrimRight(line, "\r"), "\t", " ")
	return line, len(line) <= 160 && line != "" && printable(line) == line
}

// document reads a policy that is about to be sent; one that is not valid is not worth asking
// a master about.
func (t *tool) document(name string) (*verdict, error) {
	text, err := t.read(name, policydoc.MaxSize)
	if err != nil {
		return nil, err
	}
	v := judge(name, text)
	if v.Valid {
		return v, nil
	}
	if !t.json {
		t.printVerdict(v)
		return nil, errSaid
	}
	r := v.Errors[0]
	f := failed("%s:%d:%d: %s", name, r.Line, r.Column, r.Message)
	return nil, f.hinting("mooncakectl policy check %s tells all errors", name)
}
