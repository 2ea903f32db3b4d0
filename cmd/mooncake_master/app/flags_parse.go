package app

import (
	"fmt"
	"sort"
	"strings"
)

// value is what a flag was set to and where.
type value struct {
	parsed any
	origin Origin
}

// parser carries the state of one reading of a command line. Errors are collected by flag
// name and reported sorted, as gflags does, because --undefok may still take some back and
// --help or --version come before them.
type parser struct {
	env      Environment
	values   map[string]value
	errors   map[string]string // by flag name, for the lines on stderr
	unknown  map[string]bool
	warnings []string
	fatal    string // ends parsing at once: a flag file that can not be read
	depth    int
}

// maxFlagFileDepth bounds flag files that name each other.
const maxFlagFileDepth = 16

func newParser(env Environment) *parser {
	return &parser{env: env, values: map[string]value{}, errors: map[string]string{}, unknown: map[string]bool{}}
}

// parse reads a whole command line, without the program name.
func (p *parser) parse(args []string) {
	for i := 0; i < len(args) && p.fatal == ""; i++ {
		arg := args[i]
		if arg == "--" {
			break
		}
		if len(arg) < 2 || arg[0] != '-' {
			// It means nothing here, and "--flag false" is a yes and a word that stands alone.
			p.warnings = append(p.warnings, fmt.Sprintf("the argument '%s' is ignored, a setting is written --name=value", arg))
			continue
		}
		name := strings.TrimPrefix(arg[1:], "-")
		name, text, hasText := strings.Cut(name, "=")
		flag := byName[name]
		if flag == nil {
			if bare, ok := strings.CutPrefix(name, "no"); ok && byName[bare] != nil {
				if byName[bare].Kind != Bool {
					p.errors[bare] = fmt.Sprintf("boolean value (%s) specified for %s command line flag", name, byName[bare].Kind)
					continue
				}
				name, flag, text, hasText = bare, byName[bare], "0", true
			} else {
				p.unknown[name] = true
				continue
			}
		}
		if !hasText {
			if flag.Kind == Bool {
				text = "1"
			} else if i+1 < len(args) {
				i++
				text = args[i]
			} else {
				p.errors[name] = fmt.Sprintf("flag '--%s' is missing its argument; flag description: %s", name, flag.Help)
				continue
			}
		}
		p.set(flag, text, Origin{Source: FromCommandLine, Key: name, Text: text})
	}
	p.applyUndefok()
}

// set parses and records one value; a later one replaces an earlier one.
func (p *parser) set(flag *Flag, text string, from Origin) {
	v, err := parseValue(flag.Kind, text)
	if err == nil && flag.Name == "ha_leader_lease_ttl_sec" {
		if n := v.(int64); n < 2 || n > 60 {
			err = fmt.Errorf("want 2 to 60")
		}
	}
	if err != nil {
		var line string
		switch {
		case flag.Kind == Duration || flag.Name == "ha_leader_lease_ttl_sec":
			line = fmt.Sprintf("failed validation of new value '%s' for flag '%s'", text, flag.Name)
			line += where(from) + ": " + err.Error()
		default:
			line = fmt.Sprintf("illegal value '%s' specified for %s flag '%s'", text, flag.Kind, flag.Name) + where(from)
		}
		p.errors[flag.Name] = line
		return
	}
	p.values[flag.Name] = value{parsed: v, origin: from}
	switch flag.Name {
	case "flagfile":
		for _, file := range strings.Split(text, ",") {
			if file != "" && p.fatal == "" {
				p.readFlagFile(file)
			}
		}
	case "fromenv":
		p.fromEnvironment(text, true)
	case "tryfromenv":
		p.fromEnvironment(text, false)
	}
}

// where is empty on the command line, whose flags name themselves.
func where(from Origin) string {
	switch from.Source {
	case FromFlagFile:
		return fmt.Sprintf(" (%s, line %d)", from.File, from.Line)
	case FromEnvironment:
		return " (FLAGS_" + from.Key + " of the environment)"
	default:
		return ""
	}
}

// readFlagFile reads one flag per line. Leading blanks, empty lines and lines that begin with
// '#' do not count. A line without a dash names programs: what follows it counts only if one
// of the names is this program's. As in gflags an unknown flag in a file is no error, but it
// is worth a warning.
func (p *parser) readFlagFile(file string) {
	if p.depth++; p.depth > maxFlagFileDepth {
		p.fatal = fmt.Sprintf("%s: flag files name each other more than %d deep", file, maxFlagFileDepth)
		return
	}
	defer func() { p.depth-- }()
	content, err := p.env.ReadFile(file)
	if err != nil {
		p.fatal = fmt.Sprintf("%s: %s (named by --flagfile)", file, reason(err))
		return
	}
	mine, names := true, false
	for n, line := range strings.Split(string(content), "\n") {
		line = strings.TrimLeft(strings.TrimSuffix(line, "\r"), " \t\v\f")
		if line == "" || line[0] == '#' {
			names = false
			continue
		}
		if line[0] != '-' {
			if !names {
				mine = false
			}
			names = true
			for _, program := range strings.Fields(line) {
				mine = mine || program == p.env.Program
			}
			continue
		}
		names = false
		if !mine {
			continue
		}
		p.fileLine(file, n+1, line)
		if p.fatal != "" {
			return
		}
	}
}

func (p *parser) fileLine(file string, n int, line string) {
	name := strings.TrimPrefix(line[1:], "-")
	name, text, hasText := strings.Cut(name, "=")
	flag := byName[name]
	if flag == nil {
		if bare, ok := strings.CutPrefix(name, "no"); ok && byName[bare] != nil && byName[bare].Kind == Bool {
			name, flag, text, hasText = bare, byName[bare], "0", true
		}
	}
	from := Origin{Source: FromFlagFile, File: file, Line: n, Key: name, Text: text}
	switch {
	case flag == nil:
		p.warnings = append(p.warnings, fmt.Sprintf("%s:%d: unknown flag '%s' is ignored", file, n, name))
	case !hasText && flag.Kind == Bool:
		from.Text = "1"
		p.set(flag, "1", from)
	case !hasText:
		p.errors[name] = fmt.Sprintf("flag '--%s' is missing its argument (%s, line %d); in a file the form is --%s=VALUE", name, file, n, name)
	default:
		p.set(flag, text, from)
	}
}

func (p *parser) fromEnvironment(list string, must bool) {
	for _, name := range strings.Split(list, ",") {
		if name == "" {
			continue
		}
		flag := byName[name]
		if flag == nil {
			p.errors[name] = fmt.Sprintf("unknown command line flag '%s' (via --fromenv or --tryfromenv)", name)
			p.unknown[name] = true
			continue
		}
		text, ok := p.env.LookupEnv("FLAGS_" + name)
		if !ok {
			if must {
				p.errors[name] = fmt.Sprintf("FLAGS_%s not found in environment", name)
			}
			continue
		}
		if name == "fromenv" || name == "tryfromenv" {
			p.errors[name] = fmt.Sprintf("infinite recursion on environment flag '%s'", name)
			continue
		}
		p.set(flag, text, Origin{Source: FromEnvironment, Key: name, Text: text})
	}
}

// applyUndefok forgives the unknown flags listed, in the plain and the "no" form.
func (p *parser) applyUndefok() {
	forgiven := map[string]bool{}
	if v, ok := p.values["undefok"]; ok {
		for _, name := range strings.Split(v.parsed.(string), ",") {
			forgiven[name], forgiven["no"+name] = true, true
		}
	}
	for name := range p.unknown {
		if forgiven[name] {
			delete(p.errors, name)
		} else if p.errors[name] == "" {
			p.errors[name] = fmt.Sprintf("unknown command line flag '%s'", name)
		}
	}
}

// report returns the error lines sorted by flag name, each beginning "ERROR: ".
func (p *parser) report() []string {
	if p.fatal != "" {
		return []string{"ERROR: " + p.fatal}
	}
	names := make([]string, 0, len(p.errors))
	for name := range p.errors {
		names = append(names, name)
	}
	sort.Strings(names)
	lines := make([]string, len(names))
	for i, name := range names {
		lines[i] = "ERROR: " + p.errors[name]
	}
	return lines
}

func (p *parser) boolOf(name string) bool {
	v, ok := p.values[name]
	return ok && v.parsed.(bool)
}
