package kvevent

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/vmihailenco/msgpack/v5"
)

// batchSize is how many events one message holds at most.
const batchSize = 64

// batch is what becomes one message.
type batch struct {
	sequence uint64
	firstID  uint64 // of its events
	events   []event
}

// names of the kinds, and those of older subscribers.
var (
	names       = [...]string{stored: "stored", removed: "removed", cleared: "cleared"}
	legacyNames = [...]string{stored: "BlockStored", removed: "BlockRemoved", cleared: "AllBlocksCleared"}
)

// message encodes a batch: an empty topic, the sequence, the payload.
func (o *Options) message(b *batch, at time.Time) *zmq4.Msg {
	var payload bytes.Buffer
	e := writer{Encoder: msgpack.NewEncoder(&payload)}
	millis := at.UnixMilli()
	e.array(3)
	e.integer(millis)
	e.array(len(b.events))
	for i := range b.events {
		o.event(&e, &b.events[i], b.firstID+uint64(i), millis)
	}
	e.number(uint64(o.DPRank))
	msg := zmq4.NewMsgFrom(nil, binary.BigEndian.AppendUint64(nil, b.sequence), payload.Bytes())
	return &msg
}

// event encodes one event. The order of the fields is that of the original.
func (o *Options) event(e *writer, v *event, id uint64, millis int64) {
	e.fields(o.fieldCount(v.kind))
	e.name("event_id").number(id)
	e.name("timestamp").integer(millis)
	e.name("event_type").text(names[v.kind])
	if o.Legacy {
		e.name("type").text(legacyNames[v.kind])
	}
	e.name("model_name").optional(o.ModelName)
	if e.name("block_size"); o.BlockSize == 0 {
		e.null()
	} else {
		e.number(uint64(o.BlockSize))
	}
	e.name("additional_salt").optional(o.Salt)
	e.name("lora_name").optional(o.LoRA)
	e.name("tenant_id").text(v.tenant)
	e.name("backend_id").text(o.BackendID)
	e.name("medium").optional(v.medium)
	e.name("dp_rank").number(uint64(o.DPRank))
	if v.kind == cleared {
		return
	}
	e.name("group_id").optional(v.group)
	e.name("object_key").text(v.key)
	e.name("seq_hashes").array(0)
	if o.Legacy {
		e.name("block_hashes").array(0)
	}
	e.name("base_block_idx").null()
	if v.kind == stored {
		e.name("parent_hash").null()
		e.name("token_ids").null()
		if o.Legacy {
			e.name("parent_block_hash").null()
		}
	}
}

// fieldCount is how many fields event writes. Events about objects are only written with their key.
func (o *Options) fieldCount(k kind) int {
	n := map[kind]int{stored: 17, removed: 15, cleared: 11}[k]
	if o.Legacy {
		n += map[kind]int{stored: 3, removed: 2, cleared: 1}[k]
	}
	return n
}

// writer is an encoder into memory, which never fails.
type writer struct{ *msgpack.Encoder }

func (w writer) array(n int)          { _ = w.EncodeArrayLen(n) }
func (w writer) fields(n int)         { _ = w.EncodeMapLen(n) }
func (w writer) integer(v int64)      { _ = w.EncodeInt(v) }
func (w writer) number(v uint64)      { _ = w.EncodeUint(v) }
func (w writer) text(s string)        { _ = w.EncodeString(s) }
func (w writer) null()                { _ = w.EncodeNil() }
func (w writer) name(s string) writer { w.text(s); return w }

func (w writer) optional(s string) {
	if s == "" {
		w.null()
	} else {
		w.text(s)
	}
}
