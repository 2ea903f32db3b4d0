package main

import (
	"fmt"
	"strings"
)

// row is a line, or some lines, of the table of what this master has to show.
type row struct {
	name    string
	about   string
	seconds int // about how long it takes
	trials  []trial
	scaling bool // measures the core's own benchmarks instead
	// transfers are measured between processes without a master, or with one in between.
	transfers []transferTrial
}

// againstTheirs are the two sides of most rows.
func againstTheirs() []variant {
	return []variant{{label: "ours", master: masterOurs}, {label: "theirs", master: masterTheirs}}
}

func words(text string) []string { return strings.Fields(text) }

// pinned binds master and generator to one core, where processor time depends least on the
// rest of the machine.
const pinned = " --pin 0"

// tableRows are all rows. Those of one name and a suffix belong together; each is short enough
// to be repeated alone.
func tableRows() []row {
	var rows []row
	rows = append(rows, singleRows("single", "on one core", pinned)...)
	rows = append(rows, singleRows("unbound", "on all cores", "")...)
	rows = append(rows, batchRows()...)
	rows = append(rows, throughputRows()...)
	rows = append(rows, fullRows()...)
	rows = append(rows, besideRows()...)
	rows = append(rows, memoryRows()...)
	rows = append(rows, strictRows()...)
	rows = append(rows, row{name: "scaling", about: "the core without sockets: what it gains from a second core, as a share of what independent work gains", seconds: 110, scaling: true})
	rows = append(rows, startRows()...)
	rows = append(rows, growthRows()...)
	rows = append(rows, collectorRow())
	return append(rows, segmentRows()...)
}

// singleRows are single calls. The echo is the floor: the same frames, no work.
func singleRows(name, where, pin string) (rows []row) {
	for _, conns := range []int{1, 8, 32} {
		rows = append(rows, row{
			name: fmt.Sprintf("%s-%d", name, conns), about: fmt.Sprintf("exist, get and put one by one over %d connections, %s, with the floor", conns, where), seconds: 100,
			trials: []trial{{
				sides: append(againstTheirs(), variant{label: "echo", master: masterEcho}), base: "theirs", rounds: 5,
				args:   words(fmt.Sprintf("--work exist:1,get:1,put:1 --conns %d --duration 1s%s", conns, pin)),
				limits: []limit{{figure: figCPU, side: "ours", most: 0.50}, {figure: figCPU, side: "echo"}},
			}},
		})
	}
	return rows
}

func batchRows() (rows []row) {
	for _, n := range []int{32, 128} {
		of := func(ops string, most float64) trial {
			var works []string
			for op := range strings.SplitSeq(ops, ",") {
				works = append(works, fmt.Sprintf("%s:%d", op, n))
			}
			return trial{
				sides: againstTheirs(), base: "theirs", rounds: 5, limits: []limit{{figure: figCPUKey, most: most}},
				args: words(fmt.Sprintf("--work %s --conns 8 --duration 1s%s", strings.Join(works, ","), pinned)),
			}
		}
		rows = append(rows, row{
			name: fmt.Sprint("batches-", n), about: fmt.Sprintf("exist, get, put and remove in batches of %d", n), seconds: 100,
			trials: []trial{of("exist,get", 0.35), of("put,remove", 0.40)},
		})
	}
	return rows
}

func throughputRows() (rows []row) {
	for _, n := range []int{1, 32, 128} {
		works := fmt.Sprintf("exist:%[1]d,get:%[1]d,put:%[1]d,remove:%[1]d", n)
		if n == 1 {
			works = "exist:1,get:1,put:1"
		}
		rows = append(rows, row{
			name: fmt.Sprint("throughput-", n), about: fmt.Sprintf("operations per second over 32 connections, both cores, batches of %d", n), seconds: 100,
			trials: []trial{{
				sides: againstTheirs(), base: "theirs", rounds: 5, limits: []limit{{figure: figOps, least: 1.3}},
				args: words("--work " + works + " --conns 32 --duration 1s"),
			}},
		})
	}
	return rows
}

// fullRows write into memory that is full, or into tenants that are at their quotas: every
// write has to wait for an eviction. Objects are of 16 KiB, as in the baseline.
func fullRows() (rows []row) {
	for _, full := range []struct {
		batch, conns, keys int
		segment            string
	}{{1, 32, 62_000, "64MiB"}, {32, 8, 248_000, "256MiB"}, {128, 8, 248_000, "256MiB"}} {
		rows = append(rows, row{
			name: fmt.Sprint("full-memory-", full.batch), about: fmt.Sprintf("put into full memory in batches of %d over %d connections", full.batch, full.conns), seconds: 90,
			trials: []trial{{
				sides: againstTheirs(), base: "theirs", rounds: 5,
				args: words(fmt.Sprintf("--work put:%d --conns %d --object_size 16KiB --segment_size %s --keys %d --warmup 2s --duration 3s",
					full.batch, full.conns, full.segment, full.keys)),
				limits: []limit{{figure: figCPUKey, most: 0.35}, {figure: figP99, most: 0.20}, {figure: figRefused, side: "ours", none: true}, {figure: figRefused, side: "theirs", own: true}},
			}},
		})
	}
	return append(rows, row{
		name: "quota", about: "put in batches of 32 by 64 tenants at their quotas", seconds: 90,
		trials: []trial{{
			sides: againstTheirs(), base: "theirs", flags: strictFlags, rounds: 5,
			args:   words("--work put:32 --conns 32 --object_size 16KiB --tenants 64 --tenant_quota 64MiB --keys 262144 --warmup 1s --duration 3s"),
			limits: []limit{{figure: figCPUKey, most: 0.40}, {figure: figP99, most: 0.40}, {figure: figRefused, own: true}},
		}},
	})
}

// besideRows hold small calls against a long batch and an eviction that never ends: objects
// fill the memory, and puts at a rate that both masters keep up with force it. Leases are short,
// or the batches would lease everything.
//
// The small calls come at a rate, and latency counts from when they were due. In a closed loop a
// connection that is held up for a tenth of a second has one slow call to show for it, while one that
// is not makes thousands: the 99th percentile then says how the lucky connections fared. That figure is
// reported as well.
func besideRows() (rows []row) {
	for _, beside := range []struct {
		name, about, rate string
		conns             int
		most              float64 // 0: reported only
	}{
		{"beside-1", "1,000 times a second", " --rate 1000", 1, 1.0},
		{"beside-4", "1,000 times a second", " --rate 1000", 4, 0.25},
		{"beside-closed", "in a closed loop", "", 4, 0},
	} {
		rows = append(rows, row{
			name: beside.name, about: fmt.Sprintf("exist and ping %s over %d connections beside exist in batches of 50,000 and forced eviction, a million objects", beside.about, beside.conns), seconds: 130,
			trials: []trial{{
				sides: againstTheirs(), base: "theirs", flags: "--default_kv_lease_ttl=500", rounds: 3,
				args: words(fmt.Sprintf("--work exist:1,ping --conns %d%s --keys 1000000 --segment_size 256MiB --beside exist:50000x1,put:128x1@100 --warmup 2s --duration 4s",
					beside.conns, beside.rate)),
				limits: []limit{{figure: figP99, most: beside.most}},
			}},
		})
	}
	return rows
}

func memoryRows() (rows []row) {
	for _, m := range []struct {
		name            string
		objects, second int
	}{{"1m", 1_000_000, 40}, {"5m", 5_000_000, 150}} {
		rows = append(rows, row{
			name: "memory-" + m.name, about: fmt.Sprintf("resident memory of %d objects", m.objects), seconds: m.second,
			trials: []trial{{
				sides: againstTheirs(), base: "theirs", rounds: 3, limits: []limit{{figure: figPerObject, most: 0.40}},
				args: words(fmt.Sprintf("--work ping --conns 1 --keys %d --duration 100ms", m.objects)),
			}},
		})
	}
	return rows
}

// strictRows compare this master with itself.
func strictRows() (rows []row) {
	for _, n := range []int{1, 128} {
		for _, op := range []string{"exist", "get", "put"} {
			rows = append(rows, row{
				name: fmt.Sprintf("strict-%s-%d", op, n), about: fmt.Sprintf("strict tenants on against off, 64 tenants, %s:%d", op, n), seconds: 90,
				trials: []trial{{
					sides: []variant{{label: "on", master: masterOurs, flags: strictFlags}, {label: "off", master: masterOurs}}, base: "off", rounds: 24,
					args:   words(fmt.Sprintf("--work %s:%d --conns 8 --tenants 64 --duration 700ms --warmup 100ms%s", op, n, pinned)),
					limits: []limit{{figure: figCPU, most: 1.03, low: true}},
				}},
			})
		}
	}
	return rows
}

func startRows() []row {
	of := func(name, about, flags string, most float64) row {
		return row{
			name: name, about: about, seconds: 30,
			trials: []trial{{
				sides: againstTheirs(), base: "theirs", flags: flags, rounds: 21, limits: []limit{{figure: figStart, most: most}},
				args: words("--work ping --conns 1 --segments 1 --duration 20ms --warmup 0s"),
			}},
		}
	}
	return []row{
		of("start-off", "from exec to the first answer, tenants off", "", 1.0),
		of("start-on", "from exec to the first answer, tenants on", strictFlags, 0),
	}
}

// growthRows compare this master with itself as something grows. mixed is a put and a remove,
// so that the number of objects stays.
func growthRows() []row {
	const works = "--work exist:1,get:1,exist:128,get:128,mixed:128 --mix put:1,remove:1"
	objects := func(name string, rounds int, counts ...int) row {
		t := trial{
			base: "10k", rounds: rounds, together: true, limits: []limit{{figure: figCPU, most: 1.5}},
			args: words(works + " --conns 8 --duration 1s" + pinned),
		}
		for _, n := range counts {
			label := fmt.Sprintf("%dk", n/1000)
			if n >= 1_000_000 {
				label = fmt.Sprintf("%dM", n/1_000_000)
			}
			t.sides = append(t.sides, variant{label: label, master: masterOurs, args: words(fmt.Sprint("--keys ", n))})
		}
		return row{name: "growth-objects-" + name, about: "processor time per operation as objects grow to " + name, seconds: 140, trials: []trial{t}}
	}
	conns := trial{
		base: "1", rounds: 5, together: true, limits: []limit{{figure: figCPU, most: 1.3}},
		args: words("--work exist:1,get:1,exist:128,put:1 --duration 1s" + pinned),
	}
	for _, n := range []int{1, 8, 100, 1000} {
		conns.sides = append(conns.sides, variant{label: fmt.Sprint(n), master: masterOurs, args: words(fmt.Sprint("--conns ", n))})
	}
	tenants := trial{
		base: "1", rounds: 6, together: true, limits: []limit{{figure: figCPU, most: 1.1}}, flags: strictFlags,
		args: words("--work exist:1,get:1,exist:128,put:1 --conns 8 --keys 1000000 --duration 1s" + pinned),
	}
	for _, n := range []int{1, 100, 10_000} {
		tenants.sides = append(tenants.sides, variant{label: fmt.Sprint(n), master: masterOurs, args: words(fmt.Sprint("--tenants ", n))})
	}
	return []row{
		objects("1m", 5, 10_000, 100_000, 1_000_000),
		objects("10m", 2, 10_000, 10_000_000),
		{name: "growth-connections", about: "processor time per operation as connections grow", seconds: 140, trials: []trial{conns}},
		{name: "growth-tenants", about: "processor time per operation as tenants grow", seconds: 140, trials: []trial{tenants}},
	}
}

// collectorRow says what the garbage collector costs at five million objects under load.
func collectorRow() row {
	r := row{
		name: "gc", about: "pauses and assists of the garbage collector at five million objects under load", seconds: 90,
		trials: []trial{{
			sides: []variant{{label: "ours", master: masterOurs}}, rounds: 1, together: true,
			args: words("--work mixed:1,mixed:32 --mix exist:4,get:4,put:1,remove:1 --conns 8 --keys 5000000 --duration 20s"),
		}},
	}
	for _, figure := range []string{figGC, figAssist, figPauses, figPauseP99, figPauseMax, figP99, figP999, figMax} {
		r.trials[0].limits = append(r.trials[0].limits, limit{figure: figure, own: true})
	}
	return r
}
