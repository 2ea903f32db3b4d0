package app

import (
	"encoding/xml"
	"fmt"
	"runtime"
	"strings"
)

// help answers the flags that print and exit. --version wins over the others and all of them
// over errors on the command line.
func (p *parser) help() (Outcome, bool) {
	text := func(name string) string {
		if v, ok := p.values[name]; ok {
			return v.parsed.(string)
		}
		return ""
	}
	all := func(*Flag) bool { return true }
	switch {
	case p.boolOf("version"):
		return Outcome{Stdout: VersionText(p.env.Version)}, true
	case p.boolOf("helpxml"):
		return Outcome{Stdout: p.helpXML(), ExitCode: 1}, true
	case p.boolOf("helpshort"):
		return p.helpText(func(f *Flag) bool { return f.Effect == Active && f.Group != GroupBuiltin }), true
	case p.boolOf("help"), p.boolOf("helpfull"), p.boolOf("helppackage"):
		return p.helpText(all), true
	case text("helpon") != "":
		part := strings.ToLower(text("helpon"))
		return p.helpText(func(f *Flag) bool { return strings.Contains(strings.ToLower(string(f.Group)), part) }), true
	case text("helpmatch") != "":
		part := strings.ToLower(text("helpmatch"))
		return p.helpText(func(f *Flag) bool {
			return strings.Contains(strings.ToLower(string(f.Group)), part) || strings.Contains(f.Name, part)
		}), true
	}
	return Outcome{}, false
}

// VersionText is what --version prints.
func VersionText(version string) string {
	return "mooncake_master version " + version + "\nbuilt with " + runtime.Version() + " for " + runtime.GOOS + "/" + runtime.GOARCH + "\n"
}

func (p *parser) helpText(wanted func(*Flag) bool) Outcome {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: a Mooncake Store master\n", p.env.Program)
	any := false
	for _, g := range groups {
		head := false
		for i := range table {
			f := &table[i]
			if f.Group != g || !wanted(f) {
				continue
			}
			if !head {
				fmt.Fprintf(&b, "\n  %s:\n", g)
				head, any = true, true
			}
			b.WriteString(wrap(fmt.Sprintf("-%s (%s%s) type: %s default: %s", f.Name, f.Help, f.note(), f.Kind, quotedDefault(f)), 4, 80))
		}
	}
	if !any {
		b.WriteString("\n  No flags matched: use -help\n")
	}
	return Outcome{Stdout: b.String(), ExitCode: 1}
}

// note says in parentheses what keeps a flag from having an effect.
func (f *Flag) note() string {
	switch f.Effect {
	case Waiting:
		return "; no effect yet: this build is without " + f.Feature
	case Neutral:
		return "; no effect: " + f.Feature
	default:
		return ""
	}
}

func quotedDefault(f *Flag) string {
	if f.Kind == String || f.Kind == Duration {
		return `"` + f.Default + `"`
	}
	return f.Default
}

// wrap breaks text at blanks; lines after the first are indented two more.
func wrap(text string, indent, width int) string {
	var b strings.Builder
	line := strings.Repeat(" ", indent)
	empty := true
	for _, word := range strings.Fields(text) {
		if !empty && len(line)+1+len(word) > width {
			b.WriteString(line + "\n")
			line, empty = strings.Repeat(" ", indent+2), true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	b.WriteString(line + "\n")
	return b.String()
}

func (p *parser) helpXML() string {
	type flagXML struct {
		File    string `xml:"file"`
		Name    string `xml:"name"`
		Meaning string `xml:"meaning"`
		Default string `xml:"default"`
		Current string `xml:"current"`
		Type    string `xml:"type"`
	}
	doc := struct {
		XMLName xml.Name  `xml:"AllFlags"`
		Program string    `xml:"program"`
		Usage   string    `xml:"usage"`
		Flags   []flagXML `xml:"flag"`
	}{Program: p.env.Program, Usage: "a Mooncake Store master"}
	for i := range table {
		f := &table[i]
		current := f.Default
		if v, ok := p.values[f.Name]; ok {
			current = v.origin.Text
		}
		doc.Flags = append(doc.Flags, flagXML{string(f.Group), f.Name, f.Help + f.note(), f.Default, current, f.Kind.String()})
	}
	out, err := xml.MarshalIndent(doc, "", " ")
	if err != nil {
		panic("help as XML: " + err.Error()) // strings only; can not happen
	}
	return xml.Header + string(out) + "\n"
}

// Markdown returns the page docs/flags.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString(markdownHead)
	for _, g := range groups {
		fmt.Fprintf(&b, "\n## %s\n\n| Flag | Type | Default | Effect | Meaning |\n|---|---|---|---|---|\n", g)
		for i := range table {
			f := &table[i]
			if f.Group != g {
				continue
			}
			fmt.Fprintf(&b, "| `%s`%s | %s | %s | %s | %s |\n", f.Name, f.keyNote(), f.docType(), f.docDefault(), f.docEffect(), strings.ReplaceAll(f.Help, "|", `\|`))
		}
	}
	return b.String()
}

const markdownHead = `# Flags of mooncake_master

This page is written by the program from the table its parser uses; ` + "`go test ./cmd/mooncake_master/app -run TestDocs -update`" + ` renews it.

Syntax: ` + "`--name=value`, `-name=value`, `--name value`, `-name value`; `--name` and `--noname`" + ` for yes and no, where a value needs the =. Later ones win. A setting may also come
from a file named by ` + "`--flagfile`" + ` (one flag per line), from ` + "`FLAGS_name`" + ` of the environment with ` + "`--fromenv=name`" + `, and from the YAML or JSON file
named by ` + "`--config_path`" + `. A flag whose value is not the default wins over that file; a flag set to its default does not.

Durations are whole numbers with an optional unit ms, s, m or h; without a unit they are milliseconds.

Ports: 0 lets the system choose, and the port chosen is printed at start. For the RPC listener that is ` + "`--port=0`, or `--rpc_port=0`" + `
(` + "`rpc_port: 0`" + ` in the file) without ` + "`--port`; `--rpc_port=0`" + ` next to ` + "`--port`" + ` means the latter. A file without ` + "`rpc_port`" + ` means 50051.

Effect: "yes" flags do what they say. "not yet" flags are accepted and checked, and answered with a warning when they are not at their default,
because the feature is not part of this build. "not needed" flags tune machinery this program does not have.
`

func (f *Flag) keyNote() string {
	switch f.Key {
	case "":
		return ""
	case "-":
		return " (not in files)"
	default:
		return " (in files `" + strings.Join(strings.Fields(f.Key), "`, `") + "`)"
	}
}

func (f *Flag) docType() string {
	if f.Kind == Duration {
		return "duration"
	}
	return f.Kind.String()
}

func (f *Flag) docDefault() string {
	if f.Default == "" {
		return "empty"
	}
	return "`" + f.Default + "`"
}

func (f *Flag) docEffect() string {
	switch f.Effect {
	case Waiting:
		return "not yet: " + f.Feature
	case Neutral:
		return "not needed: " + f.Feature
	default:
		return "yes"
	}
}
