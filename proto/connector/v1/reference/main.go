// Command reference prints the reference of the connector contract for people, made from the
// comments of connector.proto, so that there is one text and not two.
//
//	go run ./proto/connector/v1/reference connector.proto contract.md
//
// It reads the parts of the language that connector.proto uses: messages, enums, one level of
// oneof, services; comments stand above what they are about.
package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

//go:generate go run . ../connector.proto ../../../../docs/connectors/contract.md

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: reference PROTO MARKDOWN")
		os.Exit(1)
	}
	source, err := os.ReadFile(os.Args[1])
	if err == nil {
		err = os.WriteFile(os.Args[2], []byte(render(parse(string(source)))), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// definition is a message, an enum, a service, or a part of one.
type definition struct {
	keyword string // message, enum, service, rpc; "" for a field or value
	name    string
	detail  string // type of a field, number of a value, signature of a call
	text    string // the comment, as paragraphs
	parts   []definition
}

var (
	block = regexp.MustCompile(`^(message|enum|service|oneof) (\w+) \{(\})?$`)
	call  = regexp.MustCompile(`^rpc (\w+)\((\w+)\) returns \((stream )?(\w+)\);$`)
	field = regexp.MustCompile(`^((?:repeated )?[\w.]+|map<[\w, ]+>) (\w+) = (\d+);$`)
	value = regexp.MustCompile(`^([A-Z0-9_]+) = (\d+);$`)
)

// parse returns what the file says about itself, and its definitions in their order.
func parse(source string) (about string, definitions []definition) {
	var comment []string
	var open []*definition
	for line := range strings.Lines(source) {
		line = strings.TrimSpace(line)
		if text, ok := strings.CutPrefix(line, "//"); ok {
			comment = append(comment, strings.TrimPrefix(text, " "))
			continue
		}
		text := strings.Join(comment, "\n")
		comment = nil
		if strings.HasPrefix(line, "syntax ") {
			about = text
			continue
		}
		d := definition{text: text}
		if m := block.FindStringSubmatch(line); m != nil {
			d.keyword, d.name = m[1], m[2]
			if m[3] == "" {
				open = append(open, &d)
				continue
			}
		} else if line == "}" {
			d = *open[len(open)-1]
			open = open[:len(open)-1]
		} else if m := call.FindStringSubmatch(line); m != nil {
			d.keyword, d.name, d.detail = "rpc", m[1], fmt.Sprintf("%s → %s%s", m[2], m[3], m[4])
		} else if m := field.FindStringSubmatch(line); m != nil {
			d.name, d.detail = m[2], m[1]
		} else if m := value.FindStringSubmatch(line); m != nil {
			d.name, d.detail = m[1], m[2]
		} else {
			continue
		}
		if len(open) > 0 {
			parent := open[len(open)-1]
			parent.parts = append(parent.parts, d)
		} else {
			definitions = append(definitions, d)
		}
	}
	return about, definitions
}

// render writes it all as Markdown.
func render(about string, definitions []definition) string {
	var b strings.Builder
	b.WriteString("# The contract\n\n<!-- Made from proto/connector/v1/connector.proto by go generate; change the comments there. -->\n\n")
	b.WriteString(prose(about) + "\n")
	for _, keyword := range []string{"service", "message", "enum"} {
		title := map[string]string{"service": "Calls", "message": "Messages", "enum": "Enumerations"}[keyword]
		b.WriteString("\n## " + title + "\n")
		for _, d := range definitions {
			if d.keyword == keyword {
				d.render(&b)
			}
		}
	}
	return b.String()
}

func (d *definition) render(b *strings.Builder) {
	if d.keyword == "service" {
		b.WriteString("\n" + prose(d.text) + "\n")
		for _, c := range d.parts {
			fmt.Fprintf(b, "\n### %s\n\n`%s`\n\n%s\n", c.name, c.detail, prose(c.text))
		}
		return
	}
	fmt.Fprintf(b, "\n### %s\n\n%s\n", d.name, prose(d.text))
	if len(d.parts) == 0 {
		return
	}
	columns := "\n| field | type | meaning |\n|---|---|---|\n"
	if d.keyword == "enum" {
		columns = "\n| value | number | meaning |\n|---|---|---|\n"
	}
	b.WriteString(columns)
	for _, p := range d.parts {
		if p.keyword != "oneof" {
			row(b, p, "")
			continue
		}
		for _, choice := range p.parts {
			row(b, choice, "one of `"+p.name+"`: ")
		}
	}
}

func row(b *strings.Builder, d definition, prefix string) {
	fmt.Fprintf(b, "| `%s` | %s | %s%s |\n", d.name, d.detail, prefix, strings.ReplaceAll(strings.Join(strings.Fields(d.text), " "), "|", `\|`))
}

// handshake is a line that is to be copied, not read.
var handshake = regexp.MustCompile(`^ +(\d\|\S.*)$`)

// prose turns a comment into Markdown: lists keep their numbers, what is to be copied its form.
func prose(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if m := handshake.FindStringSubmatch(line); m != nil {
			line = "\n         " + m[1] + "\n" // a block of its own within the list
		} else {
			line = strings.TrimPrefix(line, " ") // of lists, which are set in by one more
		}
		b.WriteString(line + "\n")
	}
	return strings.TrimSpace(b.String())
}
