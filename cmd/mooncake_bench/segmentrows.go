package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mooncake-go/mooncake-master/transport/segment"
)

// transferTrial is a point of transfers that is measured with this program at both ends and with the original's
// at both.
type transferTrial struct {
	segmentPoint
	protocol string
	client   bool // with a client and a master in between
}

// segmentRows are transfers of memory, without a master and with one.
func segmentRows() (rows []row) {
	both := func(name, about string, seconds int, t transferTrial) {
		r := row{name: "segment-" + name, about: about, seconds: seconds}
		for _, write := range []bool{false, true} {
			t.write = write
			r.transfers = append(r.transfers, t)
		}
		rows = append(rows, r)
	}
	tcp := func(block uint64, inFlight int) transferTrial {
		return transferTrial{segmentPoint: segmentPoint{block: block, inFlight: inFlight}, protocol: segment.ProtocolTCP}
	}
	client := func(size uint64) transferTrial {
		t := tcp(size, 1)
		t.client = true
		return t
	}
	const about = "read and written over TCP between two processes, "
	both("4k-1", "4 KiB "+about+"one at a time", 60, tcp(4<<10, 1))
	both("4k-16", "4 KiB "+about+"16 at a time", 60, tcp(4<<10, 16))
	both("1m", "1 MiB "+about+"one at a time", 60, tcp(1<<20, 1))
	both("64m", "64 MiB "+about+"one at a time", 60, tcp(64<<20, 1))
	both("client-1m", "values of 1 MiB got and put by a client, over TCP", 80, client(1<<20))
	both("client-64m", "values of 64 MiB got and put by a client, over TCP", 80, client(64<<20))
	both("rdma", "1 MiB read and written by RDMA over software devices, 16 at a time", 60,
		transferTrial{segmentPoint: segmentPoint{block: 1 << 20, inFlight: 16}, protocol: segment.ProtocolRDMA})
	return rows
}

// title names the trial's point.
func (t *transferTrial) title() string {
	if !t.client {
		return t.segmentPoint.String()
	}
	if t.write {
		return "put " + formatSize(t.block)
	}
	return "get " + formatSize(t.block)
}

// limits are what is asked of the trial. What software devices carry says nothing about bandwidth.
func (t *transferTrial) limits() []limit {
	cpu := limit{figure: figCPUPerGB, side: "ours", most: 1}
	if t.protocol == segment.ProtocolRDMA {
		return []limit{cpu, {figure: figBandwidth, side: "ours"}}
	}
	return []limit{{figure: figBandwidth, side: "ours", least: 1}, cpu}
}

// transfer measures one point of transfers, both sides in turn.
func (b *campaign) transfer(ctx context.Context, name string, t *transferTrial, done func(*record) error) error {
	ours, theirs, err := b.ends(t)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	rounds, length := 5, 2*time.Second
	if b.quick {
		rounds, length = 1, time.Second
	}
	if b.rounds > 0 {
		rounds = b.rounds
	}
	if b.length > 0 {
		length = b.length
	}
	sides := []side{{Label: "ours"}, {Label: "theirs"}}
	for round := range rounds {
		fmt.Fprintf(b.progress, "%s: %s, round %d of %d\n", name, t.title(), round+1, rounds)
		order := []int{0, 1}
		if round%2 == 1 {
			slices.Reverse(order) // so that a drift of the machine favours nobody
		}
		for _, i := range order {
			measure := ours
			if i == 1 {
				measure = theirs
			}
			r, err := measure(ctx, length)
			if err != nil {
				return fmt.Errorf("%s, %s, round %d, %s: %w", name, t.title(), round+1, sides[i].Label, err)
			}
			r.Label = sides[i].Label
			sides[i].Results = append(sides[i].Results, *r)
		}
	}
	r := &record{Kind: "row", Row: name, Point: t.title(), Quick: b.quick, Sides: sides}
	if r.Checks, err = judge(sides, "theirs", t.limits()); err != nil {
		return fmt.Errorf("%s, %s: %w", name, r.Point, err)
	}
	return done(r)
}

// measurement measures for a while.
type measurement func(ctx context.Context, length time.Duration) (*result, error)

// ends are the two sides of a trial.
func (b *campaign) ends(t *transferTrial) (ours, theirs measurement, err error) {
	if t.client {
		return b.clients(t)
	}
	if b.engine == "" {
		return nil, nil, wrong("engine", "no binary, and these rows start the original's transfer_engine_bench")
	}
	original := &engine{binary: b.engine}
	own := segmentSettings{
		lending: lending{name: "127.0.0.1:17900", metadata: segment.P2P, protocol: t.protocol, size: t.span() + servedHead},
		writes:  []bool{t.write}, blocks: []uint64{t.block}, inFlight: []int{t.inFlight}, warm: 300 * time.Millisecond,
	}
	devices := ""
	if t.protocol == segment.ProtocolRDMA {
		if devices, err = b.softwareDevices(original, &own); err != nil {
			return nil, nil, err
		}
	}
	ours = func(ctx context.Context, length time.Duration) (last *result, err error) {
		s := own
		s.length = length
		err = s.run(ctx, io.Discard, func(_ []result, r *result) error {
			if r != nil {
				last = r
			}
			return nil
		})
		return last, err
	}
	theirs = func(ctx context.Context, length time.Duration) (*result, error) {
		return original.measure(ctx, t.segmentPoint, t.protocol, devices, length)
	}
	return ours, theirs, nil
}

// softwareDevices has both sides find the software devices, and names them for the original. The environment of this
// process says where they are: its own RDMA was loaded from there.
func (b *campaign) softwareDevices(original *engine, own *segmentSettings) (string, error) {
	if b.verbs == "" {
		return "", wrong("verbs", "no library of software devices, and this row needs one; conformance/verbs.sh makes it")
	}
	dir := os.Getenv("SOFTVERBS_DIR")
	if dir == "" {
		return "", wrong("verbs", "SOFTVERBS_DIR is not set, and says where the devices are")
	}
	original.env = []string{"LD_PRELOAD=" + b.verbs}
	own.sysfs = filepath.Join(dir, "sys")
	adapter, err := own.adapter() // which makes the descriptions of the devices, too
	if err != nil {
		return "", err
	}
	if err := adapter.Close(); err != nil {
		return "", err
	}
	found, err := os.ReadDir(filepath.Join(own.sysfs, "class", "infiniband"))
	if err != nil {
		return "", wrong("verbs", "the devices: %v", err)
	}
	var names []string
	for _, d := range found {
		names = append(names, d.Name())
	}
	return strings.Join(names, ","), nil
}
