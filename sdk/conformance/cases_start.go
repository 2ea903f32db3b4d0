package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"

	connectorv1 "github.com/mooncake-go/mooncake-master/proto/connector/v1"
)

var startCases = []testCase{
	{name: "handshake/stdout", about: "standard output carries the handshake line and nothing else, from start to end", run: cleanStdout},
	{name: "handshake/by-hand", about: "run by hand it says what it is, its name included, and ends with status 1", run: byHand},
	{name: "handshake/newer-host", about: "a host that speaks only newer protocols is not told that it is understood", run: newerHost},
	{name: "handshake/older-host", about: "a host that speaks only older protocols is not told that it is understood", run: olderHost},
	{name: "handshake/choice", about: "of several protocols that a host offers it chooses one that it speaks", run: choice},
	{name: "handshake/tls", about: "a caller without the host's certificate is refused", run: strangers},
	{name: "health/plugin", about: `the gRPC health service answers SERVING for the name "plugin"`, run: healthy},
	{name: "describe/answer", about: "Describe comes before Configure, within a second, always the same, and makes sense", run: describe},
	{name: "start/together", about: "several processes of it can run at once; starting has no side effects", run: together},
}

// cleanStdout goes through a whole life and looks at standard output at its end.
func cleanStdout(ctx context.Context, k *kit) error {
	p, err := k.start(ctx)
	if err != nil {
		return err
	}
	if k.uri != "" && k.configure(ctx, p, k.uri) == nil { // other cases judge these calls
		_, _ = k.load(ctx, p)
		if w, err := k.watch(ctx, p, ""); err == nil {
			_, _ = w.first(ctx, k.limit(eventLimit))
			w.close()
		}
	}
	p.end(k)
	text, _, _ := p.out.state()
	if _, rest, _ := strings.Cut(text, "\n"); rest != "" {
		return fmt.Errorf("after the handshake line it wrote %q to standard output; nothing else may be written there", shorten(rest))
	}
	return nil
}

func byHand(ctx context.Context, k *kit) error {
	p, err := k.spawn(k.environment(), k.path, k.opts.Args...)
	if err != nil {
		return err
	}
	defer p.kill()
	select {
	case <-p.exited:
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(k.limit(stopLimit)):
		return fmt.Errorf("run by hand it does not end within %s", k.limit(stopLimit))
	}
	p.settle()
	out, _, _ := p.out.state()
	said := out + strings.Join(p.log.all(), "")
	switch status := p.cmd.ProcessState.ExitCode(); {
	case strings.HasPrefix(out, "1|"):
		return errors.New("run by hand it writes a handshake line; only a host sets MOONCAKE_CONNECTOR_PLUGIN")
	case status != 1:
		return fmt.Errorf("run by hand it ends with status %d, want 1", status)
	case strings.TrimSpace(said) == "":
		return errors.New("run by hand it says nothing; it should say what it is and how it is used")
	case k.about != nil && !strings.Contains(said, k.about.GetName()):
		return fmt.Errorf("run by hand it does not say its name %q: %q", k.about.GetName(), shorten(said))
	}
	return nil
}

func newerHost(ctx context.Context, k *kit) error { return k.stranger(ctx, "newer", "9998,9999") }

func olderHost(ctx context.Context, k *kit) error { return k.stranger(ctx, "older", "0") }

// stranger starts the connector for a host that has no protocol in common with it. It may end
// with words on standard error, or show a protocol of its own for the host to refuse.
func (k *kit) stranger(ctx context.Context, which, versions string) error {
	p, err := k.launch(ctx, versions)
	if err != nil {
		var ended *endedError
		if !errors.As(err, &ended) {
			return err
		}
		switch {
		case ended.status == 0:
			return fmt.Errorf("for a %s host (protocols %s) it ended with status 0", which, versions)
		case !ended.spoke:
			return fmt.Errorf("for a %s host (protocols %s) it ended without a word on standard error", which, versions)
		}
		return nil
	}
	defer p.kill()
	for _, offered := range strings.Split(versions, ",") {
		if fmt.Sprint(p.hand.version) == offered {
			return fmt.Errorf("it claims to speak protocol %s, which does not exist; it must answer with a protocol it does speak, or end", offered)
		}
	}
	return nil
}

func choice(ctx context.Context, k *kit) error {
	p, err := k.launch(ctx, "1,9999")
	if err != nil {
		return err
	}
	defer p.kill()
	if p.hand.version != 1 {
		return fmt.Errorf("offered protocols 1 and 9999 it chose %d; this kit knows protocol 1", p.hand.version)
	}
	return nil
}

func strangers(ctx context.Context, k *kit) error {
	p, err := k.start(ctx)
	if err != nil {
		return err
	}
	defer p.end(k)
	conn, err := p.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	limited, cancel := context.WithTimeout(ctx, k.limit(callLimit))
	defer cancel()
	if _, err := connectorv1.NewConnectorClient(conn).Describe(limited, &connectorv1.DescribeRequest{}); err == nil {
		return errors.New("it answers a caller that shows no certificate; it must ask for the host's (PLUGIN_CLIENT_CERT) and verify it")
	}
	if _, err := p.rpc.Describe(limited, &connectorv1.DescribeRequest{}); err != nil {
		return fmt.Errorf("after a caller without certificate: %w", k.callError("Describe", err))
	}
	return nil
}

func healthy(ctx context.Context, k *kit) error {
	p, err := k.start(ctx)
	if err != nil {
		return err
	}
	defer p.end(k)
	limited, cancel := context.WithTimeout(ctx, k.limit(callLimit))
	defer cancel()
	answer, err := grpc_health_v1.NewHealthClient(p.conn).Check(limited, &grpc_health_v1.HealthCheckRequest{Service: "plugin"})
	switch {
	case err != nil:
		return k.callError(`grpc.health.v1.Health/Check for "plugin"`, err)
	case answer.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING:
		return fmt.Errorf(`grpc.health.v1.Health/Check for "plugin" says %s, want SERVING`, answer.GetStatus())
	}
	return nil
}

func describe(ctx context.Context, k *kit) error {
	p, err := k.start(ctx)
	if err != nil {
		return err
	}
	defer p.end(k)
	for range 3 {
		limited, cancel := context.WithTimeout(ctx, k.limit(describeLimit))
		d, err := p.rpc.Describe(limited, &connectorv1.DescribeRequest{})
		cancel()
		if err != nil {
			return fmt.Errorf("within %s: %w", k.limit(describeLimit), k.callError("Describe", err))
		}
		if k.about != nil && !proto.Equal(d, k.about) {
			return fmt.Errorf("Describe said {%v} before and {%v} now; it must always be the same", k.about, d)
		}
		k.about = d
	}
	switch d := k.about; {
	case d.GetName() == "":
		return errors.New("Describe gives no name")
	case d.GetVersion() == "":
		return errors.New("Describe gives no version")
	case d.GetCapabilities() == nil:
		return errors.New("Describe gives no capabilities")
	case d.GetAbsentMeans() == connectorv1.AbsentMeans_ABSENT_MEANS_UNSPECIFIED:
		return errors.New("Describe does not say what an absent document means at the start: ABSENT_MEANS_ERROR or ABSENT_MEANS_EMPTY")
	}
	if schema := k.about.GetOptionsSchema(); schema != "" {
		var object map[string]any
		if err := json.Unmarshal([]byte(schema), &object); err != nil {
			return fmt.Errorf("options_schema is not a JSON object: %w", err)
		}
	}
	return nil
}

func together(ctx context.Context, k *kit) error {
	for i := range 3 {
		p, err := k.start(ctx)
		if err != nil {
			return fmt.Errorf("while %d others run: %w", i, err)
		}
		defer p.end(k)
		limited, cancel := context.WithTimeout(ctx, k.limit(callLimit))
		_, err = p.rpc.Describe(limited, &connectorv1.DescribeRequest{})
		cancel()
		if err != nil {
			return fmt.Errorf("while %d others run: %w", i, k.callError("Describe", err))
		}
	}
	return nil
}
