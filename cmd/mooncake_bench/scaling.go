package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// The benchmarks of the core that show what a second core brings, and the one that shows what
// it could bring: it touches memory likewise and shares nothing.
const (
	scalingBenches = "Exist128|Get128|PutRemove128"
	scalingControl = "Control128"
	scalingLeast   = 0.9
)

// figGain is what a benchmark gains from the second core: its throughput on two as a multiple
// of that on one.
const figGain = "gain"

// scaling measures the row of the core's benchmarks.
func (b *campaign) scaling(ctx context.Context, name string, done func(*record) error) error {
	if b.coreTest == "" {
		return wrong("core_test", "no test binary of the core, and %s runs its benchmarks; go test -c ./core makes it", name)
	}
	rounds, length := 7, "300ms"
	if b.quick {
		rounds, length = 1, "1x"
	}
	if b.rounds > 0 {
		rounds = b.rounds
	}
	gains := map[string][]float64{}
	for round := range rounds {
		fmt.Fprintf(b.progress, "%s: benchmarks of the core, round %d of %d\n", name, round+1, rounds)
		cmd := exec.CommandContext(ctx, b.coreTest, "-test.run", "^$", "-test.bench", "^Benchmark("+scalingBenches+"|"+scalingControl+")$",
			"-test.cpu", "1,2", "-test.benchtime", length, "-test.count", "1")
		var out, errOut bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errOut
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w: %s%s", b.coreTest, err, out.String(), errOut.String())
		}
		one, err := gainsOf(out.String())
		if err != nil {
			return fmt.Errorf("%s: %w", b.coreTest, err)
		}
		for bench, gain := range one {
			gains[bench] = append(gains[bench], gain)
		}
	}
	records, err := scalingRecords(name, gains)
	if err != nil {
		return err
	}
	for _, r := range records {
		r.Quick = b.quick
		if err := done(r); err != nil {
			return err
		}
	}
	return nil
}

// gainsOf reads the output of benchmarks that ran on one and on two cores, and returns what
// each gained.
func gainsOf(text string) (map[string]float64, error) {
	took := map[string][2]float64{} // ns/op on one and on two
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") || fields[3] != "ns/op" {
			continue
		}
		ns, err := strconv.ParseFloat(fields[2], 64)
		if err != nil || ns <= 0 {
			return nil, fmt.Errorf("benchmark line %q", lines.Text())
		}
		bench, cores, _ := strings.Cut(strings.TrimPrefix(fields[0], "Benchmark"), "-")
		pair := took[bench]
		switch cores {
		case "":
			pair[0] = ns
		case "2":
			pair[1] = ns
		default:
			return nil, fmt.Errorf("benchmark line %q is of neither 1 nor 2 cores", lines.Text())
		}
		took[bench] = pair
	}
	gains := map[string]float64{}
	for bench, pair := range took {
		if pair[0] == 0 || pair[1] == 0 {
			return nil, fmt.Errorf("benchmark %s did not run on 1 and on 2 cores", bench)
		}
		gains[bench] = pair[0] / pair[1]
	}
	return gains, lines.Err()
}

// scalingRecords judges the gains of all rounds by benchmark.
func scalingRecords(name string, gains map[string][]float64) ([]*record, error) {
	control := gains[scalingControl]
	if len(control) == 0 || len(gains) < 2 {
		return nil, errors.New("the benchmarks and their control did not run")
	}
	var records []*record
	for _, bench := range slices.Sorted(maps.Keys(gains)) {
		if bench == scalingControl {
			continue
		}
		var pairs [][2]float64
		for i, g := range gains[bench] {
			pairs = append(pairs, [2]float64{g, control[i]})
		}
		c := judgePairs(pairs, limit{figure: figGain, least: scalingLeast}, bench, scalingControl)
		records = append(records, &record{Kind: "row", Row: name, Point: bench, Checks: []check{c}})
	}
	return records, nil
}
