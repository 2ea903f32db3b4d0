package main

import (
	"fmt"
	"strconv"
	"strings"
)

// op is a kind of operation.
type op uint8

// The operations. opFill is a put of the keys that a run begins with; it is not asked for by
// name. opMixed draws each operation from a mixture.
const (
	opExist op = iota
	opGet
	opPut // start and end, one after the other
	opUpsert
	opRemove
	opPing
	opFill
	opCount // operations that are made of calls

	opMixed op = opCount
)

var opNames = [...]string{opExist: "exist", opGet: "get", opPut: "put", opUpsert: "upsert", opRemove: "remove", opPing: "ping", opFill: "fill", opMixed: "mixed"}

// String returns the name that parseWork reads.
func (o op) String() string { return opNames[o] }

// parseOp finds an operation that can be asked for.
func parseOp(name string) (op, bool) {
	for o, n := range opNames {
		if n == name && op(o) != opFill {
			return op(o), true
		}
	}
	return 0, false
}

// step is one call of an operation, for one key and for several.
type step struct{ single, batch *call }

// of returns the call for n keys.
func (s step) of(n int) *call {
	if n == 1 {
		return s.single
	}
	return s.batch
}

// steps are the calls of each operation; the second is made for the keys for which the first
// went well.
var steps = [opCount][]step{
	opExist:  {{callExist, callBatchExist}},
	opGet:    {{callGet, callBatchGet}},
	opPut:    {{callPutStart, callBatchPutStart}, {callPutEnd, callBatchPutEnd}},
	opFill:   {{callPutStart, callBatchPutStart}, {callPutEnd, callBatchPutEnd}},
	opUpsert: {{callUpsertStart, callBatchUpsertStart}, {callUpsertEnd, callBatchUpsertEnd}},
	opRemove: {{callRemove, callBatchRemove}},
	opPing:   {{callPing, callPing}},
}

// work is an operation and how many keys each one is about.
type work struct {
	op    op
	batch int
}

// String returns the form that parseWork reads, for example "exist:128".
func (w work) String() string { return w.op.String() + ":" + strconv.Itoa(w.batch) }

// maxBatch is the largest batch; requests of it stay below the limits of the masters.
const maxBatch = 1 << 20

// parseWork reads OP or OP:BATCH.
func parseWork(text string) (work, error) {
	name, size, sized := strings.Cut(text, ":")
	o, known := parseOp(name)
	if !known {
		return work{}, fmt.Errorf("%q is no operation, want exist, get, put, upsert, remove, ping or mixed", name)
	}
	w := work{op: o, batch: 1}
	if sized {
		n, err := strconv.Atoi(size)
		if err != nil || n < 1 || n > maxBatch {
			return w, fmt.Errorf("batch %q in %q, want a number from 1 to %d", size, text, maxBatch)
		}
		w.batch = n
	}
	if w.op == opPing && w.batch != 1 {
		return w, fmt.Errorf("%q: a ping has no batch, want ping", text)
	}
	return w, nil
}

// share is one operation of a mixture and its weight.
type share struct {
	op     op
	weight int
}

// mixture is what mixed does; the zero value is not valid.
type mixture []share

// String returns the form that parseMixture reads.
func (m mixture) String() string {
	var parts []string
	for _, s := range m {
		parts = append(parts, s.op.String()+":"+strconv.Itoa(s.weight))
	}
	return strings.Join(parts, ",")
}

// parseMixture reads OP:WEIGHT,...
func parseMixture(text string) (mixture, error) {
	var m mixture
	for part := range strings.SplitSeq(text, ",") {
		name, weight, ok := strings.Cut(part, ":")
		n, err := strconv.Atoi(weight)
		if !ok || err != nil || n < 1 || n > 1_000_000 {
			return nil, fmt.Errorf("%q, want OP:WEIGHT with a weight from 1 to 1000000", part)
		}
		o, known := parseOp(name)
		if !known || o == opMixed {
			return nil, fmt.Errorf("%q is no operation of a mixture, want exist, get, put, upsert, remove or ping", name)
		}
		m = append(m, share{o, n})
	}
	return m, nil
}

// total is the sum of the weights.
func (m mixture) total() (n int) {
	for _, s := range m {
		n += s.weight
	}
	return n
}

// pick returns the operation that the number r, from 0 to total()-1, falls on.
func (m mixture) pick(r int) op {
	for _, s := range m {
		if r -= s.weight; r < 0 {
			return s.op
		}
	}
	return m[len(m)-1].op
}

// beside is work that goes on beside the measured one.
type beside struct {
	work  work
	conns int
	rate  float64 // operations per second that are meant to start; 0 is a closed loop
}

// String returns the form that parseBeside reads.
func (b beside) String() string {
	text := b.work.String() + "x" + strconv.Itoa(b.conns)
	if b.rate > 0 {
		text += "@" + strconv.FormatFloat(b.rate, 'f', -1, 64)
	}
	return text
}

// parseBeside reads OP:BATCHxCONNS,... with an optional @RATE; the empty text is nothing.
func parseBeside(text string) ([]beside, error) {
	if text == "" {
		return nil, nil
	}
	var all []beside
	for part := range strings.SplitSeq(text, ",") {
		form, perSecond, rated := strings.Cut(part, "@")
		at := strings.LastIndexByte(form, 'x')
		n, err := strconv.Atoi(form[at+1:])
		if at < 1 || err != nil || n < 1 || n > maxConns {
			return nil, fmt.Errorf("%q, want OP:BATCHxCONNECTIONS, for example exist:50000x1 or, so often a second, put:128x1@100", part)
		}
		b := beside{conns: n}
		if b.work, err = parseWork(form[:at]); err != nil {
			return nil, err
		}
		if rated {
			if b.rate, err = strconv.ParseFloat(perSecond, 64); err != nil || !(b.rate > 0 && b.rate <= maxRate) {
				return nil, fmt.Errorf("rate %q in %q, want operations per second, more than 0 and up to %g", perSecond, part, maxRate)
			}
		}
		all = append(all, b)
	}
	return all, nil
}

// maxRate bounds the operations per second of an open loop.
const maxRate = 1e9

// maxConns bounds connections.
const maxConns = 20_000
