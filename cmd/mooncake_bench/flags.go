package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/mooncake-go/mooncake-master/transport/wire"
)

// settings are what both run and compare can be told.
type settings struct {
	works       []work
	mix         mixture
	beside      []beside
	conns       []int
	outstanding int
	threads     int
	rate        float64 // 0 is a closed loop
	warm        time.Duration
	length      time.Duration

	keys      int64 // -1: what suits the operation
	keyLength int
	size      uint64
	tenants   int

	segments    int
	segmentSize uint64

	fillBatch, fillConns int

	dialect dialect
	seed    uint64
	pin     int // -1 is nowhere
	json    string
}

// listValue is a flag whose value a function parses.
type listValue struct {
	set   func(string) error
	print func() string
}

func (v listValue) Set(s string) error { return v.set(s) }

func (v listValue) String() string {
	if v.print == nil {
		return ""
	}
	return v.print()
}

// define declares the flags on f.
func (s *settings) define(f *flag.FlagSet) {
	*s = settings{
		works: []work{{opExist, 1}}, mix: mixture{{opGet, 80}, {opPut, 20}}, conns: []int{8},
		size: 4 << 10, segmentSize: 64 << 30, dialect: dialect{wire.R0313, true}, pin: -1,
	}
	f.Var(listValue{func(text string) (err error) {
		s.works, err = parseList(text, parseWork)
		return err
	}, func() string { return joined(s.works) }}, "work", "`list` of OP or OP:BATCH; operations: exist, get, put (start and end), upsert, remove, ping, mixed")
	f.Var(listValue{func(text string) (err error) {
		s.mix, err = parseMixture(text)
		return err
	}, func() string { return s.mix.String() }}, "mix", "`list` of OP:WEIGHT that mixed draws from")
	f.Var(listValue{func(text string) (err error) {
		s.beside, err = parseBeside(text)
		return err
	}, func() string { return joined(s.beside) }}, "beside", "`list` of OP:BATCHxCONNECTIONS, or with @RATE behind it as open loop, that goes on beside the measured work, in threads of its own")
	f.Var(listValue{func(text string) (err error) {
		s.conns, err = parseList(text, func(t string) (int, error) { return parseCount(t, 1, maxConns) })
		return err
	}, func() string { return joined(s.conns) }}, "conns", "`list` of numbers of connections; each is measured with each work")
	f.IntVar(&s.outstanding, "outstanding", 1, "operations in flight per connection")
	f.IntVar(&s.threads, "threads", 1, "threads that share the connections")
	f.Float64Var(&s.rate, "rate", 0, "operations per second meant to start (open loop: latency counts from the intended start); 0 is a closed loop")
	f.DurationVar(&s.warm, "warmup", 300*time.Millisecond, "time before the measured window; remove has none")
	f.DurationVar(&s.length, "duration", 2*time.Second, "length of the measured window")
	f.Int64Var(&s.keys, "keys", -1, "objects stored before measuring, over all tenants; -1: 100000, for put and ping 0, for remove 150000, or 400000 in batches")
	f.IntVar(&s.keyLength, "key_length", 64, "bytes per key")
	sizeVar(f, &s.size, "object_size", "bytes per object, with an optional unit KiB, MiB, GiB, TiB")
	f.IntVar(&s.tenants, "tenants", 1, "tenants that take part; 1 is the tenant default")
	f.IntVar(&s.segments, "segments", 16, "make-believe segments, each of a client of its own")
	sizeVar(f, &s.segmentSize, "segment_size", "bytes per segment, with an optional unit")
	f.IntVar(&s.fillBatch, "fill_batch", 128, "keys per put when storing the objects")
	f.IntVar(&s.fillConns, "fill_conns", 4, "connections when storing the objects")
	f.Var(listValue{func(text string) error {
		switch text {
		case wire.R0313.String():
			s.dialect.release = wire.R0313
		case wire.R0314.String():
			s.dialect.release = wire.R0314
		default:
			return fmt.Errorf("no such release, want %v or %v", wire.R0313, wire.R0314)
		}
		return nil
	}, func() string { return s.dialect.release.String() }}, "client", "`release` as whose client requests are written, 0.3.13 or 0.3.14")
	f.BoolVar(&s.dialect.literal, "literal", s.dialect.literal, "write type literals, as released clients do")
	f.Uint64Var(&s.seed, "seed", 0, "of keys and draws; 0: 1 for compare, anything for run")
	f.IntVar(&s.pin, "pin", -1, "`core` to which the generator, and a master that compare starts, are bound; -1: none")
	f.StringVar(&s.json, "json", "", "`file` for one line of JSON per result; - is standard output, and the table goes to standard error")
}

// sizeVar declares a flag in bytes.
func sizeVar(f *flag.FlagSet, p *uint64, name, usage string) {
	f.Var(listValue{func(text string) (err error) {
		*p, err = parseSize(text)
		return err
	}, func() string { return formatSize(*p) }}, name, "`size`: "+usage)
}

var units = []struct {
	name  string
	shift uint
}{{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}, {"TB", 40}, {"GB", 30}, {"MB", 20}, {"KB", 10}, {"B", 0}}

// parseSize reads a number of bytes; KB is a KiB, as for the master.
func parseSize(text string) (uint64, error) {
	digits, shift := text, uint(0)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(text, u.name); ok {
			digits, shift = rest, u.shift
			break
		}
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || n == 0 || n > math.MaxInt64>>shift {
		return 0, errors.New("want a positive number of bytes with an optional unit KiB, MiB, GiB or TiB")
	}
	return n << shift, nil
}

// formatSize is the shortest exact form of a size.
func formatSize(n uint64) string {
	for _, u := range units[:4] {
		if n != 0 && n%(1<<u.shift) == 0 {
			return strconv.FormatUint(n>>u.shift, 10) + u.name
		}
	}
	return strconv.FormatUint(n, 10)
}

// parseList reads values between commas.
func parseList[T any](text string, one func(string) (T, error)) ([]T, error) {
	var all []T
	for part := range strings.SplitSeq(text, ",") {
		v, err := one(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

func parseCount(text string, low, high int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		return 0, fmt.Errorf("%q, want a number from %d to %d", text, low, high)
	}
	return n, nil
}

func joined[T any](list []T) string {
	var parts []string
	for _, v := range list {
		parts = append(parts, fmt.Sprint(v))
	}
	return strings.Join(parts, ",")
}

// usageError is wrong use of the command line; the exit status tells it from a failed run.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

// wrong makes the error about one flag.
func wrong(flagName, format string, args ...any) error {
	return usageError{"--" + flagName + ": " + fmt.Sprintf(format, args...)}
}

// between checks a number.
func between[N int | float64 | int64 | time.Duration](flagName string, v, low, high N) error {
	if v < low || v > high {
		return wrong(flagName, "%v is out of bounds, want %v to %v", v, low, high)
	}
	return nil
}

// maxRun bounds one measurement, so that every run ends by itself in good time.
const maxRun = 24 * time.Hour

// check says what is wrong with the values, each error naming its flag.
func (s *settings) check() error {
	err := errors.Join(
		between("outstanding", s.outstanding, 1, 1<<16),
		between("threads", s.threads, 1, 256),
		between("rate", s.rate, 0, maxRate),
		between("warmup", s.warm, 0, maxRun),
		between("duration", s.length, time.Millisecond, maxRun),
		between("keys", s.keys, -1, 1<<40),
		between("key_length", s.keyLength, numberLen, 1<<16),
		between("tenants", s.tenants, 1, 1_000_000),
		between("segments", s.segments, 1, 10_000),
		between("fill_batch", s.fillBatch, 1, maxBatch),
		between("fill_conns", s.fillConns, 1, 1024),
		between("pin", s.pin, -1, 1023),
	)
	if err != nil {
		return err
	}
	for _, p := range s.points() {
		if p.conns < s.threads {
			return wrong("threads", "%d threads can't share %d connections", s.threads, p.conns)
		}
		for _, w := range s.parts(p) {
			if err := s.enough(w, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// slots is how many operations are in flight at most while a point is measured.
func (s *settings) slots(p point) int {
	n := p.conns * s.outstanding
	for _, b := range s.beside {
		n += b.conns
	}
	return n
}

// parts are the works that go on while a point is measured.
func (s *settings) parts(p point) []work {
	all := []work{p.work}
	for _, b := range s.beside {
		all = append(all, b.work)
	}
	return all
}

// enough checks that there are keys for a work while a point is measured.
func (s *settings) enough(w work, p point) error {
	slots := s.slots(p)
	ops := mixture{{w.op, 1}}
	if w.op == opMixed {
		ops = s.mix
	}
	filled := s.filled(p.work) / int64(s.tenants)
	for _, o := range ops {
		switch {
		case (o.op == opExist || o.op == opGet || o.op == opRemove) && filled < 1:
			return wrong("keys", "%v needs objects, and %d for %d tenants are none", w, s.filled(p.work), s.tenants)
		case o.op == opUpsert && filled/int64(slots) < int64(w.batch):
			return wrong("keys", "%v needs %d different objects per tenant for its %d slots, and there are %d", w, slots*w.batch, slots, filled)
		}
	}
	return nil
}

// filled is how many objects are stored before a work is measured. The rest of the run counts
// too: work beside it needs objects as well.
func (s *settings) filled(w work) int64 {
	if s.keys >= 0 {
		return s.keys
	}
	needs := func(w work) int64 {
		switch {
		case w.op == opPut || w.op == opPing:
			return 0
		case w.op == opRemove && w.batch > 1:
			return 400_000
		case w.op == opRemove:
			return 150_000
		}
		return 100_000
	}
	n := needs(w)
	for _, b := range s.beside {
		n = max(n, needs(b.work))
	}
	return n
}

// parse reads a command line into a flag set; mistakes come back as usageError, a request for
// help as flag.ErrHelp after it was answered.
func parse(f *flag.FlagSet, args []string, out io.Writer) error {
	f.SetOutput(io.Discard)
	err := f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		f.SetOutput(out)
		fmt.Fprintf(out, "Flags of mooncake_bench %s:\n", f.Name())
		f.PrintDefaults()
		return flag.ErrHelp
	}
	if err != nil {
		return usageError{strings.Replace(err.Error(), "for flag -", "for flag --", 1)}
	}
	return nil
}

// noArguments complains about words that no flag takes.
func noArguments(f *flag.FlagSet) error {
	if f.NArg() > 0 {
		return usageError{fmt.Sprintf("%q is no flag; values go with their flag, as in --work exist:1", f.Arg(0))}
	}
	return nil
}
