package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCommandLinesThatMakeNoSense(t *testing.T) {
	for _, c := range []struct {
		args, stderr string
	}{
		{"nope", `"nope" is no command of mooncakectl`},
		{"policy chek", "did you mean check?"},
		{"tenant set a", "want: mooncakectl tenant set TENANT QUOTA"},
		{"tenant set a 5GiB", "unsupported quota unit 'GiB'"},
		{"tenant set _a 5GB", `invalid tenant name "_a"`},
		{"tenant list --nope", "unknown flag: --nope"},
		{"tenant list -o yaml", "--output=yaml: want table, json"},
		{"tenant list -o tap", "--output=tap: want table, json"},
		{"tenant list --color sometimes", "--color=sometimes: want auto, always or never"},
		{"tenant list --timeout 0s", "--timeout=0s: want more than 0"},
		{"tenant list --master host", "--master=host: want HOST:PORT"},
		{"tenant list --master ftp://host:1", "want HOST:PORT"},
		{"tenant list --master ,", "want at least one HOST:PORT"},
		{"policy check", "got 0 arguments, want: mooncakectl policy check FILE..."},
		{"policy history --limit -1", "--limit=-1"},
		{"connector exec file dance", `"dance" is no command of a connector`},
		{"connector exec file save", "save wants a FILE"},
		{"connector exec file load x", `load takes no argument, got "x"`},
		{"connector exec file --option poll load", "--option poll: want NAME=VALUE"},
		{"connector exec file --option a=1 --option a=2 load", "the option a is given twice"},
		{"connector exec file --log-level loud load", "--log-level=loud"},
		{"connector conformance", "which connector?"},
		{"connector conformance file --case nope/*", `no case is called "nope/*"`},
	} {
		t.Run(c.args, func(t *testing.T) {
			ctl(t, "", strings.Fields(c.args)...).want(t, exitUsage, "", c.stderr)
		})
	}
}

func TestHelpAndVersion(t *testing.T) {
	ctl(t, "").want(t, exitOK, "Available Commands:", "")
	ctl(t, "", "policy", "--help").want(t, exitOK, "history", "")
	ctl(t, "", "version").want(t, exitOK, "mooncakectl 0.", "")
	if v := decode[versionInfo](t, ctl(t, "", "version", "-o", "json")); v.Protocol != 1 || v.Version == "" || v.Go == "" {
		t.Errorf("%+v", v)
	}
}

// TestErrorsInJSON reads what programs get when something fails, before and after the command
// has begun.
func TestErrorsInJSON(t *testing.T) {
	for _, args := range []string{"tenant list -ojson --master 127.0.0.1:1", "tenant nope --output=json"} {
		r := ctl(t, "", strings.Fields(args)...)
		var e struct {
			Error, Hint string
			Code        int `json:"exit_code"`
		}
		if err := json.Unmarshal([]byte(r.stderr), &e); err != nil || e.Code != r.code || e.Error == "" || e.Hint == "" || r.stdout != "" {
			t.Errorf("%s: %d, %q, %v", args, r.code, r.stderr, err)
		}
	}
}
