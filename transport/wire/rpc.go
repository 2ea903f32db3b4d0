package wire

import (
	"crypto/md5"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/mooncake-go/mooncake-master/transport/structpack"
)

// ServiceName qualifies the names of the calls; the function id is made of both.
const ServiceName = "mooncake::WrappedMasterService::"

// ProtocolVersion is what ServiceReady answers. Clients compare it for equality.
const ProtocolVersion = "2.0.0"

// Release is a release of the original whose clients are served. Later releases are greater.
type Release int

// The releases whose forms differ.
const (
	R0313  Release = 313
	R0314  Release = 314
	Latest         = R0314
)

// String returns the release as it is published, for example "0.3.14".
func (r Release) String() string { return fmt.Sprintf("%d.%d.%d", r/1000, r/100%10, r%100) }

// compatSince is the release from which on clients write compatible parts.
const compatSince = R0314

// RequestForm is one form of a call's arguments.
type RequestForm struct {
	Since   Release
	Hash    uint32 // 0 when there are no arguments
	Literal []byte
}

// Row is what is known about a call without its Go types.
type Row struct {
	// Name is the bare name, for example "ExistKey".
	Name string
	// ID is the function id that requests carry.
	ID uint32
	// Since is the first release that has the call.
	Since Release
	// Requests are the forms of the arguments, the newest first.
	Requests []RequestForm
	// ResponseHash and ResponseLiteral belong to the result.
	ResponseHash    uint32
	ResponseLiteral []byte
	// RequestCompat and ResponseCompat tell whether arguments or result have compatible
	// fields, and so whether clients of 0.3.14 send a total length with them.
	RequestCompat, ResponseCompat bool
}

// RPC is a row with its types.
type RPC[Req, Resp any] struct {
	row     *Row
	req     *structpack.Codec[Req]
	resp    *structpack.Codec[Resp]
	earlier []earlierForm[Req]
	count   func(req *Req, resp *Resp) (items, failed int)
}

// earlierForm reads and writes the arguments as an older release has them.
type earlierForm[Req any] struct {
	since  Release
	form   RequestForm
	decode func(body []byte, req *Req) (structpack.Form, error)
	append func(dst []byte, req *Req, form structpack.Form) []byte
}

// earlier describes the arguments as release since has them: up turns them into today's,
// down turns today's into them.
func earlier[Old, Req any](since Release, up func(*Old, *Req), down func(*Req, *Old)) earlierForm[Req] {
	codec := structpack.ForArguments[Old]()
	return earlierForm[Req]{
		since: since,
		form:  RequestForm{Since: since, Hash: codec.Hash(), Literal: codec.Literal()},
		decode: func(body []byte, req *Req) (structpack.Form, error) {
			var old Old
			form, err := codec.DecodeForm(body, &old)
			if err == nil {
				up(&old, req)
			}
			return form, err
		},
		append: func(dst []byte, req *Req, form structpack.Form) []byte {
			var old Old
			down(req, &old)
			return codec.Append(dst, &old, form)
		},
	}
}

// calls is the whole table by name, filled while the variables of the package are set up.
// The values are RPCs.
var calls = map[string]interface{ Row() *Row }{}

// define makes a row. since is the release whose arguments Req are; the forms of earlier
// releases follow, the newest first.
func define[Req, Resp any](name string, since Release, older ...earlierForm[Req]) *RPC[Req, Resp] {
	r := &RPC[Req, Resp]{
		req:     structpack.ForArguments[Req](),
		resp:    structpack.For[Resp](),
		earlier: older,
	}
	sum := md5.Sum([]byte(ServiceName + name))
	r.row = &Row{
		Name:            name,
		ID:              binary.BigEndian.Uint32(sum[:]),
		Since:           since,
		Requests:        []RequestForm{{Since: since, Hash: r.req.Hash(), Literal: r.req.Literal()}},
		ResponseHash:    r.resp.Hash(),
		ResponseLiteral: r.resp.Literal(),
		RequestCompat:   len(r.req.Versions()) != 0,
		ResponseCompat:  len(r.resp.Versions()) != 0,
	}
	for _, o := range older {
		r.row.Since = o.since
		r.row.Requests = append(r.row.Requests, o.form)
	}
	if calls[name] != nil {
		panic("wire: " + name + " is defined twice")
	}
	calls[name] = r
	return r
}

// Rows returns the rows of all calls, sorted by name.
func Rows() []*Row {
	all := make([]*Row, 0, len(calls))
	for _, c := range calls {
		all = append(all, c.Row())
	}
	slices.SortFunc(all, func(a, b *Row) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return all
}

// Row returns what is known about the call without its types. It is not to be changed.
func (r *RPC[Req, Resp]) Row() *Row { return r.row }

// Name returns the bare name of the call.
func (r *RPC[Req, Resp]) Name() string { return r.row.Name }

// ID returns the function id of the call.
func (r *RPC[Req, Resp]) ID() uint32 { return r.row.ID }

// DecodeRequest reads arguments in the form of any release and says in which form they came.
// What Codec.Decode of package structpack says about the memory of *req holds here.
func (r *RPC[Req, Resp]) DecodeRequest(body []byte, req *Req) (structpack.Form, error) {
	form, err := r.req.DecodeForm(body, req)
	if err == nil || !errors.Is(err, structpack.ErrHash) {
		return form, err
	}
	for i := range r.earlier {
		form, err = r.earlier[i].decode(body, req)
		if err == nil || !errors.Is(err, structpack.ErrHash) {
			return form, err
		}
	}
	return form, err
}

// AppendRequest appends arguments as a client of the release writes them.
func (r *RPC[Req, Resp]) AppendRequest(dst []byte, req *Req, release Release, literal bool) []byte {
	form := structpack.Form{Literal: literal, Compat: release >= compatSince}
	if release < r.row.Requests[0].Since {
		for i := range r.earlier {
			if release >= r.earlier[i].since {
				return r.earlier[i].append(dst, req, form)
			}
		}
	}
	return r.req.Append(dst, req, form)
}

// DecodeResponse reads a result in the form of any release.
func (r *RPC[Req, Resp]) DecodeResponse(body []byte, resp *Resp) (structpack.Form, error) {
	return r.resp.DecodeForm(body, resp)
}

// AppendResponse appends a result in the given form. A server always writes the compatible
// part, which clients of all releases read or skip.
func (r *RPC[Req, Resp]) AppendResponse(dst []byte, resp *Resp, form structpack.Form) []byte {
	return r.resp.Append(dst, resp, form)
}

// ResetResponse empties a result and keeps the memory of its slices.
func (r *RPC[Req, Resp]) ResetResponse(resp *Resp) { r.resp.Reset(resp) }

// ResetRequest empties arguments and keeps the memory of their slices.
func (r *RPC[Req, Resp]) ResetRequest(req *Req) { r.req.Reset(req) }

// Tally counts the outcomes of a request: items is 1 for a single result and the number of
// elements for a batch; failed is how many hold an error. A bare number, as RemoveAll answers
// it, is a failure when negative.
func (r *RPC[Req, Resp]) Tally(req *Req, resp *Resp) (items, failed int) {
	if r.count != nil {
		return r.count(req, resp)
	}
	if n, ok := any(resp).(*int64); ok {
		if *n < 0 {
			return 1, 1
		}
		return 1, 0
	}
	return r.resp.Tally(resp)
}

// Itemized reports whether Tally counts the elements of a request: for batches, and for calls
// that are asked about many things and answer with one result in which what failed is missing.
func (r *RPC[Req, Resp]) Itemized() bool { return r.count != nil || r.Batch() }

// missing makes Tally count as failed what was asked for and is not in the result.
func (r *RPC[Req, Resp]) missing(asked func(*Req) int, found func(*Resp) int) *RPC[Req, Resp] {
	r.count = func(req *Req, resp *Resp) (items, failed int) {
		n := asked(req)
		return n, max(n-found(resp), 0)
	}
	return r
}

// Batch reports whether the result is a list of results, one per element of the request.
func (r *RPC[Req, Resp]) Batch() bool { return r.row.ResponseLiteral[0] == 0x84 }
