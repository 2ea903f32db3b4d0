package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	connectorv1 "github.com/mooncake-go/mooncake-master/proto/connector/v1"
)

// Limits of time, before Options.Patience.
const (
	startLimit    = 10 * time.Second // from start to handshake
	describeLimit = time.Second      // Describe
	callLimit     = 10 * time.Second // Configure, Load and Save, each
	eventLimit    = 5 * time.Second  // until what the source does is told
	downLimit     = 15 * time.Second // until a source that stopped answering is told as unavailable
	silenceLimit  = 15 * time.Second // between two heartbeats
	cancelLimit   = 2 * time.Second  // from cancelling a Watch to its end
	stopLimit     = 5 * time.Second  // from Stop, or the parent's death, to the end
	bulkLimit     = 20 * time.Second // a document near the limit of size, there or back
)

// kit is one Run.
type kit struct {
	opts    Options
	path    string // of the executable
	folder  string // for sockets and files of ours
	uri     string
	noURI   string // why there is no uri
	source  Source
	about   *connectorv1.DescribeResponse
	logs    io.Writer
	running sync.WaitGroup // followers of processes
}

// testCase is a case with its code.
type testCase struct {
	name, about string
	run         func(ctx context.Context, k *kit) error
	// background cases start before the others and are waited for in their turn.
	background bool
}

// skip is the error of a case that can't be run.
type skip struct{ why string }

func (s *skip) Error() string { return s.why }

func skipf(format string, args ...any) error { return &skip{fmt.Sprintf(format, args...)} }

// Run runs the cases that were asked for, one after the other. The error is about the options,
// or is that of ctx, with which Run ends early; what a connector does wrong is in the report.
func Run(ctx context.Context, opts Options) (Report, error) {
	k, chosen, err := newKit(opts)
	if err != nil {
		return Report{}, err
	}
	if k.folder, err = os.MkdirTemp("", "mooncake-kit-"); err != nil {
		return Report{}, err
	}
	defer func() { _ = os.RemoveAll(k.folder) }()
	begin := time.Now()
	report := Report{Command: strings.Join(append([]string{opts.Path}, opts.Args...), " ")}
	broken := k.prepare(ctx)
	if k.about != nil {
		report.Connector = strings.TrimSpace(k.about.GetName() + " " + k.about.GetVersion())
	}
	restore := k.remember(ctx)
	report.Results = k.all(ctx, chosen, broken)
	restore()
	k.running.Wait()
	report.Took = time.Since(begin)
	return report, ctx.Err()
}

func newKit(opts Options) (*kit, []testCase, error) {
	k := &kit{opts: opts, uri: opts.URI, source: opts.Source}
	if opts.Path == "" {
		return nil, nil, errors.New("the path of a connector's executable is needed")
	}
	var err error
	if k.path, err = exec.LookPath(opts.Path); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", opts.Path, errors.Unwrap(err))
	}
	if k.path, err = filepath.Abs(k.path); err != nil {
		return nil, nil, err
	}
	if opts.Patience < 0 {
		return nil, nil, fmt.Errorf("patience %v is negative; 1 is the usual", opts.Patience)
	}
	if opts.Logs != nil {
		k.logs = &exclusive{w: opts.Logs}
	}
	chosen, err := choose(opts.Cases)
	return k, chosen, err
}

// exclusive lets several processes write to one writer.
type exclusive struct {
	mu sync.Mutex
	w  io.Writer
}

func (e *exclusive) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.w.Write(b)
}

// choose picks the cases whose names match.
func choose(patterns []string) ([]testCase, error) {
	if len(patterns) == 0 {
		return cases, nil
	}
	wanted := map[string]bool{}
	for _, pattern := range patterns {
		found := false
		for _, c := range cases {
			if ok, err := path.Match(pattern, c.name); err != nil {
				return nil, fmt.Errorf("case %q: %w", pattern, err)
			} else if ok {
				wanted[c.name], found = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("no case is called %q", pattern)
		}
	}
	var chosen []testCase
	for _, c := range cases {
		if wanted[c.name] {
			chosen = append(chosen, c)
		}
	}
	return chosen, nil
}

// prepare finds out what the connector is and how its source is changed. The error says that
// it does not start.
func (k *kit) prepare(ctx context.Context) error {
	p, err := k.start(ctx)
	if err != nil {
		return err
	}
	defer p.end(k)
	limited, cancel := context.WithTimeout(ctx, k.limit(callLimit))
	defer cancel()
	if k.about, err = p.rpc.Describe(limited, &connectorv1.DescribeRequest{}); err != nil {
		return k.callError("Describe", err)
	}
	switch file, isFile := strings.CutPrefix(k.uri, "file://"); {
	case k.uri == "" && k.about.GetName() == "file":
		k.uri = filepath.Join(k.folder, "policy.yaml")
		if k.source == nil {
			k.source = FileSource(k.uri)
		}
	case k.uri == "":
		k.noURI = "no URI was given"
	case k.source == nil && isFile:
		k.source = &fileSource{path: file, scheme: "file://"}
	case k.source == nil && k.about.GetName() == "file":
		k.source = FileSource(k.uri)
	}
	if k.source == nil && k.uri != "" {
		k.source = SaveSource()
	}
	if _, ok := k.source.(*saveSource); ok { // each Run has its own
		k.source = &saveSource{k: k}
	}
	return nil
}

// remember keeps what is at the source and returns what puts it back.
func (k *kit) remember(ctx context.Context) func() {
	if k.uri == "" || k.source == nil {
		return func() {}
	}
	present, document := false, []byte(nil)
	if p, err := k.configured(ctx); err == nil {
		answer, err := k.load(ctx, p)
		present = err == nil && answer.GetPresent()
		document = answer.GetDocument()
		p.end(k)
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commandLimit)
		defer cancel()
		// The cases said already what the source can't do.
		if present {
			_ = k.source.Set(ctx, document)
		} else {
			_ = k.source.Delete(ctx)
		}
		switch s := k.source.(type) {
		case *fileSource:
			_ = s.remove()
		case *saveSource:
			s.close()
		}
	}
}

// all runs the chosen cases. Those in the background begin first.
func (k *kit) all(ctx context.Context, chosen []testCase, broken error) []Result {
	early := map[string]chan Result{}
	for _, c := range chosen {
		if c.background && broken == nil {
			done := make(chan Result, 1)
			early[c.name] = done
			go func() { done <- k.one(ctx, c) }()
		}
	}
	results := make([]Result, len(chosen))
	tell := func(i int, r Result) {
		results[i] = r
		if k.opts.Progress != nil {
			k.opts.Progress(r)
		}
	}
	for i, c := range chosen {
		switch {
		case early[c.name] != nil:
		case broken != nil && c.name != chosen[0].name && !strings.HasPrefix(c.name, "handshake/"):
			tell(i, Result{Case: c.name, About: c.about, Status: Skip, Reason: "it does not start, see the first case"})
		default:
			tell(i, k.one(ctx, c))
		}
	}
	for i, c := range chosen {
		if done := early[c.name]; done != nil {
			tell(i, <-done)
		}
	}
	return results
}

// one runs a case.
func (k *kit) one(ctx context.Context, c testCase) Result {
	begin := time.Now()
	err := ctx.Err()
	if err == nil {
		err = c.run(ctx, k)
	}
	r := Result{Case: c.name, About: c.about, Status: Pass, Took: time.Since(begin)}
	var skipped *skip
	switch {
	case err == nil:
	case ctx.Err() != nil:
		r.Status, r.Reason = Skip, "the run was ended: "+ctx.Err().Error()
	case errors.As(err, &skipped):
		r.Status, r.Reason = Skip, oneLine(skipped.why)
	case errors.Is(err, errors.ErrUnsupported):
		r.Status, r.Reason = Skip, oneLine(strings.TrimPrefix(err.Error(), errors.ErrUnsupported.Error()+": "))
	default:
		r.Status, r.Reason = Fail, oneLine(err.Error())
	}
	return r
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// limit scales a limit of time.
func (k *kit) limit(d time.Duration) time.Duration {
	if k.opts.Patience == 0 {
		return d
	}
	return time.Duration(float64(d) * k.opts.Patience)
}

func (k *kit) needURI() error {
	if k.uri == "" {
		return skipf("%s", k.noURI)
	}
	return nil
}

// callError is a gRPC error in words.
func (k *kit) callError(call string, err error) error {
	if s, ok := status.FromError(err); ok {
		if s.Code() == codes.DeadlineExceeded {
			return fmt.Errorf("%s was not answered in time", call)
		}
		return fmt.Errorf("%s ended with %s: %s", call, s.Code(), s.Message())
	}
	return fmt.Errorf("%s: %w", call, err)
}

// load calls Load and checks what every answer must hold.
func (k *kit) load(ctx context.Context, p *child) (*connectorv1.LoadResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, k.limit(callLimit))
	defer cancel()
	answer, err := p.rpc.Load(ctx, &connectorv1.LoadRequest{})
	switch {
	case err != nil:
		return nil, k.callError("Load", err)
	case answer.GetPresent() && answer.GetRevision() == "":
		return nil, errors.New("Load gave a document without a revision")
	case answer.GetPresent():
		return answer, checkSize("Load", answer.GetDocument())
	case answer.GetUnavailable() == nil:
		return nil, errors.New("Load gave neither a document nor a reason why there is none")
	case answer.GetUnavailable().GetReason() == "":
		return nil, errors.New("Load gave no document, and no reason for people")
	}
	return answer, nil
}
